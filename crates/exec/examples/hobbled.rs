//! Runs a program on a system with fewer features, for tests of sandbox levels: `hobbled FEATURE… PROGRAM …`
//! removes each feature and then executes the program.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "a program for tests, which fails by panicking"
)]

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;

use nix::sched::{CloneFlags, unshare};
use rustix::process::{getegid, geteuid};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    while let Some(how) = arguments.next() {
        match how.as_str() {
            // Like container engines.
            "namespaces-refused" => refuse_namespaces(),
            // Like a system that trusts only bubblewrap, which makes its network namespace with another call.
            "own-namespaces-refused" => refuse(vec![(libc::SYS_unshare, networks())], libc::EPERM),
            // Like a system where only bubblewrap has the privileges. Needs root.
            "only-setuid-bubblewrap" => let_only_bubblewrap(),
            // Like a system whose namespace limit is reached.
            "namespaces-used-up" => use_up_namespaces(),
            // Like an old kernel.
            "no-landlock" => {
                refuse(vec![(libc::SYS_landlock_create_ruleset, Vec::new())], libc::ENOSYS);
            }
            "no-filters" => refuse(filters(), libc::EINVAL),
            program => panic!("{}", std::process::Command::new(program).args(arguments).exec()),
        }
    }
    panic!("no program");
}

fn refuse_namespaces() {
    let kinds = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let calls = vec![(libc::SYS_unshare, Vec::new()), (libc::SYS_clone, kinds.map(of_kind).into())];
    refuse(calls, libc::EPERM);
    refuse(vec![(libc::SYS_clone3, Vec::new())], libc::ENOSYS);
}

fn networks() -> Vec<SeccompRule> {
    vec![of_kind(libc::CLONE_NEWNET)]
}

/// A rule that matches if this namespace flag is set.
fn of_kind(kind: libc::c_int) -> SeccompRule {
    let kind = u64::from(kind.unsigned_abs());
    let compare = SeccompCmpOp::MaskedEq(kind);
    let set = SeccompCondition::new(0, SeccompCmpArgLen::Qword, compare, kind).unwrap();
    SeccompRule::new(vec![set]).unwrap()
}

/// A user namespace that cannot contain another one, with a setuid bubblewrap.
fn let_only_bubblewrap() {
    // The id maps can only be written from outside.
    let script = format!(
        "read -r _; for map in uid_map gid_map; do echo 0 0 65536 > /proc/{}/$map; done",
        std::process::id()
    );
    let mut outside = std::process::Command::new("/bin/sh");
    outside.args(["-c", &script]).stdin(std::process::Stdio::piped());
    let mut outside = outside.spawn().unwrap();
    unshare(CloneFlags::CLONE_NEWUSER).unwrap();
    outside.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(outside.wait().unwrap().success());
    std::fs::write("/proc/sys/user/max_user_namespaces", "0").unwrap();
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    let script = "mount --make-rprivate / && mount -t tmpfs -o mode=755 tmpfs /mnt && \
                  cp /usr/bin/bwrap /mnt/ && chmod 4755 /mnt/bwrap && mount --bind /mnt/bwrap /usr/bin/bwrap";
    let made = std::process::Command::new("/bin/sh").args(["-c", script]).status();
    assert!(made.unwrap().success());
}

fn use_up_namespaces() {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER).unwrap();
    std::fs::write("/proc/self/setgroups", "deny").unwrap();
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1")).unwrap();
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1")).unwrap();
    // Only for this namespace.
    std::fs::write("/proc/sys/user/max_user_namespaces", "0").unwrap();
}

fn filters() -> Vec<(i64, Vec<SeccompRule>)> {
    let by_prctl = SeccompCmpOp::Eq;
    let by_prctl =
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, by_prctl, libc::PR_SET_SECCOMP as u64);
    let by_prctl = SeccompRule::new(vec![by_prctl.unwrap()]).unwrap();
    vec![(libc::SYS_seccomp, Vec::new()), (libc::SYS_prctl, vec![by_prctl])]
}

fn refuse(rules: Vec<(i64, Vec<SeccompRule>)>, errno: i32) {
    let refused = SeccompAction::Errno(errno.unsigned_abs());
    let target = std::env::consts::ARCH.try_into().unwrap();
    let rules = rules.into_iter().collect();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, target).unwrap();
    apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
}
