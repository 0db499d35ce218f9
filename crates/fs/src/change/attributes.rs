//! Mode, owner, extended attributes and ACLs of a file.

use std::os::fd::BorrowedFd;

use rustix::fs::{Gid, Stat, Uid, XattrFlags};
use rustix::io::Errno;

use crate::open_beneath;

/// Copies the attributes of `old` to `new`. The owner comes first: changing it may clear mode bits.
pub(super) fn copy(old: BorrowedFd<'_>, stat: &Stat, new: BorrowedFd<'_>) -> Result<(), Errno> {
    let fresh = rustix::fs::fstat(new)?;
    if (fresh.st_uid, fresh.st_gid) != (stat.st_uid, stat.st_gid) {
        let (owner, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        rustix::fs::fchown(new, Some(owner), Some(group))?;
    }
    copy_extended(old, new)?;
    rustix::fs::fchmod(new, open_beneath::permissions(stat))
}

/// Sets the mode of `file`.
pub(super) fn set_mode(file: BorrowedFd<'_>, mode: u32) -> Result<(), Errno> {
    rustix::fs::fchmod(file, rustix::fs::Mode::from_raw_mode(mode & 0o7777))
}

fn copy_extended(old: BorrowedFd<'_>, new: BorrowedFd<'_>) -> Result<(), Errno> {
    let names = match list(old) {
        Err(Errno::OPNOTSUPP) => return Ok(()),
        names => names?,
    };
    for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let copied = get(old, name)
            .and_then(|value| rustix::fs::fsetxattr(new, name, &value, XattrFlags::empty()));
        match copied {
            Ok(()) => {}
            // Only the system sets these labels.
            Err(Errno::PERM | Errno::OPNOTSUPP)
                if name.starts_with(b"security.") || name.starts_with(b"trusted.") => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn list(file: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
    let mut names = vec![0; rustix::fs::flistxattr_query(file)?];
    let length = rustix::fs::flistxattr(file, names.as_mut_slice())?;
    names.truncate(length);
    Ok(names)
}

fn get(file: BorrowedFd<'_>, name: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0; rustix::fs::fgetxattr_query(file, name)?];
    let length = rustix::fs::fgetxattr(file, name, value.as_mut_slice())?;
    value.truncate(length);
    Ok(value)
}
