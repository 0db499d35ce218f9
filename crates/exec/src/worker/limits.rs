//! What a worker may use up.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// Enough for stdin, stdout, stderr and the libraries that the program is linked to while it starts.
const OPEN_FILES: u64 = 16;

/// What a worker may use up. There are no defaults: who starts one knows what its work may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerLimits {
    /// Address space: the program itself, its stack, and all it allocates.
    pub memory_bytes: u64,
    /// Time on a processor.
    pub cpu_seconds: u64,
    /// Time by the clock, from when it is started.
    pub wall: Duration,
    /// The length of its answer.
    pub output_bytes: usize,
}

/// Limits a child from outside, so that it need not be told its numbers and cannot forget them.
pub(super) fn impose(child: Pid, limits: &WorkerLimits) -> Result<(), Errno> {
    let cpu = limits.cpu_seconds;
    for (resource, soft, hard) in [
        (Resource::As, limits.memory_bytes, limits.memory_bytes),
        // At the soft one it is told by a signal that says why it died; at the hard one, killed.
        (Resource::Cpu, cpu, cpu.saturating_add(1)),
        (Resource::Fsize, 0, 0),
        (Resource::Core, 0, 0),
        (Resource::Nofile, OPEN_FILES, OPEN_FILES),
    ] {
        let limit = Rlimit { current: Some(soft), maximum: Some(hard) };
        match prlimit(Some(child), resource, limit) {
            // It has ended already: how, will be seen when it is waited for.
            Ok(_) | Err(Errno::SRCH) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
