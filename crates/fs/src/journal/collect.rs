//! Taking away what is too old or too much.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::FlockOperation;

use super::entry::Entry;
use super::{Journal, PATIENCE, log};
use crate::error::FsError;

/// How much the journal keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Bytes on disk; the oldest changes go first. The newest is kept whatever its size.
    pub bytes: u64,
    /// How long a change is kept.
    pub age: Duration,
}

impl Default for Caps {
    fn default() -> Self {
        Caps { bytes: 1 << 30, age: Duration::from_secs(60 * 60 * 24 * 30) }
    }
}

/// Counting what is there costs time in proportion; once in so many changes is enough.
const EVERY: u64 = 64;

impl Journal {
    pub(super) fn collect_now_and_then(&self, id: u64) -> Result<(), FsError> {
        match id.is_multiple_of(EVERY) {
            true => self.collect(),
            false => Ok(()),
        }
    }

    /// Takes away changes over the caps, and contents that nothing names. While somebody is in the
    /// middle of a change, does nothing; there will be another time.
    pub fn collect(&self) -> Result<(), FsError> {
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        let Ok(_alone) = self.hold("collecting", exclusive, Duration::ZERO) else { return Ok(()) };
        let _lock = self.hold("lock", exclusive, PATIENCE)?;
        let entries = self.entries()?;
        let kept = self.worth_keeping(&entries);
        if kept.len() < entries.len() {
            self.log.rewrite(kept)?;
        }
        let interrupted = [self.noted()?, self.followed()?].concat();
        let named = kept.iter().chain(&interrupted).flat_map(Entry::contents);
        self.store.keep_only(&named.collect())
    }

    /// The changes within the caps: from the newest back, as long as there is room.
    fn worth_keeping<'a>(&self, entries: &'a [Entry]) -> &'a [Entry] {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let oldest = now.saturating_sub(self.caps.age).as_millis();
        let (mut counted, mut bytes) = (HashSet::new(), 0);
        for (at, entry) in entries.iter().enumerate().rev() {
            let new = entry.contents().filter(|hash| counted.insert(*hash));
            let sizes = new.map(|hash| self.store.size(&hash));
            bytes += sizes.sum::<u64>() + log::line(entry).len() as u64;
            let over = bytes > self.caps.bytes || u128::from(entry.time_ms) < oldest;
            if over && at + 1 < entries.len() {
                return &entries[at + 1..];
            }
        }
        entries
    }
}
