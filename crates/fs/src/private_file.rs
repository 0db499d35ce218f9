//! A small file that holds a secret. It is used only if no other user can read, write or replace it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, fstat, open, openat};
use rustix::fs::{renameat_with, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::private_directory::make_directory;
use crate::random;

/// Creates a directory and its missing parents with mode 0700, whatever the umask.
fn make_directories(path: &Path) -> Result<(), Errno> {
    match make_directory(CWD, path) {
        Err(Errno::NOENT) => {
            make_directories(path.parent().ok_or(Errno::NOENT)?)?;
            make_directory(CWD, path)
        }
        made => made,
    }
}

/// A file in an open directory that was found to be private.
#[derive(Debug)]
pub struct PrivateFile {
    directory: OwnedFd,
    name: PathBuf,
}

/// Why a file is not used. Each message describes the file and says what to do.
#[derive(Debug)]
pub enum PrivateFileError {
    /// An I/O error.
    Io(io::Error),
    /// Other users could read or choose its content.
    NotPrivate(String),
}

impl PrivateFile {
    /// Opens the directory of a file, creating it if necessary. Fails if other users could replace the file.
    pub fn locate(path: &Path) -> Result<PrivateFile, PrivateFileError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(not_private("is not a path to a file"));
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        make_directories(parent)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(parent, flags, Mode::empty())?;
        check_directory(&fstat(&directory)?, parent)?;
        Ok(PrivateFile { directory, name: name.into() })
    }

    /// Reads at most `max` bytes. `None` if the file does not exist. Fails if other users could access it.
    pub fn read(&self, max: u64) -> Result<Option<Vec<u8>>, PrivateFileError> {
        // No symlink is followed, and opening a FIFO does not block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = match openat(&self.directory, &self.name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => {
                return Err(not_private("is a symlink; give the path of the file itself"));
            }
            Err(Errno::NXIO) => return Err(not_private(NO_FILE)),
            opened => opened?,
        };
        check_file(&fstat(&opened)?)?;
        let mut content = Vec::new();
        File::from(opened).take(max).read_to_end(&mut content)?;
        Ok(Some(content))
    }

    /// Creates the file atomically with mode 0600. Keeps an existing file.
    pub fn create(&self, content: &[u8]) -> Result<(), PrivateFileError> {
        self.put(content, RenameFlags::NOREPLACE)
    }

    /// Creates or replaces the file atomically with mode 0600.
    pub fn replace(&self, content: &[u8]) -> Result<(), PrivateFileError> {
        self.put(content, RenameFlags::empty())
    }

    fn put(&self, content: &[u8], flags: RenameFlags) -> Result<(), PrivateFileError> {
        let draft = format!(".draft-{}", random::hex::<8>()?);
        let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = openat(&self.directory, &draft, new, Mode::RUSR | Mode::WUSR)?;
        let written = File::from(made).write_all(content).and_then(|()| {
            Ok(renameat_with(&self.directory, &draft, &self.directory, &self.name, flags)?)
        });
        if written.is_err() {
            // The draft is useless.
            let _ = unlinkat(&self.directory, &draft, AtFlags::empty());
        }
        match written {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
            _ => Ok(()),
        }
    }
}

const NO_FILE: &str = "is not a regular file; give the path of one";

fn check_file(stat: &Stat) -> Result<(), PrivateFileError> {
    let problem = match () {
        () if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => NO_FILE,
        () if stat.st_uid != geteuid().as_raw() => {
            "belongs to another user, who knows its content; give the path of a file of your own"
        }
        () if stat.st_mode & 0o077 != 0 => {
            "can be read or written by other users; run `chmod 600` on it, and replace its content if others may have read it"
        }
        () if stat.st_nlink != 1 => {
            "has a second hard link, through which other users may reach it; remove the other link, or use a copy of the file"
        }
        () => return Ok(()),
    };
    Err(not_private(problem))
}

/// Fails if other users can write the directory: they could replace the file. The sticky bit of `/tmp` does
/// not help, since others could create the file first.
fn check_directory(stat: &Stat, path: &Path) -> Result<(), PrivateFileError> {
    let (owner, directory) = (stat.st_uid, path.display());
    if owner != geteuid().as_raw() && owner != 0 {
        let problem =
            format!("is in {directory}, which belongs to another user; give another path");
        return Err(PrivateFileError::NotPrivate(problem));
    }
    if stat.st_mode & 0o022 != 0 {
        let problem = format!(
            "is in {directory}, which other users can write; run `chmod go-w` on it, or give a path elsewhere"
        );
        return Err(PrivateFileError::NotPrivate(problem));
    }
    Ok(())
}

fn not_private(problem: &str) -> PrivateFileError {
    PrivateFileError::NotPrivate(problem.to_owned())
}

impl fmt::Display for PrivateFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrivateFileError::Io(error) => write!(f, "{error}"),
            PrivateFileError::NotPrivate(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for PrivateFileError {}

impl From<io::Error> for PrivateFileError {
    fn from(error: io::Error) -> Self {
        PrivateFileError::Io(error)
    }
}

impl From<Errno> for PrivateFileError {
    fn from(errno: Errno) -> Self {
        PrivateFileError::Io(errno.into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn refusal(path: &Path) -> String {
        let read = PrivateFile::locate(path).and_then(|file| file.read(100));
        read.unwrap_err().to_string()
    }

    #[test]
    fn a_file_is_created_once_with_mode_0600() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("new/secret");
        let file = PrivateFile::locate(&path).unwrap();
        assert!(file.read(100).unwrap().is_none());
        file.create(b"one").unwrap();
        file.create(b"two").unwrap();
        assert_eq!(file.read(100).unwrap().unwrap(), b"one");
        assert_eq!(file.read(2).unwrap().unwrap(), b"on");
        file.replace(b"three").unwrap();
        assert_eq!(file.read(100).unwrap().unwrap(), b"three");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn a_file_that_others_can_access_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("secret");
        PrivateFile::locate(&path).unwrap().create(b"one").unwrap();
        for mode in [0o640, 0o604, 0o620, 0o602, 0o610] {
            set_mode(&path, mode);
            assert!(refusal(&path).contains("chmod 600"), "{mode:o}");
        }
        set_mode(&path, 0o600);
        let link = top.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(refusal(&link).contains("is a symlink"));
        fs::hard_link(&path, top.path().join("other")).unwrap();
        assert!(refusal(&path).contains("hard link"));
        assert!(refusal(top.path().join("other").as_path()).contains("hard link"));
    }

    #[test]
    fn special_files_are_refused_without_blocking() {
        let top = tempfile::tempdir().unwrap();
        let fifo = top.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
        assert!(refusal(&fifo).contains("not a regular file"));
        let socket = top.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(refusal(&socket).contains("not a regular file"));
        let directory = top.path().join("directory");
        fs::create_dir(&directory).unwrap();
        assert!(refusal(&directory).contains("not a regular file"));
    }

    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let directory = top.path().join("shared");
        fs::create_dir(&directory).unwrap();
        let path = directory.join("secret");
        PrivateFile::locate(&path).unwrap().create(b"one").unwrap();
        for mode in [0o777, 0o1777, 0o770, 0o707] {
            set_mode(&directory, mode);
            assert!(refusal(&path).contains("other users can write"), "{mode:o}");
        }
        set_mode(&directory, 0o755);
        assert!(PrivateFile::locate(&path).unwrap().read(100).is_ok());
    }

    #[test]
    fn a_file_or_directory_of_another_user_is_refused() {
        if !geteuid().is_root() {
            return;
        }
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("secret");
        PrivateFile::locate(&path).unwrap().create(b"one").unwrap();
        std::os::unix::fs::chown(&path, Some(1234), None).unwrap();
        assert!(refusal(&path).contains("another user"));
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        std::os::unix::fs::chown(top.path(), Some(1234), None).unwrap();
        assert!(refusal(&path).contains("another user"));
    }
}
