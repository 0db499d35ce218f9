//! The child's side: gives up everything that working on bytes does not need.

use std::fmt;

use rustix::process::{Signal, getpid, set_parent_process_death_signal};
use rustix::thread::set_no_new_privs;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

/// The system calls of a program that reads, computes and writes. None of them opens, connects, starts or
/// traces anything.
const ALLOWED: &[i64] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// The restrictions that this system refused. All others apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfineError {
    missing: Vec<String>,
}

impl fmt::Display for ConfineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not confined: {}", self.missing.join("; "))
    }
}

impl std::error::Error for ConfineError {}

/// Restricts this process to reading and writing its open descriptors, and computing. Must be called first in
/// `main`, before anything is read.
///
/// From then on the process cannot open a file or a socket, start a process or a thread, or make memory
/// executable: a decoder that was taken over by a file cannot pass anything on. Such a call fails with
/// `EPERM` and does not end the process, so that a library which only looks for a configuration continues to
/// work. The process dies with the thread that started it, and gains no privileges by running programs.
///
/// The error lists the missing restrictions; the others apply. The parent's limits do not depend on this, so
/// a worker may continue after an error.
pub fn confine() -> Result<(), ConfineError> {
    let mut missing = Vec::new();
    let mut note = |what: &str, error: &dyn fmt::Display| missing.push(format!("{what}: {error}"));
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        note("parent death signal", &error);
    }
    if let Err(error) = set_no_new_privs(true) {
        note("no_new_privs", &error);
    }
    match filter() {
        Ok(program) => {
            if let Err(error) = apply_filter_all_threads(&program) {
                note("a system call filter", &error);
            }
        }
        Err(error) => note("a system call filter", &error),
    }
    if missing.is_empty() { Ok(()) } else { Err(ConfineError { missing }) }
}

fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: Vec<(i64, Vec<SeccompRule>)> =
        ALLOWED.iter().map(|&call| (call, Vec::new())).collect();
    let not_executable = || {
        let executable = SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64);
        only_if(SeccompCondition::new(2, SeccompCmpArgLen::Dword, executable, 0)?)
    };
    rules.push((libc::SYS_mmap, not_executable()?));
    rules.push((libc::SYS_mprotect, not_executable()?));
    // `abort` sends a signal to itself. No other process can be signalled.
    let own = u64::from(getpid().as_raw_nonzero().get().unsigned_abs());
    let to_itself = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, own)?;
    rules.push((libc::SYS_tgkill, only_if(to_itself)?));
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let target = std::env::consts::ARCH.try_into()?;
    let rules = rules.into_iter().collect();
    SeccompFilter::new(rules, refused, SeccompAction::Allow, target)?.try_into()
}

fn only_if(condition: SeccompCondition) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    Ok(vec![SeccompRule::new(vec![condition])?])
}
