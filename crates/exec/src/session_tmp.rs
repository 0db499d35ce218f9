//! The directory that the commands of a session find as `/tmp`.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::random::random_word;

/// What the name of each begins with; the number of the process that it belongs to follows.
const PREFIX: &str = "tmp-";

/// A directory that goes with whoever holds this.
#[derive(Debug)]
pub(crate) struct SessionTmp {
    path: PathBuf,
}

impl SessionTmp {
    /// Makes one in `parent`, for this user alone. Those of processes that are no more are removed.
    pub(crate) fn make(parent: &Path) -> io::Result<SessionTmp> {
        make_private(parent)?;
        remove_stale(parent);
        let name = format!("{PREFIX}{}-{}", std::process::id(), random_word()?);
        let path = parent.join(name);
        make_private(&path)?;
        Ok(SessionTmp { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SessionTmp {
    fn drop(&mut self) {
        // What cannot be removed now is stale soon.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Makes a directory, and those above it that are missing, for this user alone whatever the umask.
fn make_private(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o700)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_private(path.parent().ok_or(error)?)?;
            make_private(path)
        }
        Err(error) => Err(error),
    }
}

fn remove_stale(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| owner(&entry.file_name()).is_some_and(is_gone)) {
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// The process that a directory belongs to, if its name is one of ours.
fn owner(name: &OsStr) -> Option<u32> {
    name.to_str()?.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

fn is_gone(process: u32) -> bool {
    !Path::new("/proc").join(process.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_its_session_and_a_dead_processs_with_the_next() {
        let parent = tempfile::tempdir().unwrap();
        let place = parent.path().join("made");
        let stale = place.join(format!("{PREFIX}4194999-0"));
        fs::create_dir_all(stale.join("deep")).unwrap();
        fs::create_dir(place.join("tmp-others")).unwrap();
        let tmp = SessionTmp::make(&place).unwrap();
        fs::write(tmp.path().join("f"), "x").unwrap();
        assert!(!stale.exists() && place.join("tmp-others").exists());
        let other = SessionTmp::make(&place).unwrap();
        let path = tmp.path().to_owned();
        drop(tmp);
        assert!(!path.exists() && other.path().exists());
    }
}
