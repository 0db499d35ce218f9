//! Which files a system call is about to change, by the names that it gives.
//!
//! Looked up as the thread that makes the call would: from its own root, directory or descriptor. What is
//! found is true at that moment; a thread that changes the name while another waits on it can mislead who
//! looks, and nobody else.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::memory::Memory;
use crate::sandbox::Waiting;

/// A name that a call is about to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// The real path: of the file, or of where one would be.
    pub path: PathBuf,
    /// If it is a directory, all that is beneath it is meant: it is renamed.
    pub whole: bool,
}

/// Calls that change files by name, whatever their other arguments are.
pub(crate) const TOUCHING: &[i64] = &[
    libc::SYS_openat2,
    libc::SYS_truncate,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_renameat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
];

/// Those among them that open files.
pub(crate) const MAKING: &[i64] = &[
    libc::SYS_openat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
];

/// Calls that open files, each with the argument that has its flags.
pub(crate) const OPENING: &[(i64, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// Not in every version of libc.
const FCHMODAT2: i64 = 452;

/// A name as a call gives it, read once for whoever wants to know.
#[derive(Debug)]
pub(crate) struct Name {
    thread: i32,
    from: From,
    /// Nothing, if the descriptor is meant itself.
    given: Option<PathBuf>,
    /// A link at its end is not meant itself.
    follow: bool,
    whole: bool,
    /// What is to be done with it.
    pub(crate) meant: Use,
}

/// What a call does with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Opens it, with these flags.
    Open(u64),
    /// Makes it: it must be new.
    Make,
    Remove,
    Rename,
    /// Renames something to it.
    Replace,
    /// Changes what is there.
    Change,
    /// Gives it another name; nothing happens to it.
    Link,
}

#[derive(Debug)]
enum From {
    Cwd,
    Descriptor(i32),
}

/// The names that a waiting call is about to change.
pub(crate) fn names(waiting: &Waiting) -> io::Result<Vec<Name>> {
    let (thread, arguments) = (waiting.thread, waiting.arguments);
    let memory = Memory::of(thread);
    let here = |name: usize, meant: Use| -> io::Result<Name> {
        let given = Some(memory.path(arguments[name])?);
        let (follow, whole) = (meant.follows(), matches!(meant, Use::Rename | Use::Replace));
        Ok(Name { thread, from: From::Cwd, given, follow, whole, meant })
    };
    let at = |from: usize, name: usize, meant: Use| -> io::Result<Name> {
        Ok(Name { from: From::argument(arguments[from]), ..here(name, meant)? })
    };
    let names = match waiting.call {
        libc::SYS_openat => vec![at(0, 1, Use::Open(arguments[2]))],
        libc::SYS_openat2 => match memory.number(arguments[2])? {
            flags if changes(flags) => vec![at(0, 1, Use::Open(flags))],
            _ => Vec::new(),
        },
        libc::SYS_unlinkat => vec![at(0, 1, Use::Remove)],
        libc::SYS_mkdirat | libc::SYS_mknodat => vec![at(0, 1, Use::Make)],
        libc::SYS_renameat2 => vec![at(0, 1, Use::Rename), at(2, 3, Use::Replace)],
        // Who writes to the new name writes to the old one.
        libc::SYS_linkat => vec![at(0, 1, Use::Link), at(2, 3, Use::Make)],
        libc::SYS_symlinkat => vec![at(1, 2, Use::Make)],
        libc::SYS_fchmodat | FCHMODAT2 => vec![at(0, 1, Use::Change)],
        libc::SYS_fchmod => {
            let (from, meant) = (From::argument(arguments[0]), Use::Change);
            vec![Ok(Name { thread, from, given: None, follow: true, whole: false, meant })]
        }
        libc::SYS_truncate => vec![here(0, Use::Change)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => vec![here(0, Use::Open(arguments[1]))],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => vec![here(0, Use::Open(CREAT))],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => vec![here(0, Use::Change)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink | libc::SYS_rmdir => vec![here(0, Use::Remove)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir | libc::SYS_mknod => vec![here(0, Use::Make)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => vec![here(0, Use::Rename), here(1, Use::Replace)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_renameat => vec![at(0, 1, Use::Rename), at(2, 3, Use::Replace)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link => vec![here(0, Use::Link), here(1, Use::Make)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink => vec![here(1, Use::Make)],
        _ => Vec::new(),
    };
    names.into_iter().collect()
}

/// What `creat` is short for.
#[cfg(target_arch = "x86_64")]
const CREAT: u64 = (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC) as u64;

/// Whether a file that is opened so may be changed, or made.
pub(crate) fn changes(flags: u64) -> bool {
    has(flags, libc::O_ACCMODE) || has(flags, libc::O_CREAT) || has(flags, libc::O_TRUNC)
}

/// Whether flags have one of these bits.
pub(crate) fn has(flags: u64, bits: libc::c_int) -> bool {
    flags & u64::from(bits.unsigned_abs()) != 0
}

impl Use {
    /// Whether a link at the end of the name is followed.
    pub(crate) fn follows(self) -> bool {
        match self {
            Use::Open(flags) => {
                let must_be_new = has(flags, libc::O_CREAT) && has(flags, libc::O_EXCL);
                !(has(flags, libc::O_NOFOLLOW) || must_be_new)
            }
            Use::Change => true,
            Use::Make | Use::Remove | Use::Rename | Use::Replace | Use::Link => false,
        }
    }
}

impl From {
    fn argument(argument: u64) -> From {
        // A number of 32 bits, whatever stands above them.
        match argument as u32 as i32 {
            libc::AT_FDCWD => From::Cwd,
            descriptor => From::Descriptor(descriptor),
        }
    }

    /// What leads there from here.
    fn path(&self, thread: i32) -> PathBuf {
        match self {
            From::Cwd => format!("/proc/{thread}/cwd").into(),
            From::Descriptor(number) => format!("/proc/{thread}/fd/{number}").into(),
        }
    }
}

impl Name {
    /// The file that is about to be changed. A name that leads nowhere is none: the call will fail.
    pub(crate) fn touch(&self) -> io::Result<Option<Touch>> {
        let whole = self.whole;
        let Some(given) = &self.given else {
            let path = fs::read_link(self.from.path(self.thread))?;
            return Ok(Some(Touch { path, whole }));
        };
        let Some(path) = self.seen_from_here(given) else { return Ok(None) };
        if self.follow
            && let Some(path) = real_path(&path)
        {
            return Ok(Some(Touch { path, whole }));
        }
        let named = path.parent().zip(path.file_name());
        let found = named.and_then(|(parent, name)| Some(real_path(parent)?.join(name)));
        Ok(found.map(|path| Touch { path, whole }))
    }

    /// The path from the root of the thread's files, links not followed.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let Some(given) = &self.given else {
            return fs::read_link(self.from.path(self.thread)).ok();
        };
        if given.as_os_str().is_empty() {
            return None;
        }
        match given.is_absolute() {
            true => Some(given.clone()),
            false => Some(fs::read_link(self.from.path(self.thread)).ok()?.join(given)),
        }
    }

    /// Whether it names something in a directory, and not that directory itself by a dot: a name of that kind can
    /// be neither made, removed nor renamed.
    pub(crate) fn is_proper(&self) -> bool {
        let given = self.given.as_ref().map_or(&b""[..], |given| given.as_os_str().as_bytes());
        let last = given.rsplit(|&byte| byte == b'/').find(|part| !part.is_empty());
        last.is_some_and(|last| last != b"." && last != b"..")
    }

    /// The same path for this process: through the thread's own root or directory.
    fn seen_from_here(&self, given: &Path) -> Option<PathBuf> {
        if given.as_os_str().is_empty() {
            return None;
        }
        // A slash at the end says no more than that it is a directory.
        let given: PathBuf = given.components().collect();
        let thread = Path::new("/proc").join(self.thread.to_string());
        Some(match given.strip_prefix("/") {
            // `self` would be this process.
            Ok(absolute) => match absolute.strip_prefix("proc/self") {
                Ok(own) => thread.join(own),
                Err(_) => thread.join("root").join(absolute),
            },
            Err(_) => self.from.path(self.thread).join(given),
        })
    }
}

/// Where a path leads; nothing, if nothing is there. Nothing is opened but its name.
fn real_path(path: &Path) -> Option<PathBuf> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    path_of(&rustix::fs::open(path, flags, Mode::empty()).ok()?)
}

/// Under which name whoever has it open finds it.
pub(crate) fn path_of(file: &OwnedFd) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}
