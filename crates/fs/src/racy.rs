//! Racy stat fingerprints: a later change of the file might leave them the same.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::bulk_reader::Stamp;

impl Stamp {
    /// Whether any change after `now`, a moment before the fingerprint was taken, must alter it. File system
    /// clocks advance in steps of some milliseconds, some of two seconds, so the last change must be older
    /// than that.
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

    /// Like [`Stamp::is_settled_at`], for a fingerprint that was taken right now.
    pub fn is_settled(&self) -> bool {
        self.is_settled_at(SystemTime::now())
    }

    /// The fingerprint, or one that never matches if it is racy.
    #[must_use]
    pub fn settled(self) -> Stamp {
        if self.is_settled() { self } else { Stamp { changed: (i64::MIN, 0), ..self } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recent_change_is_racy() {
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
        // A clock without fractions of seconds has a coarse resolution.
        assert!(!stamp(999, 0).is_settled_at(now) && stamp(997, 0).is_settled_at(now));
        // Clocks that were set back, or belong to another machine.
        assert!(!stamp(2_000, 1).is_settled_at(now) && !stamp(-5, 1).is_settled_at(now));
    }
}
