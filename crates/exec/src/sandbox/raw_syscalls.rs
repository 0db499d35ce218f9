//! System calls without a safe wrapper in our dependencies: the only `unsafe` code of this workspace.

use std::ffi::CStr;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Pid, ioctl_tiocsctty};
use seccompiler::sock_filter;

/// The side of a fork on which a process is.
pub(crate) enum Forked {
    Parent(Pid),
    Child,
}

/// Forks this process. It must have a single thread: otherwise the child could wait for ever for a lock that
/// another thread held.
#[expect(unsafe_code, reason = "a fork is unsafe in a process with threads")]
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: a shim has one thread until it has started its shell, so the child has all threads.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        child => Pid::from_raw(child).map(Forked::Parent).ok_or(io::ErrorKind::Other.into()),
    }
}

/// Forks this process, which must have a single thread. The child is a child of this process's parent.
#[expect(unsafe_code, reason = "a fork is unsafe in a process with threads")]
pub(crate) fn fork_sibling() -> io::Result<Forked> {
    // SAFETY: as in `fork`. The C library is not told: its copy of the thread id stays that of this process. Only `abort`
    // and robust mutexes use that copy, and the next `fork` corrects it.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_PARENT, 0, 0, 0, 0) };
    match i32::try_from(child) {
        Ok(-1) => Err(io::Error::last_os_error()),
        Ok(0) => Ok(Forked::Child),
        child => {
            let child = child.ok().and_then(Pid::from_raw);
            child.map(Forked::Parent).ok_or(io::ErrorKind::Other.into())
        }
    }
}

/// Reads the end of the kernel log. Returns the number of bytes. Many systems allow it to root only.
#[expect(unsafe_code, reason = "no dependency wraps it")]
pub(crate) fn read_kernel_log(buffer: &mut [u8]) -> io::Result<usize> {
    const READ_ALL: libc::c_int = 3;
    let length = libc::c_int::try_from(buffer.len()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the kernel writes at most `length` bytes, which the buffer has.
    let read = unsafe { libc::klogctl(READ_ALL, buffer.as_mut_ptr().cast(), length) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Makes this process the leader of a new process session. rustix expects the id of the session, but old versions of gVisor
/// return 0.
#[expect(
    unsafe_code,
    reason = "the wrapper in our dependencies requires a process id as the result"
)]
pub(crate) fn start_process_session() -> io::Result<()> {
    // SAFETY: it has no arguments, and changes nothing that Rust knows of.
    match unsafe { libc::setsid() } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Makes a program start in a new session, with its stdin as the controlling terminal.
#[expect(unsafe_code, reason = "std has no safe way to start a program in a new session")]
pub(crate) fn start_in_terminal_session(program: &mut Command) {
    let begin_session = || {
        start_process_session()?;
        ioctl_tiocsctty(rustix::stdio::stdin())?;
        Ok(())
    };
    // SAFETY: between fork and exec, the closure makes two system calls and allocates nothing.
    unsafe { program.pre_exec(begin_session) };
}

/// The changes of `mount_setattr`: `struct mount_attr`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MountAttr {
    pub(super) set: u64,
    pub(super) clear: u64,
    /// `MS_PRIVATE` or another propagation type. Zero leaves it as it is.
    pub(super) propagation: u64,
    pub(super) user_namespace: u64,
}

/// Changes a mount and all mounts below it. An empty path selects the mount of `directory`.
#[expect(unsafe_code, reason = "no dependency wraps mount_setattr")]
pub(super) fn mount_setattr(
    directory: impl AsFd,
    path: &CStr,
    change: MountAttr,
) -> io::Result<()> {
    let flags = libc::AT_RECURSIVE | libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: the path ends with a zero, and the size is that of the structure. Both are only read, and
    // outlive the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory.as_fd().as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const change,
            size_of::<MountAttr>(),
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The rights that a ruleset handles: `struct landlock_ruleset_attr`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LandlockRulesetAttr {
    pub(super) files: u64,
    pub(super) network: u64,
    pub(super) scoped: u64,
}

/// The rights that a rule allows beneath a directory: `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct LandlockPathBeneathAttr {
    allowed: u64,
    parent: RawFd,
}

/// The rights that a rule allows on a TCP port: `struct landlock_net_port_attr`.
#[repr(C)]
struct LandlockNetPortAttr {
    allowed: u64,
    port: u64,
}

/// The Landlock version of this system. Fails if it has none.
#[expect(unsafe_code, reason = "no dependency wraps Landlock")]
pub(super) fn landlock_version() -> io::Result<i64> {
    const VERSION: u32 = 1;
    let nothing = std::ptr::null::<LandlockRulesetAttr>();
    // SAFETY: with this flag the call takes no structure and only returns a number.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, VERSION) };
    if answer > 0 { Ok(answer) } else { Err(io::Error::last_os_error()) }
}

/// Creates a ruleset. `size` is the size of the structure in this system's version.
#[expect(unsafe_code, reason = "no dependency wraps Landlock")]
pub(super) fn landlock_create_ruleset(
    handled: LandlockRulesetAttr,
    size: usize,
) -> io::Result<OwnedFd> {
    debug_assert!(size <= size_of::<LandlockRulesetAttr>());
    // SAFETY: the structure has at least this size, is only read, and outlives the call.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size, 0_u32)
    };
    match RawFd::try_from(answer) {
        // SAFETY: the kernel has just opened it for us, and nothing else owns it.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Allows rights beneath a directory, or on a file.
#[expect(unsafe_code, reason = "no dependency wraps Landlock")]
pub(super) fn landlock_add_rule(
    ruleset: impl AsFd,
    parent: impl AsFd,
    allowed: u64,
) -> io::Result<()> {
    const PATH_BENEATH: u32 = 1;
    let rule = LandlockPathBeneathAttr { allowed, parent: parent.as_fd().as_raw_fd() };
    // SAFETY: the structure has the type of this kind of rule, is only read, and outlives the call.
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

/// Allows rights on a TCP port.
#[expect(unsafe_code, reason = "no dependency wraps Landlock")]
pub(super) fn landlock_add_port_rule(
    ruleset: impl AsFd,
    port: u16,
    allowed: u64,
) -> io::Result<()> {
    const NET_PORT: u32 = 2;
    let rule = LandlockNetPortAttr { allowed, port: port.into() };
    // SAFETY: the structure has the type of this kind of rule, is only read, and outlives the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_fd().as_raw_fd(),
            NET_PORT,
            &raw const rule,
            0_u32,
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Restricts this thread and its future children to a ruleset.
#[expect(unsafe_code, reason = "no dependency wraps Landlock")]
pub(super) fn landlock_restrict_self(ruleset: impl AsFd) -> io::Result<()> {
    // SAFETY: takes a descriptor and no memory.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_fd().as_raw_fd(), 0_u32)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Installs a seccomp filter for this thread and its future children. Returns the listener for notifications.
#[expect(unsafe_code, reason = "no dependency installs a filter with a listener")]
pub(super) fn install_filter(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let length = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    // Both types describe the kernel's own structure.
    let filter = program.as_ptr().cast::<libc::sock_filter>().cast_mut();
    let program = libc::sock_fprog { len: length, filter };
    // Signals do not restart a notified call. Only newer kernels know this flag.
    let patient = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    for flags in [patient, 0] {
        // SAFETY: the program has this length, is only read, and outlives the call.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | flags,
                &raw const program,
            )
        };
        match RawFd::try_from(answer) {
            // SAFETY: the kernel has just opened it for us, and nothing else owns it.
            Ok(number) if number >= 0 => return Ok(unsafe { OwnedFd::from_raw_fd(number) }),
            _ if flags == 0 => break,
            _ => {}
        }
    }
    Err(io::Error::last_os_error())
}

/// Makes the kernel switch between the caller and the supervisor on the same CPU, where it can.
#[expect(unsafe_code, reason = "no dependency uses the listener's ioctls")]
pub(crate) fn enable_sync_wake_up(listener: impl AsFd) {
    const SYNC_WAKE_UP: u64 = 1;
    let number = listener.as_fd().as_raw_fd();
    // SAFETY: takes a number and no memory. Older kernels ignore it.
    unsafe { libc::ioctl(number, libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
}

/// A system call that waits for the response of the supervisor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notification {
    id: u64,
    /// The thread that makes it.
    pub(crate) thread: libc::pid_t,
    pub(crate) syscall: i64,
    pub(crate) arguments: [u64; 6],
}

/// Receives the next notification. Blocks if there is none.
#[expect(unsafe_code, reason = "no dependency uses the listener's ioctls")]
pub(crate) fn receive_notification(listener: impl AsFd) -> io::Result<Notification> {
    // SAFETY: a structure of numbers only, for which zero is valid.
    let mut noticed: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the structure has the type of this request, and outlives the call.
    let answer = unsafe {
        libc::ioctl(listener.as_fd().as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut noticed)
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    let thread = libc::pid_t::try_from(noticed.pid).map_err(io::Error::other)?;
    let data = noticed.data;
    Ok(Notification { id: noticed.id, thread, syscall: data.nr.into(), arguments: data.args })
}

/// Whether the call still waits. Then data that was read from its thread was really its own.
#[expect(unsafe_code, reason = "no dependency uses the listener's ioctls")]
pub(crate) fn is_still_pending(listener: impl AsFd, waiting: &Notification) -> bool {
    let number = listener.as_fd().as_raw_fd();
    // SAFETY: the id is only read, and outlives the call.
    unsafe { libc::ioctl(number, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const waiting.id) == 0 }
}

/// Lets the kernel perform the call. All other restrictions of the thread still apply.
pub(crate) fn continue_syscall(listener: impl AsFd, waiting: &Notification) {
    let go_on = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    respond(listener, libc::seccomp_notif_resp { id: waiting.id, val: 0, error: 0, flags: go_on });
}

/// Makes the call fail with an errno.
pub(crate) fn fail_syscall(listener: impl AsFd, waiting: &Notification, errno: i32) {
    respond(listener, libc::seccomp_notif_resp { id: waiting.id, val: 0, error: -errno, flags: 0 });
}

/// Makes the call return a value without being performed.
pub(crate) fn return_value(listener: impl AsFd, waiting: &Notification, value: i64) {
    let response = libc::seccomp_notif_resp { id: waiting.id, val: value, error: 0, flags: 0 };
    respond(listener, response);
}

/// Adds a descriptor of this file to the calling process, which still waits. Returns its number.
#[expect(unsafe_code, reason = "no dependency uses the listener's ioctls")]
pub(crate) fn add_descriptor(
    listener: impl AsFd,
    waiting: &Notification,
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
    // SAFETY: the structure has the type of this request, is only read, and outlives the call.
    let answer = unsafe { libc::ioctl(number, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const added) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer.into()) }
}

/// Chooses the signal for a broken lease. The `libc` crate does not define it.
const F_SETSIG: libc::c_int = 10;

/// Whether no descriptor and no mapping of a file can write it: the kernel grants a read lease only then. The
/// descriptor must be open for reading only. Returns `false` where the file system has no leases.
#[expect(unsafe_code, reason = "no dependency takes leases")]
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
#[expect(unsafe_code, reason = "no dependency takes an address as bytes")]
pub(crate) fn connect(socket: impl AsFd, address: &[u8]) -> rustix::io::Result<()> {
    let (number, length) = (socket.as_fd().as_raw_fd(), address_length(address));
    // SAFETY: the address has this length, is only read, and outlives the call.
    check_result(unsafe { libc::connect(number, address.as_ptr().cast(), length) })
}

/// Binds a socket to an address of any family.
#[expect(unsafe_code, reason = "no dependency takes an address as bytes")]
pub(crate) fn bind(socket: impl AsFd, address: &[u8]) -> rustix::io::Result<()> {
    let (number, length) = (socket.as_fd().as_raw_fd(), address_length(address));
    // SAFETY: the address has this length, is only read, and outlives the call.
    check_result(unsafe { libc::bind(number, address.as_ptr().cast(), length) })
}

fn address_length(address: &[u8]) -> libc::socklen_t {
    libc::socklen_t::try_from(address.len()).unwrap_or(0)
}

fn check_result(answer: libc::c_int) -> rustix::io::Result<()> {
    if answer == 0 {
        return Ok(());
    }
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    Err(rustix::io::Errno::from_raw_os_error(errno))
}

#[expect(unsafe_code, reason = "no dependency uses the listener's ioctls")]
fn respond(listener: impl AsFd, answer: libc::seccomp_notif_resp) {
    let number = listener.as_fd().as_raw_fd();
    // SAFETY: the structure has the type of this request, is only read, and outlives the call. It fails only
    // if the thread is gone, which then needs no response.
    unsafe { libc::ioctl(number, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
}
