//! A clock that only goes forward, also while the machine sleeps: a lease ends meanwhile, too.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time since the machine was started.
pub(crate) fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}
