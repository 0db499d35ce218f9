//! Creates symlinks by directory and name.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::staged::random_name;

/// Creates a symlink. Fails if the name exists.
pub(super) fn create(directory: &OwnedFd, name: &OsStr, target: &[u8]) -> Result<(), Errno> {
    rustix::fs::symlinkat(target, directory, name)
}

/// Replaces a file or another symlink by a symlink, atomically.
pub(super) fn replace(directory: &OwnedFd, name: &OsStr, target: &[u8]) -> Result<(), Errno> {
    let temporary = random_name()?;
    rustix::fs::symlinkat(target, directory, &temporary)?;
    rustix::fs::renameat(directory, &temporary, directory, name).inspect_err(|_| {
        let _ = rustix::fs::unlinkat(directory, &temporary, AtFlags::empty());
    })
}
