//! Our own files, in a directory that no other user can access.
//!
//! The journal decides what Undo writes, and an index decides which files a search skips. So both are used
//! only if no other user can have written them: every directory above belongs to this user or to root and is
//! not writable by others, the directory itself is accessible to this user only, and each file in it is a
//! regular file of this user, opened without following symlinks and without blocking.
//!
//! Symlinks above the directory are resolved once, at the start; the directory itself must not be one.

pub(crate) mod owner;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use crate::error::{FsError, FsErrorKind};
use crate::open_beneath;

const FILE_MODE: Mode = Mode::from_raw_mode(0o600);
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o700);

/// A directory that only this user can access. It need not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct PrivateDirectory {
    path: PathBuf,
    /// Opened once, and again if the directory was removed in the meantime.
    handle: Arc<Mutex<Option<Arc<OwnedFd>>>>,
}

/// Why a private directory cannot be used.
#[derive(Debug)]
pub(crate) enum PrivateDirectoryError {
    /// Another user could write it, or it is not a directory.
    Unsafe(FsError),
    /// The system denies access, or it does not exist.
    Errno(FsError, Errno),
}

impl From<PrivateDirectoryError> for FsError {
    fn from(refusal: PrivateDirectoryError) -> FsError {
        match refusal {
            PrivateDirectoryError::Unsafe(error) | PrivateDirectoryError::Errno(error, _) => error,
        }
    }
}

impl From<PrivateDirectoryError> for io::Error {
    fn from(refusal: PrivateDirectoryError) -> io::Error {
        match refusal {
            PrivateDirectoryError::Unsafe(error) => io::Error::other(error.to_string()),
            PrivateDirectoryError::Errno(_, errno) => errno.into(),
        }
    }
}

impl PrivateDirectory {
    /// The directory at a path.
    pub(crate) fn new(path: &Path) -> PrivateDirectory {
        PrivateDirectory { path: resolve_parents(path), handle: Arc::default() }
    }

    /// Its path, without symlinks above it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens and checks it. Fails if it does not exist.
    pub(crate) fn open(&self) -> Result<Arc<OwnedFd>, PrivateDirectoryError> {
        self.opened(false)
    }

    /// Creates it and these subdirectories, if they do not exist.
    pub(crate) fn make(&self, inside: &[&str]) -> Result<(), FsError> {
        let handle = self.opened(true)?;
        for name in inside {
            make_directory(handle.as_fd(), *name).map_err(|errno| self.errno(name, errno))?;
            self.check_inside(&handle, name)?;
        }
        Ok(())
    }

    /// Checks it and the existing ones of these subdirectories.
    pub(crate) fn check(&self, inside: &[&str]) -> Result<(), PrivateDirectoryError> {
        let handle = self.open()?;
        inside.iter().try_for_each(|name| match self.check_inside(&handle, name) {
            Err(PrivateDirectoryError::Errno(_, Errno::NOENT)) => Ok(()),
            checked => checked,
        })
    }

    /// Opens a regular file of this user. With `CREATE`, a new file gets mode 0600.
    pub(crate) fn open_file(&self, name: impl AsRef<Path>, flags: OFlags) -> io::Result<File> {
        let handle = self.open()?;
        let creates = flags.contains(OFlags::CREATE);
        let mode = if creates { FILE_MODE } else { Mode::empty() };
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = open_beneath::open(handle.as_fd(), name.as_ref(), flags, mode)?;
        let stat = rustix::fs::fstat(&file)?;
        require_own_file(&stat)?;
        // The umask may have cleared bits.
        if creates && open_beneath::permissions(&stat) != FILE_MODE {
            rustix::fs::fchmod(&file, FILE_MODE)?;
        }
        Ok(file.into())
    }

    /// Creates a new file for writing. Fails if it exists.
    pub(crate) fn create_file(&self, name: impl AsRef<Path>, flags: OFlags) -> io::Result<File> {
        self.open_file(name, flags | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    /// Reads a file of at most `max_bytes`. `None` if it does not exist.
    pub(crate) fn read(
        &self,
        name: impl AsRef<Path>,
        max_bytes: u64,
    ) -> io::Result<Option<Vec<u8>>> {
        let file = match self.open_file(name, OFlags::RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes {
            return Err(io::Error::other(format!("has more than {max_bytes} bytes")));
        }
        Ok(Some(bytes))
    }

    /// Renames a file within the directory.
    pub(crate) fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        let handle = self.open()?;
        Ok(rustix::fs::renameat(&handle, from.as_ref(), &handle, to.as_ref())?)
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: impl AsRef<Path>) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.open()?, name.as_ref(), AtFlags::empty())?)
    }

    /// The names in a subdirectory. Empty if it does not exist.
    pub(crate) fn list(&self, name: &str) -> io::Result<Vec<OsString>> {
        let directory = match self.open_directory(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            directory => directory?,
        };
        let mut names = Vec::new();
        for entry in Dir::read_from(directory)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// The status of an entry. A symlink is not followed.
    pub(crate) fn stat(&self, name: impl AsRef<Path>) -> io::Result<Stat> {
        Ok(open_beneath::stat(self.open()?.as_fd(), name.as_ref().as_os_str())?)
    }

    /// Syncs the entries of a subdirectory.
    pub(crate) fn sync_names(&self, name: &str) -> io::Result<()> {
        let directory = self.open_directory(name)?;
        Ok(retry_on_intr(|| rustix::fs::fdatasync(&directory))?)
    }

    fn open_directory(&self, name: &str) -> io::Result<OwnedFd> {
        let handle = self.open()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        Ok(open_beneath::open(handle.as_fd(), Path::new(name), flags, Mode::empty())?)
    }

    fn opened(&self, make: bool) -> Result<Arc<OwnedFd>, PrivateDirectoryError> {
        let mut held = self.handle.lock();
        if let Some(handle) = held.as_ref()
            && let Ok(stat) = rustix::fs::fstat(handle)
            && stat.st_nlink > 0
        {
            require_private(&self.path, &stat)?;
            return Ok(handle.clone());
        }
        let handle = Arc::new(self.walk(make)?);
        *held = Some(handle.clone());
        Ok(handle)
    }

    /// Opens one directory after the other, from `/`, and checks each.
    fn walk(&self, make: bool) -> Result<OwnedFd, PrivateDirectoryError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut path = PathBuf::from("/");
        let mut handle = retry_on_intr(|| rustix::fs::openat(CWD, "/", flags, Mode::empty()))
            .map_err(|errno| self.errno("", errno))?;
        let names = self.path.components().filter(|name| *name != Component::RootDir);
        for name in names.map(Component::as_os_str) {
            let at = |errno| self.errno("", errno);
            owner::check_parent(&path, &rustix::fs::fstat(&handle).map_err(at)?)?;
            let open = || rustix::fs::openat(&handle, name, flags, Mode::empty());
            let next = match retry_on_intr(open) {
                Err(Errno::NOENT) if make => {
                    make_directory(handle.as_fd(), name).map_err(at)?;
                    retry_on_intr(open)
                }
                opened => opened,
            };
            handle = next.map_err(at)?;
            path.push(name);
        }
        let stat = rustix::fs::fstat(&handle).map_err(|errno| self.errno("", errno))?;
        require_private(&path, &stat)?;
        Ok(handle)
    }

    fn check_inside(&self, handle: &OwnedFd, name: &str) -> Result<(), PrivateDirectoryError> {
        let stat = open_beneath::stat(handle.as_fd(), name.as_ref());
        let stat = stat.map_err(|errno| self.errno(name, errno))?;
        require_private(&self.path.join(name), &stat)
    }

    fn errno(&self, name: &str, errno: Errno) -> PrivateDirectoryError {
        // Joining an empty name would append a slash.
        let path = if name.is_empty() { self.path.clone() } else { self.path.join(name) };
        PrivateDirectoryError::Errno(FsError::from_errno(path, "cannot be opened", errno), errno)
    }
}

/// Creates a directory that only this user can access, unless it exists. Returns its path without symlinks above it.
///
/// # Errors
///
/// Fails if another user could access it, or write a directory above it.
pub fn make_private_directory(path: &Path) -> Result<PathBuf, FsError> {
    let directory = PrivateDirectory::new(path);
    directory.make(&[])?;
    Ok(directory.path)
}

/// Resolves the symlinks above the last component, as far as the path exists.
fn resolve_parents(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let Some((parent, name)) = path.parent().zip(path.file_name()) else { return path };
    let existing = parent.ancestors().find_map(|above| {
        let real = std::fs::canonicalize(above).ok()?;
        Some(parent.strip_prefix(above).ok()?.components().fold(real, |path, name| path.join(name)))
    });
    existing.unwrap_or_else(|| parent.to_owned()).join(name)
}

/// Creates a directory with mode 0700, unless it exists.
pub(crate) fn make_directory(
    parent: std::os::fd::BorrowedFd<'_>,
    name: impl rustix::path::Arg + Copy,
) -> Result<(), Errno> {
    match rustix::fs::mkdirat(parent, name, DIRECTORY_MODE) {
        Err(Errno::EXIST) => Ok(()),
        // The umask may have cleared bits.
        made => {
            made.and_then(|()| rustix::fs::chmodat(parent, name, DIRECTORY_MODE, AtFlags::empty()))
        }
    }
}

/// Fails if it is not a directory that only this user can access.
fn require_private(path: &Path, stat: &Stat) -> Result<(), PrivateDirectoryError> {
    let refuse = |detail: String| {
        Err(PrivateDirectoryError::Unsafe(FsError::new(FsErrorKind::Permission, path, detail)))
    };
    let shown = path.display();
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {}
        FileType::Symlink => {
            return refuse("is a symlink; give the directory that it points to".to_owned());
        }
        _ => {
            return refuse(
                "is not a directory, so Toolcrib cannot store its files in it".to_owned(),
            );
        }
    }
    if stat.st_uid != owner::current_user() {
        return refuse(format!(
            "belongs to user {}, not to user {}, so Toolcrib does not store its files in it; give another directory",
            stat.st_uid,
            owner::current_user()
        ));
    }
    let mode = open_beneath::permissions(stat).as_raw_mode();
    if mode & 0o077 != 0 {
        return refuse(format!(
            "is open to other users (mode {:o}), so Toolcrib does not store its files in it; run `chmod 700 {shown}`, or give another directory",
            mode & 0o777
        ));
    }
    Ok(())
}

fn require_own_file(stat: &Stat) -> io::Result<()> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_uid == owner::current_user() => Ok(()),
        FileType::RegularFile => Err(io::Error::other(format!(
            "belongs to user {}, not to user {}",
            stat.st_uid,
            owner::current_user()
        ))),
        _ => Err(io::Error::other("is not a regular file")),
    }
}
