//! What of the system no tool opens, known by what it is and not by its name.
//!
//! A path says little about what it leads to: a bind mount, a hard link or a file system that does not tell
//! upper case from lower case gives a file a second path. So each directory on the way, and what is opened in
//! the end, is compared by device and number, and by the kind of its file system.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::FsWord;

/// File systems in which files are answers of the kernel, about processes and devices among others. To read
/// one of them may do anything.
const MADE_UP: [FsWord; 17] = [
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

/// What of the system no tool opens.
#[derive(Debug, Default)]
pub struct ForbiddenFiles {
    identities: HashSet<(u64, u64)>,
}

impl ForbiddenFiles {
    /// What is at these paths now, links followed. Those that are not there are passed over.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> ForbiddenFiles {
        let identity = |path: &Path| {
            let found = rustix::fs::stat(path).ok()?;
            Some((found.st_dev, found.st_ino))
        };
        ForbiddenFiles { identities: paths.into_iter().filter_map(identity).collect() }
    }

    /// Whether something may be opened or passed on the way.
    pub(crate) fn admits(&self, handle: BorrowedFd<'_>) -> bool {
        let is_closed = match rustix::fs::fstat(handle) {
            Ok(found) => self.identities.contains(&(found.st_dev, found.st_ino)),
            Err(_) => true,
        };
        !is_closed
            && rustix::fs::fstatfs(handle).is_ok_and(|found| !MADE_UP.contains(&found.f_type))
    }
}
