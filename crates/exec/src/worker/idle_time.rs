//! How long a worker makes no progress.

use std::time::{Duration, Instant};

use rustix::process::Pid;

/// A worker that gets no processor gets at most this many times the limit.
const MAX_FACTOR: u32 = 10;

/// The time since the last progress of a worker.
#[derive(Debug)]
pub(super) struct IdleTime {
    pid: Pid,
    began: Instant,
    /// The processor time that it had used then.
    used: Option<Duration>,
}

impl IdleTime {
    pub(super) fn begin(pid: Pid) -> IdleTime {
        let used = Usage::of(pid).map(|usage| usage.processor_time);
        IdleTime { pid, began: Instant::now(), used }
    }

    /// Whether it has lasted for `limit`. On a busy machine a worker may not run for seconds: time in which it waits for
    /// a processor does not count.
    pub(super) fn is_over(&self, limit: Duration) -> bool {
        let elapsed = self.began.elapsed();
        if elapsed < limit || elapsed >= limit * MAX_FACTOR {
            return elapsed >= limit;
        }
        match (self.used, Usage::of(self.pid)) {
            (Some(used), Some(usage)) => {
                !usage.is_runnable || usage.processor_time.saturating_sub(used) >= limit / 2
            }
            _ => true,
        }
    }
}

/// The processor time of a process.
#[derive(Debug, PartialEq, Eq)]
struct Usage {
    /// Whether it runs, or waits for a processor or a page.
    is_runnable: bool,
    processor_time: Duration,
}

impl Usage {
    fn of(pid: Pid) -> Option<Usage> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Usage::parse(&stat, rustix::param::clock_ticks_per_second())
    }

    /// Parses `PID (NAME) STATE …`.
    fn parse(stat: &str, ticks_per_second: u64) -> Option<Usage> {
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let is_runnable = matches!(fields.next()?, "R" | "D");
        // The 14th and 15th fields of the line, for user and system; the state was the third.
        let (user, system): (u64, u64) =
            (fields.nth(10)?.parse().ok()?, fields.next()?.parse().ok()?);
        let ticks = user.saturating_add(system);
        let milliseconds = ticks.saturating_mul(1000).checked_div(ticks_per_second)?;
        Some(Usage { is_runnable, processor_time: Duration::from_millis(milliseconds) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_is_that_of_user_and_system() {
        let stat = "7 (a) b) R 3 7 5 0 -1 0 1 2 3 4 150 60 7 8 20 0 1 0 4711 9 9";
        let expected = Usage { is_runnable: true, processor_time: Duration::from_millis(2100) };
        assert_eq!(Usage::parse(stat, 100), Some(expected));
        assert_eq!(Usage::parse("7 (a) S 3 7", 100), None);
    }

    #[test]
    fn time_without_a_processor_does_not_count() {
        let mut child =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let used = Some(Duration::ZERO);
        let limit = Duration::from_secs(1000);
        let idle = |age| IdleTime { pid, began: Instant::now().checked_sub(age).unwrap(), used };
        // Once it has started, it waits only for a processor.
        while idle(2 * limit).is_over(limit) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!idle(limit / 2).is_over(limit));
        assert!(idle(MAX_FACTOR * limit).is_over(limit));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_sleeping_worker_is_idle() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let limit = Duration::from_secs(1);
        let began = Instant::now().checked_sub(2 * limit).unwrap();
        let idle = IdleTime { pid, began, used: Some(Duration::ZERO) };
        // It does not sleep before it has started.
        while !idle.is_over(limit) {
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
