//! Which files a system call is about to change, by the names that it gives.
//!
//! Looked up as the thread that makes the call would: from its own root, directory or descriptor. What is
//! found is true at that moment; a thread that changes the name while another waits on it can mislead who
//! looks, and nobody else.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, readlinkat};

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

/// The files that a waiting call is about to change. Names that lead nowhere are none: the call will fail.
pub(crate) fn touches(waiting: &Waiting) -> io::Result<Vec<Touch>> {
    let mut touches = Vec::new();
    for name in names(waiting)? {
        touches.extend(name.find(waiting.thread)?);
    }
    Ok(touches)
}

/// A name as a call gives it.
struct Name {
    from: From,
    /// Where in the thread's memory; nothing, if the descriptor is meant itself.
    at: Option<u64>,
    /// A link at its end is not meant itself.
    follow: bool,
    whole: bool,
}

enum From {
    Cwd,
    Descriptor(i32),
}

fn names(waiting: &Waiting) -> io::Result<Vec<Name>> {
    let arguments = waiting.arguments;
    let at = |from: usize, name: usize, follow: bool| {
        let from = From::argument(arguments[from]);
        Name { from, at: Some(arguments[name]), follow, whole: false }
    };
    let whole = |name: Name| Name { whole: true, ..name };
    let opened = |name: Name, flags: u64| Name { follow: follows(flags), ..name };
    Ok(match waiting.call {
        libc::SYS_openat => vec![opened(at(0, 1, true), arguments[2])],
        libc::SYS_openat2 => {
            let flags = Memory::of(waiting.thread).number(arguments[2])?;
            if changes(flags) { vec![opened(at(0, 1, true), flags)] } else { Vec::new() }
        }
        libc::SYS_unlinkat | libc::SYS_mkdirat | libc::SYS_mknodat => vec![at(0, 1, false)],
        libc::SYS_renameat2 => vec![whole(at(0, 1, false)), whole(at(2, 3, false))],
        // Who writes to the new name writes to the old one.
        libc::SYS_linkat => vec![at(0, 1, false), at(2, 3, false)],
        libc::SYS_symlinkat => vec![at(1, 2, false)],
        libc::SYS_fchmodat | FCHMODAT2 => vec![at(0, 1, true)],
        libc::SYS_fchmod => {
            let from = From::argument(arguments[0]);
            vec![Name { from, at: None, follow: true, whole: false }]
        }
        call => named_alone(call, &arguments),
    })
}

/// Names of calls that take no directory.
fn named_alone(call: i64, arguments: &[u64; 6]) -> Vec<Name> {
    let name = |at: usize, follow: bool| Name {
        from: From::Cwd,
        at: Some(arguments[at]),
        follow,
        whole: false,
    };
    match call {
        libc::SYS_truncate => vec![name(0, true)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => vec![name(0, follows(arguments[1]))],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat | libc::SYS_chmod => vec![name(0, true)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink | libc::SYS_mkdir | libc::SYS_mknod => vec![name(0, false)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => {
            [0, 1].map(|at| Name { whole: true, ..name(at, false) }).into_iter().collect()
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_renameat => [0, 2]
            .map(|at| Name {
                from: From::argument(arguments[at]),
                whole: true,
                ..name(at + 1, false)
            })
            .into_iter()
            .collect(),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link => vec![name(0, false), name(1, false)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink => vec![name(1, false)],
        _ => Vec::new(),
    }
}

/// Whether a file that is opened so may be changed, or made.
pub(crate) fn changes(flags: u64) -> bool {
    let has = |flag: libc::c_int| flags & u64::from(flag.unsigned_abs()) != 0;
    has(libc::O_ACCMODE) || has(libc::O_CREAT) || has(libc::O_TRUNC)
}

/// Whether a link at the end of the name is followed.
fn follows(flags: u64) -> bool {
    let has = |flag: libc::c_int| flags & u64::from(flag.unsigned_abs()) != 0;
    let must_be_new = has(libc::O_CREAT) && has(libc::O_EXCL);
    !(has(libc::O_NOFOLLOW) || must_be_new)
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
    fn find(&self, thread: i32) -> io::Result<Option<Touch>> {
        let whole = self.whole;
        let Some(at) = self.at else {
            let path = readlinkat(CWD, self.from.path(thread), Vec::new())?;
            let path = PathBuf::from(OsString::from_vec(path.into_bytes()));
            return Ok(Some(Touch { path, whole }));
        };
        let given = Memory::of(thread).path(at)?;
        let Some(path) = seen_from_here(&self.from, thread, &given) else { return Ok(None) };
        if self.follow
            && let Some(path) = real_path(&path)
        {
            return Ok(Some(Touch { path, whole }));
        }
        let named = path.parent().zip(path.file_name());
        let found = named.and_then(|(parent, name)| Some(real_path(parent)?.join(name)));
        Ok(found.map(|path| Touch { path, whole }))
    }
}

/// The same path for this process: through the thread's own root or directory.
fn seen_from_here(from: &From, thread: i32, given: &Path) -> Option<PathBuf> {
    if given.as_os_str().is_empty() {
        return None;
    }
    // A slash at the end says no more than that it is a directory.
    let given: PathBuf = given.components().collect();
    Some(match given.strip_prefix("/") {
        // `self` would be this process.
        Ok(absolute) => match absolute.strip_prefix("proc/self") {
            Ok(own) => Path::new("/proc").join(thread.to_string()).join(own),
            Err(_) => Path::new("/proc").join(thread.to_string()).join("root").join(absolute),
        },
        Err(_) => from.path(thread).join(given),
    })
}

/// Where a path leads; nothing, if nothing is there. Nothing is opened but its name.
fn real_path(path: &Path) -> Option<PathBuf> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&file);
    let real = readlinkat(CWD, format!("/proc/self/fd/{number}"), Vec::new()).ok()?;
    Some(PathBuf::from(OsString::from_vec(real.into_bytes())))
}
