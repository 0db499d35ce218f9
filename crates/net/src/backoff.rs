//! The time before the next attempt: longer after each failure, and not the same on all machines.

use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Counts failed attempts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The time to wait after one more failure.
    pub fn next_wait(&mut self) -> Duration {
        let most = LONGEST.min(FIRST.saturating_mul(1 << self.failures.min(10)));
        self.failures = self.failures.saturating_add(1);
        let mut random = [128];
        let _ = getrandom(&mut random, GetRandomFlags::INSECURE);
        let [random] = random;
        // From half to all of it.
        most / 2 + most.mul_f64(f64::from(random) / 512.0)
    }

    /// Starts over after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_minute() {
        let mut backoff = Backoff::default();
        let waits: Vec<Duration> = (0..40).map(|_| backoff.next_wait()).collect();
        assert!(waits[0] <= FIRST && waits.iter().all(|wait| *wait <= LONGEST), "{waits:?}");
        assert!(waits[39] >= LONGEST / 2);
        backoff.reset();
        assert!(backoff.next_wait() <= FIRST);
    }
}
