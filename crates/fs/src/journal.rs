//! The record of all changes: their origin, and the content before and after each.
//!
//! # How it works
//!
//! The journal is a directory outside every root: `log`, with one line for each completed change,
//! append-only; `blobs/`, file contents by their hash, compressed, large ones also as deltas; `pending/`, with one file for each change
//! in progress; `followed/`, with one file for each command whose changes are being captured; `decisions`,
//! the decisions about calls; `backups/`, how far copies elsewhere have come; `calls`, the calls that have ended; `command-ends`, the ends of commands that went on after their calls; `audit/`, the calls of each workspace in a chain of hashes;
//! `connections` and `refused-connections`, the connections of commands; `last`, the highest number of a
//! change; `version`, the format of all of it (`state_version.rs`); and two lock files. No other user can
//! access it (`private_directory.rs`).
//!
//! Before a change modifies anything, all old and new contents are stored, and then a file in `pending/` is
//! written that describes the change; all of that is on disk before the first file is replaced. The process
//! holds a lock on the pending file. When everything is in place, the line is appended to the log, and only
//! then is the pending file removed.
//!
//! A pending file whose lock is free belongs to a change that a crash interrupted. The next process that
//! opens the journal examines the files: if all are new, the change is completed, otherwise the new ones are
//! restored to their previous content (`recovery.rs`).
//!
//! Changes of other programs, such as commands, are noted file by file in `followed/`, and become a line in
//! the log at the end (`open_captures.rs`).
//!
//! From time to time, changes over the limits are removed, and contents that no change refers to
//! (`collect.rs`).

mod audit;
mod bounded_log;
mod calls;
mod change_outbox;
mod collect;
mod command_ends;
mod connections;
mod decisions;
mod entry;
mod import;
mod log;
mod open_captures;
mod pending;
mod read_back;
mod store;

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};

pub use self::audit::{
    AuditBreak, AuditEvent, AuditOutbox, AuditReport, AuditVerifier, OutboxPosition, OutboxRecord,
    PrincipalRecord, SharedHolder, escaped_json,
};
pub use self::calls::{CallPage, CallRecord, RefusalRecord};
pub use self::change_outbox::{ChangeOutbox, OutboxChanges};
pub use self::collect::Caps;
pub use self::command_ends::CommandEndRecord;
pub use self::connections::ConnectionRecord;
pub use self::decisions::DecisionRecord;
pub(crate) use self::entry::Effects;
pub use self::entry::{About, DirectoryMode, Entry, FileChange, KeptDirectory, KeptPath, Version};
pub use self::import::JournalImport;
pub use self::log::{Changes, Damage, DamagedChanges};
pub(crate) use self::open_captures::CaptureNote;
pub(crate) use self::store::ContentChange;

use self::audit::AuditLogs;
use self::bounded_log::{BoundedLog, MAX_BYTES};
use self::log::Log;
use self::pending::Pending;
use self::store::Store;
use crate::error::FsError;
use crate::lock::lock_with_timeout;
use crate::private_directory::{PrivateDirectory, PrivateDirectoryError};
use crate::random;
use crate::state_version;

/// Longer than any process holds the journal's locks.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Room for about 100,000 calls, and as many in the older file.
const MAX_CALLS_BYTES: u64 = 32 << 20;

/// The subdirectories.
const BLOBS: &str = "blobs";
const PENDING: &str = "pending";
const CAPTURES: &str = "followed";

/// A journal. All its state is on disk.
#[derive(Debug, Clone)]
pub struct Journal {
    directory: PrivateDirectory,
    log: Log,
    store: Store,
    audit: AuditLogs,
    calls: BoundedLog,
    command_ends: BoundedLog,
    decisions: BoundedLog,
    connections: BoundedLog,
    /// Apart, so that a sweep of hosts does not replace the records of connections that were made.
    refused_connections: BoundedLog,
    caps: Caps,
}

impl Journal {
    /// The journal in a directory, which is created on the first write. Fails if another user could access
    /// it, or if a newer program has written it.
    pub fn open(directory: impl AsRef<Path>, caps: Caps) -> Result<Journal, FsError> {
        let directory = PrivateDirectory::new(directory.as_ref());
        match directory.check(&[BLOBS, PENDING, CAPTURES]) {
            Ok(()) => drop(state_version::is_current(&directory)?),
            Err(PrivateDirectoryError::Unsafe(error)) => return Err(error),
            // A missing or inaccessible directory is safe. Writes report that error.
            Err(PrivateDirectoryError::Errno(..)) => {}
        }
        let (log, store) = (Log::new(directory.clone()), Store::new(directory.clone()));
        let bounded = |name, bytes| BoundedLog::new(directory.clone(), name, bytes);
        Ok(Journal {
            log,
            store,
            audit: AuditLogs::new(directory.clone()),
            calls: bounded("calls", MAX_CALLS_BYTES),
            command_ends: bounded("command-ends", MAX_BYTES),
            decisions: bounded("decisions", MAX_BYTES),
            connections: bounded("connections", MAX_BYTES),
            refused_connections: bounded("refused-connections", MAX_BYTES),
            caps,
            directory: directory.clone(),
        })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The completed changes, oldest first.
    pub fn entries(&self) -> Result<Vec<Entry>, FsError> {
        Ok(self.changes()?.entries)
    }

    /// The completed changes, and the numbers of damaged ones.
    pub fn changes(&self) -> Result<Changes, FsError> {
        // A newer program may have been started since the journal was opened.
        state_version::is_current(&self.directory)?;
        self.log.read()
    }

    /// The number of the last change.
    pub(crate) fn last_id(&self) -> Result<u64, FsError> {
        self.log.last_id()
    }

    /// The readable changes with numbers after `id`, oldest first.
    pub(crate) fn entries_after(&self, id: u64) -> Result<Vec<Entry>, FsError> {
        self.log.entries_after(id)
    }

    /// The content of a version. `None` if it is no longer stored.
    pub fn content(&self, version: &Version) -> Result<Option<Vec<u8>>, FsError> {
        self.store.get(version)
    }

    /// Records a change that is about to be made, with everything that undo needs on disk first. If there is
    /// no space, removes what is no longer needed and tries again.
    pub(crate) fn begin(
        &self,
        about: About,
        effects: Effects,
        contents: &[ContentChange<'_>],
    ) -> Result<PendingChange<'_>, FsError> {
        self.prepare(&[BLOBS, PENDING])?;
        let token = random::hex::<16>()
            .map_err(|errno| FsError::from_errno(self.directory(), "cannot be resolved", errno))?;
        let entry = Entry::new(token, about, effects);
        self.try_begin(entry.clone(), contents).or_else(|_| {
            self.collect()?;
            self.try_begin(entry, contents)
        })
    }

    /// Creates the journal with these subdirectories, and raises older state to the current format.
    fn prepare(&self, subdirectories: &[&str]) -> Result<(), FsError> {
        self.directory.make(&[])?;
        let is_current = state_version::is_current(&self.directory)?;
        self.directory.make(subdirectories)?;
        if is_current {
            return Ok(());
        }
        let _lock =
            self.lock_file("lock", FlockOperation::NonBlockingLockExclusive, LOCK_TIMEOUT)?;
        state_version::raise(&self.directory)
    }

    fn try_begin(
        &self,
        entry: Entry,
        contents: &[ContentChange<'_>],
    ) -> Result<PendingChange<'_>, FsError> {
        let shared = FlockOperation::NonBlockingLockShared;
        let collection_lock = self.lock_file("collecting", shared, LOCK_TIMEOUT)?;
        self.store.put_all(contents)?;
        let pending = Pending::write(&self.directory, &entry)?;
        Ok(PendingChange { journal: self, entry, pending, collection_lock })
    }

    /// Appends a completed change to the log. Returns its number.
    pub(crate) fn append(&self, entry: Entry) -> Result<u64, FsError> {
        self.append_all(vec![entry]).map(|ids| ids.start)
    }

    /// Appends completed changes to the log, all or none. Returns their numbers.
    fn append_all(&self, mut entries: Vec<Entry>) -> Result<Range<u64>, FsError> {
        let _lock =
            self.lock_file("lock", FlockOperation::NonBlockingLockExclusive, LOCK_TIMEOUT)?;
        let first = self.log.last_id()?.saturating_add(1);
        let ids = first..first.saturating_add(entries.len() as u64);
        for (entry, id) in entries.iter_mut().zip(ids.clone()) {
            entry.id = id;
        }
        self.log.append(&entries)?;
        Ok(ids)
    }

    pub(crate) fn lock_file(
        &self,
        name: &str,
        operation: FlockOperation,
        timeout: Duration,
    ) -> Result<OwnedFd, FsError> {
        let path = || self.directory().join(name);
        let file: OwnedFd = self
            .directory
            .open_file(name, OFlags::RDWR | OFlags::CREATE)
            .map_err(|error| FsError::from_io(path(), "cannot be locked", &error))?
            .into();
        lock_with_timeout(&file, operation, timeout)
            .map_err(|errno| FsError::from_errno(path(), "cannot be locked", errno))?;
        Ok(file)
    }
}

/// A change in progress.
#[derive(Debug)]
pub(crate) struct PendingChange<'a> {
    journal: &'a Journal,
    entry: Entry,
    pending: Pending,
    collection_lock: OwnedFd,
}

impl PendingChange<'_> {
    /// Appends the change to the log, once everything is in place. Returns its number.
    pub(crate) fn done(&self) -> Result<u64, FsError> {
        self.journal.append(self.entry.clone())
    }

    /// Ends the change: it was completed with this number, or reverted. If this is not called, the next start
    /// recovers the change.
    pub(crate) fn close(self, id: Option<u64>) {
        self.pending.remove();
        let journal = self.journal;
        drop(self.collection_lock);
        // The change is complete. A failed collection is repeated later.
        let _ = id.map(|id| journal.collect_periodically(id));
    }
}
