//! System files that no tool opens, recognised by identity and not by name.
//!
//! A path does not identify a file: a bind mount, a hard link or a case-insensitive file system gives it a
//! second path. So each directory on the way, and the opened file itself, is compared by device and inode,
//! and by the type of its file system.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::FsWord;

/// Virtual file systems of the kernel, about processes and devices among others. Reading their files may have
/// side effects.
const VIRTUAL_FILE_SYSTEMS: [FsWord; 17] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xf97c_ff8c, // selinuxfs
    0xcafe_4a11, // bpf
    0x6265_6570, // configfs
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0x1cd1,      // devpts
    0x1980_0202, // mqueue
    0x4249_4e4d, // binfmt_misc
    0x6573_5543, // fusectl
    0x6e73_6673, // nsfs
];

/// System files that no tool opens.
#[derive(Debug, Default)]
pub struct ForbiddenFiles {
    identities: HashSet<(u64, u64)>,
}

impl ForbiddenFiles {
    /// The files at these paths, symlinks followed. Missing paths are skipped.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> ForbiddenFiles {
        let identity = |path: &Path| {
            let found = rustix::fs::stat(path).ok()?;
            Some((found.st_dev, found.st_ino))
        };
        ForbiddenFiles { identities: paths.into_iter().filter_map(identity).collect() }
    }

    /// Whether a file may be opened, or a directory may be passed on the way.
    pub(crate) fn admits(&self, handle: BorrowedFd<'_>) -> bool {
        let is_forbidden = match rustix::fs::fstat(handle) {
            Ok(found) => self.identities.contains(&(found.st_dev, found.st_ino)),
            Err(_) => true,
        };
        !is_forbidden
            && rustix::fs::fstatfs(handle)
                .is_ok_and(|found| !VIRTUAL_FILE_SYSTEMS.contains(&found.f_type))
    }
}
