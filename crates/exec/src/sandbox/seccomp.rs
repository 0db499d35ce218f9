//! The system calls that no command needs and that have led out of sandboxes before.
//!
//! A list of what is refused, not of what is allowed: builds use whatever there is. Where a namespace
//! keeps a command in, it is not refused what it needs inside; so nothing is said here about sending.
//!
//! And the calls that wait for the [supervisor](crate::supervise), which performs them.

mod program;

use std::io;
use std::os::fd::OwnedFd;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompRule,
};

use self::program::Rules;
use super::syscalls::listen;
use super::{Confinement, Network};
use crate::setup_error::{Failure, plainly};
use crate::supervise::operation::{FILE_CALLS, OPEN_CALLS};

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
    KEXEC_FILE_LOAD,
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

/// Answered as by a kernel that does not have them: programs have another way. The flags of `clone3` and
/// `openat2` are in memory, where a filter cannot see them; `clone` and `openat` have them in their arguments.
/// The older calls for attributes are supervised.
const UNKNOWN: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    SETXATTRAT,
    REMOVEXATTRAT,
    OPEN_TREE_ATTR,
    FILE_SETATTR,
];

/// Not in libc for every architecture that we build for.
const KEXEC_FILE_LOAD: i64 = if cfg!(target_arch = "x86_64") { 320 } else { 294 };

/// Newer than our libc.
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

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

/// Commands to file systems that change a file through a descriptor which is open to be read, or give names that
/// the supervisor does not hear of. Their upper half has the size of an argument, and differs.
const CHANGING: [u32; 11] = [
    0x6602, // FS_IOC_SETFLAGS
    0x5820, // FS_IOC_FSSETXATTR
    0x6685, // FS_IOC_ENABLE_VERITY
    0x6613, // FS_IOC_SET_ENCRYPTION_POLICY
    0x9401, // BTRFS_IOC_SNAP_CREATE
    0x940e, // BTRFS_IOC_SUBVOL_CREATE
    0x940f, // BTRFS_IOC_SNAP_DESTROY
    0x9417, // BTRFS_IOC_SNAP_CREATE_V2
    0x9418, // BTRFS_IOC_SUBVOL_CREATE_V2
    0x941a, // BTRFS_IOC_SUBVOL_SETFLAGS
    0x943f, // BTRFS_IOC_SNAP_DESTROY_V2
];

/// Has this process, and all that it starts, refused the calls that no command needs; others wait for the
/// supervisor. Answers where they wait.
pub(super) fn confine(confinement: &Confinement) -> Result<OwnedFd, Failure> {
    let step = "supervise system calls";
    let program = plainly(step, program(confinement).map_err(io::Error::other))?;
    plainly(step, listen(&program))
}

/// The filter. In one program, since each costs time for every call; no call is in two of its lists.
fn program(confinement: &Confinement) -> Result<BpfProgram, BackendError> {
    let wait = SeccompAction::Trace(STAND_IN & libc::SECCOMP_RET_DATA);
    let mut all = refused(confinement)?;
    all.push((supervised(confinement)?, wait));
    let mut program = program::of(all)?;
    program::replace_answer(&mut program, STAND_IN, libc::SECCOMP_RET_USER_NOTIF);
    Ok(program)
}

/// An answer that the compiler of filters knows, for the one that it does not.
const STAND_IN: u32 = libc::SECCOMP_RET_TRACE | 0x7063;

/// The calls that the supervisor performs.
fn supervised(confinement: &Confinement) -> Result<Rules, BackendError> {
    let mut rules = whole(FILE_CALLS);
    for (call, flags) in OPEN_CALLS {
        let opens = match confinement.sandbox.supervise_reads {
            true => Vec::new(),
            false => opened_to_change(*flags)?,
        };
        rules.push((*call, opens));
    }
    if asks_about_sockets(confinement) {
        rules.push((libc::SYS_socket, Vec::new()));
        return Ok(rules);
    }
    rules.extend(whole(&[libc::SYS_connect, libc::SYS_bind]));
    if confinement.sandbox.network == Network::None {
        // To an address, and not to the peer that it is connected to already.
        let address = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
        rules.push((libc::SYS_sendto, vec![SeccompRule::new(vec![address])?]));
    }
    Ok(rules)
}

/// Whether the supervisor refuses all sockets: a refusal by the filter would not be told.
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

/// What is refused, and how.
fn refused(confinement: &Confinement) -> Result<Vec<(Rules, SeccompAction)>, BackendError> {
    let mut rules = whole(REFUSED);
    rules.push((libc::SYS_clone, namespaces()?));
    let typing = TYPING.map(|command| argument(1, SeccompCmpOp::Eq, u64::from(command)));
    let changing = CHANGING.map(|command| {
        argument(1, SeccompCmpOp::MaskedEq(u64::from(u16::MAX)), u64::from(command))
    });
    rules.push((libc::SYS_ioctl, typing.into_iter().chain(changing).collect::<Result<_, _>>()?));
    if !asks_about_sockets(confinement) {
        let mut sockets = sockets()?;
        sockets.extend(local_datagrams()?);
        rules.push((libc::SYS_socket, sockets));
    }
    rules.push((libc::SYS_socketpair, local_datagrams()?));
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

/// Families of sockets that are not of this machine's network: a virtual machine's host, for one, is reached
/// by one that knows no namespaces.
fn sockets() -> Result<Vec<SeccompRule>, BackendError> {
    let ordinary = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let others = ordinary.map(|family| {
        let family = u64::from(family.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    });
    Ok(vec![SeccompRule::new(others.into_iter().collect::<Result<_, _>>()?)?])
}

/// Local sockets that send to a path with each message: the path is in memory, and no connection is made
/// that the supervisor could decide on. `SOCK_RAW` means the same there.
fn local_datagrams() -> Result<Vec<SeccompRule>, BackendError> {
    const TYPE: u64 = 0xf;
    let kinds = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| {
        let (family, kind) = (libc::AF_UNIX.unsigned_abs(), kind.unsigned_abs());
        let dword = SeccompCmpArgLen::Dword;
        SeccompRule::new(vec![
            SeccompCondition::new(0, dword.clone(), SeccompCmpOp::Eq, family.into())?,
            SeccompCondition::new(1, dword, SeccompCmpOp::MaskedEq(TYPE), kind.into())?,
        ])
    });
    kinds.into_iter().collect()
}

fn argument(index: u8, compare: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(index, SeccompCmpArgLen::Dword, compare, value)?])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sandbox::Sandbox;
    use crate::sandbox::level::Level;

    /// With one answer for each call there is no order of lists to get wrong.
    #[test]
    fn no_call_is_in_two_lists() {
        for level in Level::ALL {
            for (network, supervise_reads) in [(Network::None, true), (Network::All, false)] {
                let sandbox = Sandbox { supervise_reads, ..Sandbox::read_only(network) };
                let confinement = Confinement { sandbox, level, landlock: 7 };
                let refused = refused(&confinement).unwrap();
                let all = refused.into_iter().map(|(rules, _)| rules);
                let all = all.chain([supervised(&confinement).unwrap()]).flatten();
                let mut seen = BTreeSet::new();
                for (call, _) in all {
                    assert!(seen.insert(call), "{call} at {level:?}");
                }
                assert!(seen.contains(&libc::SYS_socket));
            }
        }
    }
}
