//! The system calls that no command needs and that have led out of sandboxes before.
//!
//! A list of what is refused, not of what is allowed: builds use whatever there is. Where a namespace
//! keeps a command in, it is not refused what it needs inside; so nothing is said here about sending.
//!
//! And those that wait until somebody has looked at them, and then happen as if nobody had asked: those that a
//! sandbox refuses to honest work ([`super::refused`]) and, where somebody wants to know, all that change files
//! by name ([`crate::Witness`]).

mod program;

use std::io;
use std::os::fd::OwnedFd;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompRule, apply_filter,
};

use self::program::Rules;
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

/// Has this process, and all that it starts, refused what no command needs; and those calls wait that
/// somebody wants to look at. Answers where they wait, or why they do not; nothing, if there are none.
pub(super) fn confine(confinement: &Confinement) -> Result<Option<io::Result<OwnedFd>>, Failure> {
    let step = "refuse system calls";
    let compiled = |program: Result<BpfProgram, BackendError>| {
        plainly(step, program.map_err(io::Error::other))
    };
    let waiting = plainly(step, looked_at(confinement).map_err(io::Error::other))?;
    let wait = SeccompAction::Trace(STAND_IN & libc::SECCOMP_RET_DATA);
    // In one program, since each takes its time to be taken: no call is in two of these lists.
    let listener = (!waiting.is_empty()).then(|| {
        let mut all = refused(confinement, true)?;
        all.push((waiting, wait));
        let mut program = program::of(all)?;
        program::replace_answer(&mut program, STAND_IN, libc::SECCOMP_RET_USER_NOTIF);
        Ok(program)
    });
    let listener = listener.map(compiled).transpose()?.map(|program| listen(&program));
    if !matches!(listener, Some(Ok(_))) {
        let program = compiled(refused(confinement, false).and_then(program::of))?;
        plainly(step, apply_filter(&program).map_err(to_io))?;
    }
    Ok(listener)
}

/// An answer that the compiler of filters knows, for the one that it does not.
const STAND_IN: u32 = libc::SECCOMP_RET_TRACE | 0x7063;

fn looked_at(confinement: &Confinement) -> Result<Rules, BackendError> {
    let mut rules = Vec::new();
    if confinement.witnessed || confinement.level >= Level::Landlock {
        rules.extend(whole(if confinement.witnessed { TOUCHING } else { MAKING }));
        for (call, flags) in OPENING {
            rules.push((*call, opened_to_change(*flags)?));
        }
    }
    if asks_about_sockets(confinement) {
        rules.push((libc::SYS_socket, Vec::new()));
    } else if confinement.sandbox.network == Network::None {
        rules.push((libc::SYS_connect, Vec::new()));
        // To an address, and not to whom it is connected already.
        let address = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
        rules.push((libc::SYS_sendto, vec![SeccompRule::new(vec![address])?]));
    }
    Ok(rules)
}

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

/// What is refused, and how. `listened` says that those wait that are listened to.
fn refused(
    confinement: &Confinement,
    listened: bool,
) -> Result<Vec<(Rules, SeccompAction)>, BackendError> {
    let mut rules = whole(REFUSED);
    rules.push((libc::SYS_clone, namespaces()?));
    let typing = TYPING.map(|command| argument(1, SeccompCmpOp::Eq, u64::from(command)));
    rules.push((libc::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?));
    if !(listened && asks_about_sockets(confinement)) {
        rules.push((libc::SYS_socket, sockets(confinement)?));
    }
    let with = |errno: libc::c_int| SeccompAction::Errno(errno.unsigned_abs());
    Ok(vec![(rules, with(libc::EPERM)), (whole(UNKNOWN), with(libc::ENOSYS))])
}

fn whole(calls: &[i64]) -> Rules {
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
fn sockets(confinement: &Confinement) -> Result<Vec<SeccompRule>, BackendError> {
    let isolated = confinement.level.has_view();
    let ordinary = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let allowed: &[libc::c_int] =
        if isolated || confinement.sandbox.network == Network::All { &ordinary } else { &[] };
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

fn to_io(error: seccompiler::Error) -> io::Error {
    match error {
        seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sandbox::Sandbox;

    /// With one answer for each call there is no order of lists to get wrong.
    #[test]
    fn no_call_is_in_two_lists() {
        for level in Level::ALL {
            for (network, witnessed) in
                [(Network::None, true), (Network::None, false), (Network::All, true)]
            {
                let sandbox = Sandbox::read_only(network);
                let confinement = Confinement { sandbox, level, witnessed, landlock: 7 };
                let waiting = looked_at(&confinement).unwrap();
                let listened = refused(&confinement, true).unwrap();
                let all = listened.into_iter().map(|(rules, _)| rules).chain([waiting]).flatten();
                let mut seen = BTreeSet::new();
                for (call, _) in all {
                    assert!(seen.insert(call), "{call} at {level:?}");
                }
                let alone = refused(&confinement, false).unwrap();
                let mut alone = alone.iter().flat_map(|(rules, _)| rules);
                assert!(alone.any(|(call, _)| *call == libc::SYS_socket));
            }
        }
    }
}
