//! The seccomp filter: denies system calls that no command needs and that have led out of sandboxes before,
//! and hands others to the [supervisor](crate::supervise), which performs them.
//!
//! It is a deny list, not an allow list: builds use all kinds of calls. Where a namespace confines a command,
//! calls that are harmless inside the namespace are not denied. That is why there are no rules about sending
//! data.

mod program;

use std::io;
use std::os::fd::OwnedFd;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompRule,
};

use self::program::SyscallRules;
use super::Confinement;
use super::raw_syscalls::install_filter;
use crate::setup_error::{SetupError, context};
use crate::supervised_calls::{FILE_CALLS, OPEN_CALLS};

/// Denied with `EPERM`.
const REFUSED: &[i64] = &[
    // Access to other processes.
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
    // Files by handle instead of by path.
    libc::SYS_open_by_handle_at,
    // Kernel subsystems with a history of vulnerabilities.
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

/// Fail with `ENOSYS`, as on a kernel without them: programs fall back to other calls. The flags of `clone3`
/// and `openat2` are in memory, where a filter cannot see them; `clone` and `openat` have them in their
/// arguments. The older calls for attributes are supervised.
const UNIMPLEMENTED: &[i64] = &[
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

/// Not in our version of libc.
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

/// Every kind of namespace that `clone` can make.
const NAMESPACE_FLAGS: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// The flag of `sendto`, `sendmsg` and `sendmmsg` that connects a TCP socket. The supervisor sees each
/// connection, so it is denied in a private network. Programs fall back to `connect`.
pub(crate) const FAST_OPEN: u32 = 0x2000_0000;

/// Calls with that flag, and the index of their flags. The supervisor checks the flags of `sendto`.
const SENDING: [(i64, u8); 2] = [(libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)];

/// `ioctl` commands that simulate keyboard input on a terminal.
const TERMINAL_INPUT_IOCTLS: [u32; 2] = [0x5412, 0x541c]; // TIOCSTI, TIOCLINUX

/// `ioctl` commands that change a file through a descriptor that is open for reading, or create names without
/// the supervisor. Their upper half holds the size of an argument, and differs.
const FILE_CHANGING_IOCTLS: [u32; 11] = [
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

/// Installs the filter for this process and all its children. Returns the listener on which the supervised
/// calls arrive.
pub(super) fn confine(confinement: &Confinement) -> Result<OwnedFd, SetupError> {
    let step = "supervise system calls";
    let program = context(step, build_filter(confinement).map_err(io::Error::other))?;
    context(step, install_filter(&program))
}

/// Builds the filter. It is a single program, since each program costs time for every call. No call is in two
/// of its lists.
fn build_filter(confinement: &Confinement) -> Result<BpfProgram, BackendError> {
    let wait = SeccompAction::Trace(PLACEHOLDER_RETURN & libc::SECCOMP_RET_DATA);
    let mut all = refused_rules(confinement)?;
    all.push((supervised_rules(confinement)?, wait));
    let mut program = program::compile(all)?;
    program::replace_return(&mut program, PLACEHOLDER_RETURN, libc::SECCOMP_RET_USER_NOTIF);
    Ok(program)
}

/// A return value that the filter compiler knows, replaced by `SECCOMP_RET_USER_NOTIF`, which it does not
/// know.
const PLACEHOLDER_RETURN: u32 = libc::SECCOMP_RET_TRACE | 0x7063;

/// The calls that the supervisor performs.
fn supervised_rules(confinement: &Confinement) -> Result<SyscallRules, BackendError> {
    let mut rules = unconditional(FILE_CALLS);
    for (call, flags) in OPEN_CALLS {
        let opens = if confinement.sandbox.supervise_reads {
            Vec::new()
        } else {
            open_for_change_rules(*flags)?
        };
        rules.push((*call, opens));
    }
    if supervises_all_sockets(confinement) {
        rules.push((libc::SYS_socket, Vec::new()));
        if confinement.proxy_port.is_none() {
            return Ok(rules);
        }
    }
    rules.extend(unconditional(&[libc::SYS_connect, libc::SYS_bind]));
    if confinement.sandbox.network.is_private() {
        // With an address, and not to a peer that is already connected.
        let address = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
        rules.push((libc::SYS_sendto, vec![SeccompRule::new(vec![address])?]));
    }
    Ok(rules)
}

/// Whether the supervisor denies all sockets, or all except TCP sockets for a proxy. A denial by the filter would not be reported.
fn supervises_all_sockets(confinement: &Confinement) -> bool {
    confinement.sandbox.network.is_private() && !confinement.level.has_namespaces()
}

/// Rules for opening a file with flags that may change or create it.
fn open_for_change_rules(flags: u8) -> Result<Vec<SeccompRule>, BackendError> {
    let ways = [
        (libc::O_ACCMODE, libc::O_WRONLY),
        (libc::O_ACCMODE, libc::O_RDWR),
        (libc::O_CREAT, libc::O_CREAT),
        (libc::O_TRUNC, libc::O_TRUNC),
    ];
    let bits = |flag: libc::c_int| u64::from(flag.unsigned_abs());
    ways.into_iter()
        .map(|(mask, value)| argument_rule(flags, SeccompCmpOp::MaskedEq(bits(mask)), bits(value)))
        .collect()
}

/// The denied calls, with the action for each.
fn refused_rules(
    confinement: &Confinement,
) -> Result<Vec<(SyscallRules, SeccompAction)>, BackendError> {
    let mut rules = unconditional(REFUSED);
    rules.push((libc::SYS_clone, namespace_rules()?));
    let typing =
        TERMINAL_INPUT_IOCTLS.map(|command| argument_rule(1, SeccompCmpOp::Eq, u64::from(command)));
    let changing = FILE_CHANGING_IOCTLS.map(|command| {
        argument_rule(1, SeccompCmpOp::MaskedEq(u64::from(u16::MAX)), u64::from(command))
    });
    rules.push((libc::SYS_ioctl, typing.into_iter().chain(changing).collect::<Result<_, _>>()?));
    if !supervises_all_sockets(confinement) {
        let mut sockets = other_family_rules()?;
        sockets.extend(unix_datagram_rules()?);
        rules.push((libc::SYS_socket, sockets));
    }
    if confinement.proxy_port.is_some() {
        // Without `bind`, the kernel would choose a port that other machines may reach.
        rules.push((libc::SYS_listen, Vec::new()));
    }
    rules.push((libc::SYS_socketpair, unix_datagram_rules()?));
    let with = |errno: libc::c_int| SeccompAction::Errno(errno.unsigned_abs());
    let mut refused =
        vec![(rules, with(libc::EPERM)), (unconditional(UNIMPLEMENTED), with(libc::ENOSYS))];
    if confinement.sandbox.network.is_private() {
        let flag = u64::from(FAST_OPEN);
        let denied = SENDING.map(|(call, flags)| {
            Ok((call, vec![argument_rule(flags, SeccompCmpOp::MaskedEq(flag), flag)?]))
        });
        let denied: Result<SyscallRules, BackendError> = denied.into_iter().collect();
        refused.push((denied?, with(libc::EOPNOTSUPP)));
    }
    Ok(refused)
}

fn unconditional(calls: &[i64]) -> SyscallRules {
    calls.iter().map(|&call| (call, Vec::new())).collect()
}

/// One rule for each namespace flag.
fn namespace_rules() -> Result<Vec<SeccompRule>, BackendError> {
    let kinds = (0..32).map(|bit| 1_u64 << bit);
    let kinds = kinds.filter(|kind| NAMESPACE_FLAGS as u64 & kind != 0);
    kinds.map(|kind| argument_rule(0, SeccompCmpOp::MaskedEq(kind), kind)).collect()
}

/// Socket families other than those of this machine's network. For example, the host of a virtual machine is
/// reached by a family that ignores namespaces.
fn other_family_rules() -> Result<Vec<SeccompRule>, BackendError> {
    let ordinary = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let others = ordinary.map(|family| {
        let family = u64::from(family.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    });
    Ok(vec![SeccompRule::new(others.into_iter().collect::<Result<_, _>>()?)?])
}

/// Unix sockets that send each message to a path: the path is in memory, and there is no connection that the
/// supervisor could decide on. `SOCK_RAW` means the same there.
fn unix_datagram_rules() -> Result<Vec<SeccompRule>, BackendError> {
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

fn argument_rule(
    index: u8,
    compare: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(index, SeccompCmpArgLen::Dword, compare, value)?])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sandbox::level::Level;
    use crate::sandbox::{Network, Sandbox};

    /// With one action per call, the order of the lists does not matter.
    #[test]
    fn no_call_is_in_two_lists() {
        for level in Level::ALL {
            for (network, supervise_reads, proxy_port) in [
                (Network::None, true, None),
                (Network::All, false, None),
                (Network::List, false, (!level.has_namespaces()).then_some(1)),
            ] {
                let sandbox = Sandbox { supervise_reads, ..Sandbox::read_only(network) };
                let confinement = Confinement { sandbox, level, max_landlock: 7, proxy_port };
                let refused = refused_rules(&confinement).unwrap();
                let all = refused.into_iter().map(|(rules, _)| rules);
                let all = all.chain([supervised_rules(&confinement).unwrap()]).flatten();
                let mut seen = BTreeSet::new();
                for (call, _) in all {
                    assert!(seen.insert(call), "{call} at {level:?}");
                }
                assert!(seen.contains(&libc::SYS_socket));
            }
        }
    }
}
