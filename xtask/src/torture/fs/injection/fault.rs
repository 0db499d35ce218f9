//! What can go wrong at which system call.

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// The process dies just before it.
    Kill,
    /// It fails with this error.
    Error(&'static str),
}

impl Fault {
    pub(super) fn name(self) -> &'static str {
        match self {
            Fault::Kill => "KILL",
            Fault::Error(name) => name,
        }
    }

    /// In strace's words.
    pub(super) fn words(self) -> String {
        match self {
            Fault::Kill => "signal=KILL".to_owned(),
            Fault::Error(name) => format!("error={name}"),
        }
    }
}

/// System calls that touch files, and the errors that make sense there.
struct Family {
    system_calls: &'static [&'static str],
    errors: &'static [&'static str],
}

const FAMILIES: &[Family] = &[
    Family {
        system_calls: &["open", "openat", "openat2"],
        errors: &["EACCES", "EINTR", "EIO", "EMFILE", "ENOSPC", "EDQUOT", "EROFS"],
    },
    Family { system_calls: &["write", "pwrite64"], errors: &["EDQUOT", "EINTR", "EIO", "ENOSPC"] },
    Family { system_calls: &["read", "pread64", "getdents64"], errors: &["EINTR", "EIO"] },
    Family {
        system_calls: &["fdatasync", "fsync"],
        errors: &["EDQUOT", "EINTR", "EIO", "ENOSPC", "EROFS"],
    },
    Family { system_calls: &["ftruncate"], errors: &["EACCES", "EINTR", "EIO"] },
    Family { system_calls: &["flock"], errors: &["EINTR", "EIO"] },
    Family {
        system_calls: &[
            "link",
            "linkat",
            "mkdir",
            "mkdirat",
            "rename",
            "renameat",
            "renameat2",
            "rmdir",
            "unlink",
            "unlinkat",
        ],
        errors: &["EACCES", "EDQUOT", "EIO", "ENOSPC", "EROFS"],
    },
    Family {
        system_calls: &["fchmod", "fchown", "fsetxattr"],
        errors: &["EACCES", "EDQUOT", "EIO", "ENOSPC", "EROFS"],
    },
    Family {
        system_calls: &[
            "access",
            "faccessat2",
            "fgetxattr",
            "flistxattr",
            "fstat",
            "lseek",
            "newfstatat",
            "readlink",
            "readlinkat",
            "statx",
        ],
        errors: &["EACCES", "EIO"],
    },
    Family { system_calls: &["fcntl"], errors: &["EMFILE"] },
];

/// Where the manual pages have EINTR, so that who is interrupted has to try again.
const INTERRUPTIBLE: &[&str] = &[
    "fdatasync",
    "flock",
    "fsync",
    "ftruncate",
    "open",
    "openat",
    "openat2",
    "pread64",
    "pwrite64",
    "read",
    "write",
];

/// All system calls that are looked at.
pub(super) fn system_calls() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().flat_map(|family| family.system_calls).copied()
}

/// What can go wrong there.
pub(super) fn faults_of(system_call: &str) -> impl Iterator<Item = Fault> {
    let family = FAMILIES.iter().find(|family| family.system_calls.contains(&system_call));
    let errors = family.map_or(&[][..], |family| family.errors);
    std::iter::once(Fault::Kill).chain(errors.iter().copied().map(Fault::Error))
}

/// Whether a call must go on as if nothing had been.
pub(super) fn must_be_retried(system_call: &str, fault: Fault) -> bool {
    fault == Fault::Error("EINTR") && INTERRUPTIBLE.contains(&system_call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_call_is_in_one_family() {
        let mut names: Vec<&str> = system_calls().collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(INTERRUPTIBLE.iter().all(|name| names.contains(name)));
    }

    #[test]
    fn an_unknown_system_call_can_still_be_the_last() {
        assert_eq!(faults_of("brk").collect::<Vec<_>>(), [Fault::Kill]);
        assert!(must_be_retried("write", Fault::Error("EINTR")));
        assert!(!must_be_retried("write", Fault::Kill));
    }
}
