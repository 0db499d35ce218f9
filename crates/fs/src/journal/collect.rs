//! Removes changes that exceed the limits of the journal.

use std::collections::HashSet;
use std::time::Duration;

use rustix::fs::FlockOperation;

use super::entry::Entry;
use super::{Journal, LOCK_TIMEOUT, log};
use crate::error::FsError;
use crate::unix_time::now_ms;

/// The limits of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Bytes on disk. The oldest changes are removed first; the newest is always kept.
    pub bytes: u64,
    /// How long a change is kept.
    pub age: Duration,
    /// Bytes of the audit log of each workspace. The oldest records are removed first.
    pub audit_bytes: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Caps {
            bytes: 1 << 30,
            age: Duration::from_secs(60 * 60 * 24 * 30),
            audit_bytes: 1_000_000_000,
        }
    }
}

/// The number of changes between two collections, since measuring the journal takes time in proportion to its
/// size.
const COLLECT_INTERVAL: u64 = 64;

impl Journal {
    pub(super) fn collect_periodically(&self, id: u64) -> Result<(), FsError> {
        if id.is_multiple_of(COLLECT_INTERVAL) { self.collect() } else { Ok(()) }
    }

    /// Removes changes over the limits, and contents that no change refers to. Does nothing while a change is
    /// in progress.
    pub fn collect(&self) -> Result<(), FsError> {
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        let Ok(_alone) = self.lock_file("collecting", exclusive, Duration::ZERO) else {
            return Ok(());
        };
        let _lock = self.lock_file("lock", exclusive, LOCK_TIMEOUT)?;
        let entries = self.entries()?;
        let kept = self.within_limits(&entries);
        if kept.len() < entries.len() {
            self.log.rewrite(kept)?;
        }
        let interrupted = [self.pending_entries()?, self.captured_entries()?].concat();
        let named = kept.iter().chain(&interrupted).flat_map(Entry::contents);
        self.store.retain(&named.collect())
    }

    /// The changes within the limits, from the newest back.
    fn within_limits<'a>(&self, entries: &'a [Entry]) -> &'a [Entry] {
        let oldest = u128::from(now_ms()).saturating_sub(self.caps.age.as_millis());
        let (mut counted, mut bytes) = (HashSet::new(), 0);
        for (at, entry) in entries.iter().enumerate().rev() {
            bytes += log::line(entry).len() as u64;
            for hash in entry.contents() {
                if !counted.contains(&hash) {
                    let sizes = self.store.sizes(hash).into_iter();
                    let new = sizes.filter(|(hash, _)| counted.insert(*hash));
                    bytes += new.map(|(_, size)| size).sum::<u64>();
                }
            }
            let over = bytes > self.caps.bytes
                || u128::from(entry.imported_ms.unwrap_or(entry.time_ms)) < oldest;
            if over && at + 1 < entries.len() {
                return &entries[at + 1..];
            }
        }
        entries
    }
}
