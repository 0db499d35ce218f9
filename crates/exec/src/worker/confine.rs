//! The child's side: giving up what working on bytes does not need.

use std::fmt;

use rustix::process::{Signal, getpid, set_parent_process_death_signal};
use rustix::thread::set_no_new_privs;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

/// The system calls of a program that reads, computes and writes. Those that open, connect, start or
/// trace anything are not among them.
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

/// What this system would not let us give up. Everything else is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotConfined {
    missing: Vec<String>,
}

impl fmt::Display for NotConfined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not confined: {}", self.missing.join("; "))
    }
}

impl std::error::Error for NotConfined {}

/// Gives up everything but reading what is open, computing, and writing what is open. To be called first
/// thing in `main`, before anything is read.
///
/// From then on the process cannot open a file or a socket, start a process or a thread, or make memory
/// executable: a decoder that a file has taken over has nobody to tell. Such a call fails with `EPERM`
/// and ends nothing, so that a library which only looks for a configuration works on. The process dies
/// with the thread that started it; it gains no rights by any program.
///
/// An error says what is missing, with the rest in force. The parent's limits do not depend on this, so a
/// worker may well go on.
pub fn confine() -> Result<(), NotConfined> {
    let mut missing = Vec::new();
    let mut note = |what: &str, error: &dyn fmt::Display| missing.push(format!("{what}: {error}"));
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        note("dying with the parent", &error);
    }
    if let Err(error) = set_no_new_privs(true) {
        note("no new rights", &error);
    }
    match filter() {
        Ok(program) => {
            if let Err(error) = apply_filter_all_threads(&program) {
                note("a filter of system calls", &error);
            }
        }
        Err(error) => note("a filter of system calls", &error),
    }
    if missing.is_empty() { Ok(()) } else { Err(NotConfined { missing }) }
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
    // `abort` sends itself a signal; nobody else gets one.
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
