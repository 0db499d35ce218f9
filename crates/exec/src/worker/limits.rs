//! The resource limits of a worker.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// Enough for stdin, stdout, stderr and the libraries that the dynamic linker opens.
const OPEN_FILES: u64 = 16;

/// The resource limits of a worker. There are no defaults: the caller knows what the work may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerLimits {
    /// Address space: the program itself, its stack, and all allocations.
    pub memory_bytes: u64,
    /// CPU time.
    pub cpu_seconds: u64,
    /// Wall-clock time since its start.
    pub wall: Duration,
    /// The length of its answer.
    pub output_bytes: usize,
}

/// Sets the limits of a child from outside, so that the child need not do it.
pub(super) fn apply(child: Pid, limits: &WorkerLimits) -> Result<(), Errno> {
    let cpu = limits.cpu_seconds;
    for (resource, soft, hard) in [
        (Resource::As, limits.memory_bytes, limits.memory_bytes),
        // The soft limit sends SIGXCPU, which tells the cause of death. The hard limit kills.
        (Resource::Cpu, cpu, cpu.saturating_add(1)),
        (Resource::Fsize, 0, 0),
        (Resource::Core, 0, 0),
        (Resource::Nofile, OPEN_FILES, OPEN_FILES),
    ] {
        let limit = Rlimit { current: Some(soft), maximum: Some(hard) };
        match prlimit(Some(child), resource, limit) {
            // It has already exited. Waiting for it will tell how.
            Ok(_) | Err(Errno::SRCH) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
