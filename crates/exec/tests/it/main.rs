//! Workers and commands as real processes: with the shell's programs for the parent's side, and with the
//! examples `confined` and `keeper` for the child's.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests start programs, look at /proc, and fail by panicking"
)]

mod confined;
mod jobs;
mod sandbox;
mod worker;

use std::path::PathBuf;
use std::time::Duration;

use toolcrib_exec::{Worker, WorkerError, WorkerLimits};

/// Far from what the tests need, so that a slow machine passes.
const LIMITS: WorkerLimits = WorkerLimits {
    memory_bytes: 1 << 30,
    cpu_seconds: 60,
    wall: Duration::from_secs(60),
    output_bytes: 64 << 20,
};

fn shell(script: &str) -> Worker {
    let arguments = vec!["-c".into(), script.into()];
    Worker { program: PathBuf::from("/bin/sh"), arguments, limits: LIMITS }
}

/// An example, which `cargo test` builds beside the tests.
fn example_path(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "cargo build -p toolcrib-exec --example {name}");
    path
}

fn confined_path() -> PathBuf {
    example_path("confined")
}

fn confined(mode: &str) -> Worker {
    Worker { program: confined_path(), arguments: vec![mode.into()], limits: LIMITS }
}

fn run(worker: &Worker, input: &[u8]) -> Result<Vec<u8>, WorkerError> {
    worker.run(input, &|| false)
}
