//! Whether a later change must show in a stamp.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::tree_reader::Stamp;

impl Stamp {
    /// Clocks of file systems stand still for some milliseconds, and those of some for two seconds. A stamp
    /// that is older than that by `now`, a moment before it was taken, is not the stamp of any later change.
    pub fn is_settled_at(&self, now: SystemTime) -> bool {
        const TICK: Duration = Duration::from_millis(50);
        const COARSE_TICK: Duration = Duration::from_secs(2);
        let (seconds, nanoseconds) = self.changed;
        let tick = if nanoseconds == 0 { COARSE_TICK } else { TICK };
        let whole = u64::try_from(seconds).ok().map(Duration::from_secs);
        let part = u64::try_from(nanoseconds).ok().map(Duration::from_nanos);
        let now = now.duration_since(UNIX_EPOCH).ok();
        match (whole, part, now) {
            (Some(whole), Some(part), Some(now)) => whole + part + tick < now,
            _ => false,
        }
    }

    /// The same, for what is read right now.
    pub fn is_settled(&self) -> bool {
        self.is_settled_at(SystemTime::now())
    }

    /// The stamp, or one that nothing ever has, if a change may not show in it.
    #[must_use]
    pub fn settled(self) -> Stamp {
        if self.is_settled() { self } else { Stamp { changed: (i64::MIN, 0), ..self } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_a_moment_ago_is_not_settled() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000);
        let stamp = |seconds, nanoseconds| Stamp {
            identity: (1, 1),
            size: 1,
            modified: (0, 0),
            changed: (seconds, nanoseconds),
            is_shared: false,
        };
        assert!(stamp(999, 1).is_settled_at(now) && stamp(999, 900_000_000).is_settled_at(now));
        assert!(!stamp(999, 960_000_000).is_settled_at(now));
        // A clock without parts of seconds ticks slowly.
        assert!(!stamp(999, 0).is_settled_at(now) && stamp(997, 0).is_settled_at(now));
        // Clocks that were set back, or are somebody else's.
        assert!(!stamp(2_000, 1).is_settled_at(now) && !stamp(-5, 1).is_settled_at(now));
    }
}
