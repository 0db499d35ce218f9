//! The system calls that no crate of ours has a safe form of: the only `unsafe` of this workspace.

use std::ffi::CStr;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use rustix::process::Pid;

/// Which of the two a process is after it forked.
pub(crate) enum Forked {
    Parent(Pid),
    Child,
}

/// Makes a copy of this process, which must have one thread only: else the child could wait for ever for
/// what another thread held.
#[expect(unsafe_code, reason = "a fork is unsafe in a process with threads")]
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: a keeper has one thread until it has started its shell, so the child has all there is.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        child => Pid::from_raw(child).map(Forked::Parent).ok_or(io::ErrorKind::Other.into()),
    }
}

/// What is to change about mounts: `struct mount_attr`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MountChange {
    pub(super) set: u64,
    pub(super) clear: u64,
    /// How what others mount there arrives here: one of `MS_PRIVATE` and its like, or zero for as it is.
    pub(super) propagation: u64,
    pub(super) user_namespace: u64,
}

/// Changes a mount and all below it. An empty path is the mount that `directory` is.
#[expect(unsafe_code, reason = "mount_setattr is in no crate that we have")]
pub(super) fn change_mounts(
    directory: impl AsFd,
    path: &CStr,
    change: MountChange,
) -> io::Result<()> {
    let flags = libc::AT_RECURSIVE | libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: the path ends with a zero, and the structure is as large as it is said to be; both are only
    // read, and outlive the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory.as_fd().as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const change,
            size_of::<MountChange>(),
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What a set of Landlock's rules is about: `struct landlock_ruleset_attr`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LandlockHandled {
    pub(super) files: u64,
    pub(super) network: u64,
    pub(super) scoped: u64,
}

/// What the rules allow beneath a directory: `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct LandlockBeneath {
    allowed: u64,
    parent: RawFd,
}

/// The version of Landlock that this system has; an error, if none.
#[expect(unsafe_code, reason = "Landlock is in no crate that we have")]
pub(super) fn landlock_version() -> io::Result<i64> {
    const VERSION: u32 = 1;
    let nothing = std::ptr::null::<LandlockHandled>();
    // SAFETY: with this flag the call takes no structure, and only answers a number.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, VERSION) };
    if answer > 0 { Ok(answer) } else { Err(io::Error::last_os_error()) }
}

/// Begins a set of rules. `size` is how much of the structure this system's version knows.
#[expect(unsafe_code, reason = "Landlock is in no crate that we have")]
pub(super) fn landlock_ruleset(handled: LandlockHandled, size: usize) -> io::Result<OwnedFd> {
    debug_assert!(size <= size_of::<LandlockHandled>());
    // SAFETY: the structure is at least as large as it is said to be, is only read, and outlives the call.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size, 0_u32)
    };
    match RawFd::try_from(answer) {
        // SAFETY: the system has just opened it for us, and nobody else knows of it.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Allows something beneath a directory, or on a file.
#[expect(unsafe_code, reason = "Landlock is in no crate that we have")]
pub(super) fn landlock_allow(
    ruleset: impl AsFd,
    parent: impl AsFd,
    allowed: u64,
) -> io::Result<()> {
    const PATH_BENEATH: u32 = 1;
    let rule = LandlockBeneath { allowed, parent: parent.as_fd().as_raw_fd() };
    // SAFETY: the structure is the one that belongs to this kind of rule, is only read, and outlives the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_fd().as_raw_fd(),
            PATH_BENEATH,
            &raw const rule,
            0_u32,
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Holds this thread, and all that it starts, to a set of rules.
#[expect(unsafe_code, reason = "Landlock is in no crate that we have")]
pub(super) fn landlock_restrict(ruleset: impl AsFd) -> io::Result<()> {
    // SAFETY: takes a descriptor and no memory.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_fd().as_raw_fd(), 0_u32)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
