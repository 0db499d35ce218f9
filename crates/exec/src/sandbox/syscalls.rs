//! The system calls that no crate of ours has a safe form of: the only `unsafe` of this workspace.

use std::ffi::CStr;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use rustix::process::Pid;
use seccompiler::sock_filter;

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

/// Puts a filter in front of the calls of this thread and of all that it starts. Answers where the calls
/// wait that the filter does not decide on.
#[expect(unsafe_code, reason = "no crate that we have asks for a listener")]
pub(super) fn listen(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let length = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    // Both describe the system's own structure.
    let filter = program.as_ptr().cast::<libc::sock_filter>().cast_mut();
    let program = libc::sock_fprog { len: length, filter };
    // So that a signal does not make a waiting call begin anew; only newer systems know it.
    let patient = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    for flags in [patient, 0] {
        // SAFETY: the program is as long as it is said to be, is only read, and outlives the call.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | flags,
                &raw const program,
            )
        };
        match RawFd::try_from(answer) {
            // SAFETY: the system has just opened it for us, and nobody else knows of it.
            Ok(number) if number >= 0 => return Ok(unsafe { OwnedFd::from_raw_fd(number) }),
            _ if flags == 0 => break,
            _ => {}
        }
    }
    Err(io::Error::last_os_error())
}

/// Has the system go from who waits to who answers, and back, on one processor, where it can.
#[expect(unsafe_code, reason = "no crate that we have talks to a listener")]
pub(crate) fn answer_promptly(listener: impl AsFd) {
    const SYNC_WAKE_UP: u64 = 1;
    let number = listener.as_fd().as_raw_fd();
    // SAFETY: takes a number and no memory. Where it is not known, nothing happens.
    unsafe { libc::ioctl(number, libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
}

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    id: u64,
    /// The thread that makes it.
    pub(crate) thread: libc::pid_t,
    pub(crate) call: i64,
    pub(crate) arguments: [u64; 6],
}

/// Takes the next call that waits. Who has not heard that there is one may wait for it here.
#[expect(unsafe_code, reason = "no crate that we have talks to a listener")]
pub(crate) fn take_waiting(listener: impl AsFd) -> io::Result<Waiting> {
    // SAFETY: a structure of numbers only, for which zero is a value.
    let mut noticed: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is the one that belongs to this request, and outlives the call.
    let answer = unsafe {
        libc::ioctl(listener.as_fd().as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut noticed)
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    let thread = libc::pid_t::try_from(noticed.pid).map_err(io::Error::other)?;
    let data = noticed.data;
    Ok(Waiting { id: noticed.id, thread, call: data.nr.into(), arguments: data.args })
}

/// Whether the call still waits: then what was read of its thread was really its own.
#[expect(unsafe_code, reason = "no crate that we have talks to a listener")]
pub(crate) fn still_waits(listener: impl AsFd, waiting: &Waiting) -> bool {
    let number = listener.as_fd().as_raw_fd();
    // SAFETY: the number is only read, and outlives the call.
    unsafe { libc::ioctl(number, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const waiting.id) == 0 }
}

/// Lets the call happen, as if nobody had asked: whatever else confines the thread still does.
pub(crate) fn let_happen(listener: impl AsFd, waiting: &Waiting) {
    let go_on = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    answer(listener, libc::seccomp_notif_resp { id: waiting.id, val: 0, error: 0, flags: go_on });
}

/// Has the call fail with an error.
pub(crate) fn let_fail(listener: impl AsFd, waiting: &Waiting, errno: i32) {
    answer(listener, libc::seccomp_notif_resp { id: waiting.id, val: 0, error: -errno, flags: 0 });
}

/// Has the call return a value, without having happened.
pub(crate) fn let_return(listener: impl AsFd, waiting: &Waiting, value: i64) {
    let answered = libc::seccomp_notif_resp { id: waiting.id, val: value, error: 0, flags: 0 };
    answer(listener, answered);
}

/// Adds a descriptor of this file to the process that made the call, which still waits. Answers its number.
#[expect(unsafe_code, reason = "no crate that we have talks to a listener")]
pub(crate) fn add_descriptor(
    listener: impl AsFd,
    waiting: &Waiting,
    file: impl AsFd,
    close_on_exec: bool,
) -> io::Result<i64> {
    let flags = if close_on_exec { libc::O_CLOEXEC.unsigned_abs() } else { 0 };
    let added = libc::seccomp_notif_addfd {
        id: waiting.id,
        flags: 0,
        srcfd: file.as_fd().as_raw_fd().unsigned_abs(),
        newfd: 0,
        newfd_flags: flags,
    };
    let number = listener.as_fd().as_raw_fd();
    // SAFETY: the structure is the one that belongs to this request, is only read, and outlives the call.
    let answer = unsafe { libc::ioctl(number, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const added) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer.into()) }
}

/// Chooses the signal for a broken lease. The `libc` crate does not define it.
const F_SETSIG: libc::c_int = 10;

/// Whether no descriptor and no mapping of a file can write it: the kernel grants a read lease only then. The
/// descriptor must be open for reading only. Returns `false` where the file system has no leases.
#[expect(unsafe_code, reason = "no crate that we have asks for a lease")]
pub fn has_no_writer(file: impl AsFd) -> bool {
    let number = file.as_fd().as_raw_fd();
    // A process that opens the file while the lease is held makes the kernel send a signal. SIGIO, the default,
    // would end this process; SIGURG is ignored.
    // SAFETY: these commands take plain numbers, and the descriptor is open.
    let is_safe = unsafe { libc::fcntl(number, F_SETSIG, libc::SIGURG) } == 0;
    // SAFETY: as above.
    let granted = is_safe && unsafe { libc::fcntl(number, libc::F_SETLEASE, libc::F_RDLCK) } == 0;
    // SAFETY: as above.
    granted && unsafe { libc::fcntl(number, libc::F_SETLEASE, libc::F_UNLCK) } == 0
}

/// Connects a socket to an address of any family.
#[expect(unsafe_code, reason = "no crate that we have takes an address as bytes")]
pub(crate) fn connect(socket: impl AsFd, address: &[u8]) -> rustix::io::Result<()> {
    let (number, length) = (socket.as_fd().as_raw_fd(), address_length(address));
    // SAFETY: the address is as long as it is said to be, is only read, and outlives the call.
    outcome(unsafe { libc::connect(number, address.as_ptr().cast(), length) })
}

/// Binds a socket to an address of any family.
#[expect(unsafe_code, reason = "no crate that we have takes an address as bytes")]
pub(crate) fn bind(socket: impl AsFd, address: &[u8]) -> rustix::io::Result<()> {
    let (number, length) = (socket.as_fd().as_raw_fd(), address_length(address));
    // SAFETY: the address is as long as it is said to be, is only read, and outlives the call.
    outcome(unsafe { libc::bind(number, address.as_ptr().cast(), length) })
}

fn address_length(address: &[u8]) -> libc::socklen_t {
    libc::socklen_t::try_from(address.len()).unwrap_or(0)
}

fn outcome(answer: libc::c_int) -> rustix::io::Result<()> {
    if answer == 0 {
        return Ok(());
    }
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    Err(rustix::io::Errno::from_raw_os_error(errno))
}

#[expect(unsafe_code, reason = "no crate that we have talks to a listener")]
fn answer(listener: impl AsFd, answer: libc::seccomp_notif_resp) {
    let number = listener.as_fd().as_raw_fd();
    // SAFETY: the structure is the one that belongs to this request, is only read, and outlives the call. It
    // fails only if the thread is gone, which needs no answer.
    unsafe { libc::ioctl(number, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
}
