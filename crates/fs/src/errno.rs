//! Errnos by the names that people search for.

use rustix::io::Errno;

/// `ENOSPC (No space left on device)`; the number alone where the name is a rare one.
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
    fn an_errno_has_its_name_and_its_words() {
        assert_eq!(describe(Errno::NOSPC), "ENOSPC (No space left on device)");
    }
}
