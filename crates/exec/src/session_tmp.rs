//! The directory that the commands of a session see as `/tmp`.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

use crate::random::random_hex;

/// The prefix of its name. The pid of its owner follows.
const PREFIX: &str = "tmp-";

/// A directory that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SessionTmp {
    path: PathBuf,
    free_at_start: u64,
}

impl SessionTmp {
    /// Creates a directory in `parent` that only this user can access. Removes the directories of processes
    /// that no longer exist.
    pub(crate) fn make(parent: &Path) -> io::Result<SessionTmp> {
        make_private(parent)?;
        remove_stale(parent);
        let name = format!("{PREFIX}{}-{}", std::process::id(), random_hex()?);
        let path = parent.join(name);
        make_private(&path)?;
        let free_at_start = free_bytes(&path);
        Ok(SessionTmp { path, free_at_start })
    }

    /// The bytes that were free on its file system when it was created.
    pub(crate) fn free_at_start(&self) -> u64 {
        self.free_at_start
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SessionTmp {
    fn drop(&mut self) {
        // If this fails, a later session removes it as stale.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The bytes that users can write on the file system of a directory.
pub fn free_bytes(path: &Path) -> u64 {
    statvfs(path).map_or(u64::MAX, |about| about.f_bavail.saturating_mul(about.f_frsize))
}

/// Creates a directory and its missing parents with mode 0700, whatever the umask.
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

/// The owner of a directory. `None` if the name is not one of ours.
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
    fn directory_is_removed_with_its_session_and_stale_ones_with_the_next() {
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
