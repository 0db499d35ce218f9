//! Workers and commands as real processes: with standard programs for the parent's side, and with the
//! examples `confined` and `shim` for the child's.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests start programs, read /proc, report skipped parts, and fail by panicking"
)]

mod confined;
mod jobs;
mod sandbox;
#[allow(unreachable_pub, reason = "it is public in the crate that it belongs to")]
#[path = "../../../testkit/src/sandbox_visible_directory.rs"]
mod sandbox_visible_directory;
mod worker;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use toolcrib_exec::{Worker, WorkerError, WorkerLimits};

/// Far more than the tests need, so that they pass on a slow machine.
const LIMITS: WorkerLimits = WorkerLimits {
    memory_bytes: 1 << 30,
    cpu_seconds: 60,
    wall: Duration::from_secs(600),
    output_bytes: 64 << 20,
};

/// Longer than any operation that ends takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(600);

fn shell(script: &str) -> Worker {
    let arguments = vec!["-c".into(), script.into()];
    Worker { program: PathBuf::from("/bin/sh"), arguments, limits: LIMITS }
}

/// The path of an example, which `cargo test` builds beside the tests.
fn example_path(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "cargo build -p toolcrib-exec --example {name}");
    path
}

fn confined_path() -> PathBuf {
    example_path("misbehaving_worker")
}

fn confined(mode: &str) -> Worker {
    Worker { program: confined_path(), arguments: vec![mode.into()], limits: LIMITS }
}

fn run(worker: &Worker, input: &[u8]) -> Result<Vec<u8>, WorkerError> {
    worker.run(input, &|| false)
}

/// The number of processes with this argument.
fn alive(word: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let has = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let own = entry.file_name().to_str() == Some(&std::process::id().to_string());
        !own && String::from_utf8_lossy(&line).split('\0').any(|part| part == word)
    };
    processes.filter(has).count()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + TEST_TIMEOUT;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
