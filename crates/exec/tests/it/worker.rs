//! The parent's side of workers.

use std::time::{Duration, Instant};

use toolcrib_exec::{Worker, WorkerError, WorkerLimits};

use crate::{LIMITS, run, shell};

#[test]
fn large_input_and_output_are_transferred() {
    let input: Vec<u8> = (0..10_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    assert_eq!(run(&shell("cat"), &input).unwrap(), input);
    assert_eq!(run(&shell("cat"), &[]).unwrap(), b"");
}

#[test]
fn unread_input_is_not_an_error() {
    let input = vec![0; 1 << 20];
    assert_eq!(run(&shell("echo enough"), &input).unwrap(), b"enough\n");
}

#[test]
fn a_failure_has_its_exit_code_and_message() {
    let error = run(&shell("echo 'not a page in it' >&2; exit 7"), &[]).unwrap_err();
    assert!(matches!(
        &error,
        WorkerError::Failed { code: 7, message } if message == "not a page in it"
    ));
    assert_eq!(error.to_string(), "not a page in it");
}

#[test]
fn stderr_is_bounded_and_does_not_end_the_worker() {
    let talkative = "yes complaint | head -c 1000000 >&2 && echo answer";
    assert_eq!(run(&shell(talkative), &[]).unwrap(), b"answer\n");
    let error = run(&shell(&format!("{talkative}; exit 1")), &[]).unwrap_err();
    assert!(matches!(&error, WorkerError::Failed { message, .. } if message.len() <= 4096));
}

#[test]
fn a_fatal_signal_is_reported() {
    let error = run(&shell("kill -SEGV $$"), &[]).unwrap_err();
    assert!(matches!(error, WorkerError::Killed { signal: 11 }), "{error:?}");
}

#[test]
fn a_missing_program_is_reported() {
    let worker = Worker { program: "/nowhere/at/all".into(), arguments: vec![], limits: LIMITS };
    assert!(matches!(run(&worker, &[]), Err(WorkerError::NotStarted(_))));
}

#[test]
fn too_much_output_ends_the_worker() {
    let limits = WorkerLimits { output_bytes: 1_000, ..LIMITS };
    let worker = Worker { limits, ..shell("yes") };
    assert!(matches!(run(&worker, &[]), Err(WorkerError::TooMuchOutput)));
    let worker = Worker { limits, ..shell("head -c 1000 /dev/zero") };
    assert_eq!(run(&worker, &[]).unwrap().len(), 1_000);
}

#[test]
fn the_wall_clock_limit_ends_the_worker() {
    let limits = WorkerLimits { wall: Duration::from_millis(200), ..LIMITS };
    for script in
        ["sleep 1000", "trap '' TERM INT HUP; while :; do sleep 1; done", "cat; sleep 1000"]
    {
        let worker = Worker { limits, ..shell(script) };
        assert!(matches!(run(&worker, b"x"), Err(WorkerError::TimedOut)), "{script}");
    }
}

#[test]
fn cancellation_ends_the_worker() {
    let started = Instant::now();
    let cancelled = || started.elapsed() > Duration::from_millis(100);
    let answer = shell("sleep 1000").run(&[], &cancelled);
    assert!(matches!(answer, Err(WorkerError::Cancelled)));
}

#[test]
fn children_of_a_worker_end_with_it() {
    let seen = tempfile::tempdir().unwrap();
    let mark = format!("toolcrib-{}", seen.path().file_name().unwrap().to_str().unwrap());
    let script = format!("sh -c 'sleep 1000; : {mark}' & echo started");
    assert_eq!(run(&shell(&script), &[]).unwrap(), b"started\n");
    let is_gone = || {
        let mut processes = std::fs::read_dir("/proc").unwrap().flatten();
        !processes.any(|entry| {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains(&mark)
        })
    };
    assert!(eventually(is_gone));
}

#[test]
fn a_worker_has_no_environment_and_runs_in_the_root_directory() {
    assert_eq!(
        run(&shell("/usr/bin/env | grep -v -e ^PWD= -e ^_= -e ^SHLVL=; pwd"), &[]).unwrap(),
        b"/\n"
    );
}

/// Whether the condition becomes true within ten minutes.
pub(crate) fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(600) {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}
