//! The child's side of workers, and their limits.

use std::process::{Command, Stdio};

use toolcrib_exec::{Worker, WorkerError, WorkerLimits};

use crate::worker::eventually;
use crate::{LIMITS, confined, confined_path, run};

#[test]
fn a_confined_worker_works() {
    let input = vec![b'x'; 5_000_000];
    assert_eq!(run(&confined("echo"), &input).unwrap(), input);
}

#[test]
fn a_confined_worker_reaches_nothing() {
    let answer = String::from_utf8(run(&confined("try-everything"), &[]).unwrap()).unwrap();
    assert_eq!(answer.lines().count(), 7, "{answer}");
    assert!(answer.lines().all(|line| line.ends_with(": refused")), "{answer}");
}

#[test]
fn memory_limit_is_enforced_and_reported() {
    let error = run(&confined("eat-memory"), &[]).unwrap_err();
    assert!(matches!(error, WorkerError::OutOfMemory), "{error:?}");
}

#[test]
fn cpu_time_limit_is_enforced() {
    let limits = WorkerLimits { cpu_seconds: 1, ..LIMITS };
    let error = run(&Worker { limits, ..confined("spin") }, &[]).unwrap_err();
    assert!(matches!(error, WorkerError::TimedOut), "{error:?}");
}

#[test]
fn a_stack_that_overflows_ends_the_child_only() {
    let error = run(&confined("overflow-the-stack"), &[]).unwrap_err();
    assert!(matches!(error, WorkerError::Killed { signal: 6 | 11 }), "{error:?}");
}

#[test]
fn a_panic_is_a_failure_with_its_message() {
    let error = run(&confined("panic"), &[]).unwrap_err();
    assert!(
        matches!(&error, WorkerError::Failed { code: 101, message } if message.contains("is odd")),
        "{error:?}"
    );
}

#[test]
fn a_worker_dies_with_its_parent() {
    let mut parent = Command::new(confined_path());
    parent.arg("start-a-worker").stdin(Stdio::null()).stdout(Stdio::null());
    let mut parent = parent.spawn().unwrap();
    let of_parent = format!("/proc/{0}/task/{0}/children", parent.id());
    let mut worker = String::new();
    assert!(eventually(|| {
        worker = std::fs::read_to_string(&of_parent).unwrap_or_default().trim().to_owned();
        is_confined(&worker)
    }));
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(eventually(|| !is_confined(&worker)));
}

/// Whether the process exists and has a seccomp filter. A zombie does not count.
fn is_confined(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("Seccomp:\t2") && !status.contains("State:\tZ")
}
