//! The possible faults of each system call.

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// The process is killed just before the system call.
    Kill,
    /// The system call fails with this error.
    Error(&'static str),
}

impl Fault {
    pub(super) fn name(self) -> &'static str {
        match self {
            Fault::Kill => "KILL",
            Fault::Error(name) => name,
        }
    }

    /// The fault in strace's syntax.
    pub(super) fn words(self) -> String {
        match self {
            Fault::Kill => "signal=KILL".to_owned(),
            Fault::Error(name) => format!("error={name}"),
        }
    }
}

/// System calls that access files, and their possible errors.
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

/// System calls that can fail with EINTR according to their manual pages, so that the caller must retry.
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

/// All tested system calls.
pub(super) fn system_calls() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().flat_map(|family| family.system_calls).copied()
}

/// The possible faults of a system call.
pub(super) fn faults_of(system_call: &str) -> impl Iterator<Item = Fault> {
    let family = FAMILIES.iter().find(|family| family.system_calls.contains(&system_call));
    let errors = family.map_or(&[][..], |family| family.errors);
    std::iter::once(Fault::Kill).chain(errors.iter().copied().map(Fault::Error))
}

/// Whether the call must retry and succeed.
pub(super) fn must_be_retried(system_call: &str, fault: Fault) -> bool {
    fault == Fault::Error("EINTR") && INTERRUPTIBLE.contains(&system_call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_are_in_one_family_only() {
        let mut names: Vec<&str> = system_calls().collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(INTERRUPTIBLE.iter().all(|name| names.contains(name)));
    }

    #[test]
    fn an_unknown_system_call_can_still_be_killed() {
        assert_eq!(faults_of("brk").collect::<Vec<_>>(), [Fault::Kill]);
        assert!(must_be_retried("write", Fault::Error("EINTR")));
        assert!(!must_be_retried("write", Fault::Kill));
    }
}
