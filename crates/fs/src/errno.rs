//! Describes errnos with their symbolic names, such as `ENOSPC`, which people search for.

use rustix::io::Errno;

/// Such as `ENOSPC (No space left on device)`. Rare errnos are shown by their number.
pub(crate) fn describe(errno: Errno) -> String {
    let system = std::io::Error::from(errno).to_string();
    let words = system.split(" (os error").next().unwrap_or(&system);
    match name(errno) {
        Some(name) => format!("{name} ({words})"),
        None => format!("errno {} ({words})", errno.raw_os_error()),
    }
}

fn name(errno: Errno) -> Option<&'static str> {
    Some(match errno {
        Errno::ACCESS => "EACCES",
        Errno::AGAIN => "EAGAIN",
        Errno::BUSY => "EBUSY",
        Errno::DQUOT => "EDQUOT",
        Errno::EXIST => "EEXIST",
        Errno::FBIG => "EFBIG",
        Errno::INTR => "EINTR",
        Errno::INVAL => "EINVAL",
        Errno::IO => "EIO",
        Errno::ISDIR => "EISDIR",
        Errno::LOOP => "ELOOP",
        Errno::MFILE => "EMFILE",
        Errno::MLINK => "EMLINK",
        Errno::NAMETOOLONG => "ENAMETOOLONG",
        Errno::NFILE => "ENFILE",
        Errno::NOENT => "ENOENT",
        Errno::NOMEM => "ENOMEM",
        Errno::NOSPC => "ENOSPC",
        Errno::NOSYS => "ENOSYS",
        Errno::NOTDIR => "ENOTDIR",
        Errno::NXIO => "ENXIO",
        Errno::OPNOTSUPP => "EOPNOTSUPP",
        Errno::PERM => "EPERM",
        Errno::ROFS => "EROFS",
        Errno::STALE => "ESTALE",
        Errno::TXTBSY => "ETXTBSY",
        Errno::XDEV => "EXDEV",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_is_shown_with_name_and_message() {
        assert_eq!(describe(Errno::NOSPC), "ENOSPC (No space left on device)");
    }
}
