//! A keeper on a system that allows less, for tests of levels: `hobbled HOW… PROGRAM …` takes something
//! away for each word, and becomes the program.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "a program for tests, which fails by panicking"
)]

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
            // As container engines do it.
            "namespaces-refused" => refuse(vec![(libc::SYS_unshare, Vec::new())], libc::EPERM),
            // As a system does it that allows no more of them.
            "namespaces-used-up" => use_up_namespaces(),
            // As an old kernel does it.
            "no-landlock" => {
                refuse(vec![(libc::SYS_landlock_create_ruleset, Vec::new())], libc::ENOSYS);
            }
            "no-filters" => refuse(filters(), libc::EINVAL),
            program => panic!("{}", std::process::Command::new(program).args(arguments).exec()),
        }
    }
    panic!("no program");
}

fn use_up_namespaces() {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER).unwrap();
    std::fs::write("/proc/self/setgroups", "deny").unwrap();
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1")).unwrap();
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1")).unwrap();
    // Of this namespace alone.
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
