//! The system calls that no command needs and that have led out of sandboxes before.
//!
//! A list of what is refused, not of what is allowed: builds use whatever there is. Where a namespace
//! keeps a command in, it is not refused what it needs inside; so nothing is said here about sending.
//!
//! And those that wait until somebody has looked at them, and then happen as if nobody had asked: those that a
//! sandbox refuses to honest work ([`super::refused`]) and, where somebody wants to know, all that change files
//! by name ([`crate::Witness`]).

use std::io;
use std::os::fd::OwnedFd;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter, sock_filter,
};

use super::kernel::listen;
use super::level::Level;
use super::{Confinement, Network};
use crate::step::{Failure, plainly};
use crate::touch::{MAKING, OPENING, TOUCHING};

/// Refused with `EPERM`.
const REFUSED: &[i64] = &[
    // Into other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Other namespaces and other mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // Files by number instead of by name.
    libc::SYS_open_by_handle_at,
    // The kernel's own machines, each with a history.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // The system as a whole.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_nfsservctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Answered as by a kernel that does not have them: programs have another way. The flags of `clone3` are
/// in memory, where a filter cannot see them; `clone` has them in its arguments.
const UNKNOWN: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    OPEN_TREE_ATTR,
];

/// Newer than our libc.
const OPEN_TREE_ATTR: i64 = 467;

/// Every kind of namespace that `clone` can make.
const NAMESPACES: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// Commands to terminals that type for the person at it.
const TYPING: [u32; 2] = [0x5412, 0x541c]; // TIOCSTI, TIOCLINUX

/// The numbers of the 32-bit calls that a 64-bit program can make where the kernel has them: the rules
/// know only the others.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Has this process, and all that it starts, refused what no command needs. Programs of another
/// architecture are ended: their calls have other numbers.
///
/// `listened` says that those wait that are listened to.
pub(super) fn refuse(confinement: &Confinement, listened: bool) -> Result<(), Failure> {
    let step = "refuse system calls";
    for program in [refused(confinement, listened), unknown()] {
        let program = plainly(step, program.map_err(io::Error::other))?;
        plainly(step, apply_filter(&program).map_err(to_io))?;
    }
    Ok(())
}

/// Has the calls of this process, and of all that it starts, wait that somebody wants to look at. Answers
/// where they wait; nothing, if there are none.
pub(super) fn listened(confinement: &Confinement) -> io::Result<Option<OwnedFd>> {
    let Some(mut program) = looked_at(confinement).map_err(io::Error::other)? else {
        return Ok(None);
    };
    for step in &mut program {
        if step.code == ANSWER && step.k == STAND_IN {
            step.k = libc::SECCOMP_RET_USER_NOTIF;
        }
    }
    listen(&program).map(Some)
}

/// An answer that the compiler of filters knows, for the one that it does not.
const STAND_IN: u32 = libc::SECCOMP_RET_TRACE | 0x7063;

fn looked_at(confinement: &Confinement) -> Result<Option<BpfProgram>, BackendError> {
    let mut rules = Vec::new();
    if confinement.witnessed || confinement.level >= Level::Landlock {
        rules.extend(whole(if confinement.witnessed { TOUCHING } else { MAKING }));
        for (call, flags) in OPENING {
            rules.push((*call, opened_to_change(*flags)?));
        }
    }
    if asks_about_sockets(confinement) {
        let internet = INTERNET
            .iter()
            .map(|family| argument(0, SeccompCmpOp::Eq, u64::from(family.unsigned_abs())));
        rules.push((libc::SYS_socket, internet.collect::<Result<_, _>>()?));
    } else if confinement.sandbox.network == Network::None {
        rules.push((libc::SYS_connect, Vec::new()));
        // To an address, and not to whom it is connected already.
        let address = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
        rules.push((libc::SYS_sendto, vec![SeccompRule::new(vec![address])?]));
    }
    if rules.is_empty() {
        return Ok(None);
    }
    let wait = SeccompAction::Trace(STAND_IN & libc::SECCOMP_RET_DATA);
    let target = std::env::consts::ARCH.try_into()?;
    let rules = rules.into_iter().collect();
    SeccompFilter::new(rules, SeccompAction::Allow, wait, target)?.try_into().map(Some)
}

/// Where the network begins.
const INTERNET: &[libc::c_int] = &[libc::AF_INET, libc::AF_INET6];

/// Whether sockets are refused by whoever listens: what a filter refuses, nobody is shown.
fn asks_about_sockets(confinement: &Confinement) -> bool {
    confinement.sandbox.network == Network::None && !confinement.level.has_view()
}

/// Rules for opening a file in a way that may change it, or make it.
fn opened_to_change(flags: u8) -> Result<Vec<SeccompRule>, BackendError> {
    let ways = [
        (libc::O_ACCMODE, libc::O_WRONLY),
        (libc::O_ACCMODE, libc::O_RDWR),
        (libc::O_CREAT, libc::O_CREAT),
        (libc::O_TRUNC, libc::O_TRUNC),
    ];
    let bits = |flag: libc::c_int| u64::from(flag.unsigned_abs());
    ways.into_iter()
        .map(|(mask, value)| argument(flags, SeccompCmpOp::MaskedEq(bits(mask)), bits(value)))
        .collect()
}

fn refused(confinement: &Confinement, listened: bool) -> Result<BpfProgram, BackendError> {
    let mut rules: Vec<(i64, Vec<SeccompRule>)> = whole(REFUSED);
    rules.push((libc::SYS_clone, namespaces()?));
    let typing = TYPING.map(|command| argument(1, SeccompCmpOp::Eq, u64::from(command)));
    rules.push((libc::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?));
    rules.push((libc::SYS_socket, sockets(confinement, listened)?));
    filter(rules, libc::EPERM)
}

fn unknown() -> Result<BpfProgram, BackendError> {
    filter(whole(UNKNOWN), libc::ENOSYS)
}

fn whole(calls: &[i64]) -> Vec<(i64, Vec<SeccompRule>)> {
    calls.iter().map(|&call| (call, Vec::new())).collect()
}

/// A rule for each kind of namespace: that its bit is set.
fn namespaces() -> Result<Vec<SeccompRule>, BackendError> {
    let kinds = (0..32).map(|bit| 1_u64 << bit);
    let kinds = kinds.filter(|kind| NAMESPACES as u64 & kind != 0);
    kinds.map(|kind| argument(0, SeccompCmpOp::MaskedEq(kind), kind)).collect()
}

/// Families of sockets: those that are not of this machine's network are refused always; a virtual
/// machine's host, for one, is reached by one that knows no namespaces. Where no namespace keeps the
/// others in, and the network is off, they all are: also local ones, which lead to any service. Those that
/// are listened to are refused by whoever does.
fn sockets(confinement: &Confinement, listened: bool) -> Result<Vec<SeccompRule>, BackendError> {
    let isolated = confinement.level.has_view();
    let ordinary = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let allowed: &[libc::c_int] = if isolated || confinement.sandbox.network == Network::All {
        &ordinary
    } else if listened && asks_about_sockets(confinement) {
        INTERNET
    } else {
        &[]
    };
    let others = allowed.iter().map(|&family| {
        let family = u64::from(family.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    });
    let others: Vec<SeccompCondition> = others.collect::<Result<_, _>>()?;
    if others.is_empty() { Ok(Vec::new()) } else { Ok(vec![SeccompRule::new(others)?]) }
}

fn argument(index: u8, compare: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(index, SeccompCmpArgLen::Dword, compare, value)?])
}

fn filter(
    rules: Vec<(i64, Vec<SeccompRule>)>,
    errno: libc::c_int,
) -> Result<BpfProgram, BackendError> {
    let refused = SeccompAction::Errno(errno.unsigned_abs());
    let target = std::env::consts::ARCH.try_into()?;
    let rules = rules.into_iter().collect();
    let filter: BpfProgram =
        SeccompFilter::new(rules, SeccompAction::Allow, refused, target)?.try_into()?;
    Ok(prologue().into_iter().chain(filter).collect())
}

const ANSWER: u16 = 0x06; // BPF_RET | BPF_K

/// Ends a program that makes a call by a number which no rule knows.
#[cfg(target_arch = "x86_64")]
fn prologue() -> Vec<sock_filter> {
    const LOAD_NUMBER: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS, at offset 0
    const JUMP_IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
    vec![
        sock_filter { code: LOAD_NUMBER, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: X32 },
        sock_filter { code: ANSWER, jt: 0, jf: 0, k: libc::SECCOMP_RET_KILL_PROCESS },
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn prologue() -> Vec<sock_filter> {
    Vec::new()
}

fn to_io(error: seccompiler::Error) -> io::Error {
    match error {
        seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
        other => io::Error::other(other),
    }
}
