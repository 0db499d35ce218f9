//! What was changed, by which call, and what was there before.
//!
//! # How it works
//!
//! The journal is a directory outside every root: `log`, a line for each change that was made, only
//! ever appended to; `blobs/`, file contents by their hash, compressed; `pending/`, a file for each
//! change that is being made; `decisions`, what was decided on calls; `last`, the highest number that a
//! change got; and two lock files. No other user can reach it (`private.rs`).
//!
//! Before a change touches anything, every content that it replaces and every content that it brings is
//! stored, and then what it is about to do is written to a file in `pending/`; all of that is on disk
//! before the first file is replaced. The process holds a lock on that file. When everything is in
//! place the line is appended to the log, and only then the pending file goes.
//!
//! A pending file whose lock is free is a change that a crash interrupted. Whoever opens the journal
//! next looks at the files: if all are new the change is finished, otherwise those that are new get
//! back what was there before (`recover.rs`).
//!
//! What somebody else changes, a command for one, is noted file by file in `followed/`, and becomes a line
//! in the log when it is over (`followed.rs`).
//!
//! Changes that are too old or too much are collected now and then, with the contents that nothing
//! names any more (`collect.rs`).

mod collect;
mod decisions;
mod entry;
mod log;
mod open_captures;
mod pending;
mod recover;
mod store;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};

pub use self::collect::Caps;
pub use self::decisions::Decided;
pub(crate) use self::entry::Effects;
pub use self::entry::{About, Entry, FileChange, KeptDirectory, KeptPath, Version};
pub use self::log::{Changes, Damage, DamagedChanges};
pub(crate) use self::open_captures::Followed;
pub use self::recover::{Outcome, Recovered};

use self::decisions::Decisions;
use self::log::Log;
use self::pending::Pending;
use self::store::Store;
use crate::content::Content;
use crate::error::FsError;
use crate::lock::lock_within;
use crate::private_directory::{PrivateDirectory, Refusal};
use crate::random;

/// Longer than anybody holds the journal's locks.
const PATIENCE: Duration = Duration::from_secs(10);

/// Its directories.
const BLOBS: &str = "blobs";
const PENDING: &str = "pending";
const FOLLOWED: &str = "followed";

/// A journal: where it is, and how much it keeps. All that is told of it stands on disk.
#[derive(Debug, Clone)]
pub struct Journal {
    directory: PrivateDirectory,
    log: Log,
    store: Store,
    decisions: Decisions,
    caps: Caps,
}

impl Journal {
    /// The journal in a directory, which is made when there is something to keep. An error, if another user
    /// could reach it.
    pub fn open(directory: impl AsRef<Path>, caps: Caps) -> Result<Journal, FsError> {
        let directory = PrivateDirectory::at(directory.as_ref());
        // One that does not exist, or that we may not open, is no danger. Who needs it is told then.
        if let Err(Refusal::Unsafe(error)) = directory.check(&[BLOBS, PENDING, FOLLOWED]) {
            return Err(error);
        }
        let (log, store) = (Log::new(directory.clone()), Store::new(directory.clone()));
        let decisions = Decisions::new(directory.clone());
        Ok(Journal { directory, log, store, decisions, caps })
    }

    /// The directory it is in.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The changes that were made, the oldest first.
    pub fn entries(&self) -> Result<Vec<Entry>, FsError> {
        Ok(self.changes()?.entries)
    }

    /// The changes that were made, with the numbers of those that cannot be read any more.
    pub fn changes(&self) -> Result<Changes, FsError> {
        self.log.read()
    }

    /// What a version of a file said; nothing, if it is not kept any more.
    pub fn content(&self, version: &Version) -> Result<Option<Vec<u8>>, FsError> {
        self.store.get(version)
    }

    /// Says what is about to happen, with everything that it takes to undo it on disk first. Where there
    /// is no room, what is not needed any more makes some.
    pub(crate) fn begin(
        &self,
        about: About,
        effects: Effects,
        contents: &[&Content],
    ) -> Result<Flight<'_>, FsError> {
        self.directory.make(&[BLOBS, PENDING])?;
        let token = random::hex::<16>()
            .map_err(|errno| FsError::from_errno(self.directory(), "cannot be named", errno))?;
        let entry = Entry::new(token, about, effects);
        self.try_begin(entry.clone(), contents).or_else(|_| {
            self.collect()?;
            self.try_begin(entry, contents)
        })
    }

    fn try_begin(&self, entry: Entry, contents: &[&Content]) -> Result<Flight<'_>, FsError> {
        let shared = FlockOperation::NonBlockingLockShared;
        let not_while_collecting = self.hold("collecting", shared, PATIENCE)?;
        self.store.put_all(contents)?;
        let pending = Pending::write(&self.directory, &entry)?;
        Ok(Flight { journal: self, entry, pending, not_while_collecting })
    }

    /// Adds a change to those that were made; answers its number.
    fn append(&self, mut entry: Entry) -> Result<u64, FsError> {
        let _lock = self.hold("lock", FlockOperation::NonBlockingLockExclusive, PATIENCE)?;
        entry.id = self.log.last_id()?.saturating_add(1);
        self.log.append(&entry)?;
        Ok(entry.id)
    }

    fn hold(
        &self,
        name: &str,
        operation: FlockOperation,
        patience: Duration,
    ) -> Result<OwnedFd, FsError> {
        let path = || self.directory().join(name);
        let file: OwnedFd = self
            .directory
            .open_file(name, OFlags::RDWR | OFlags::CREATE)
            .map_err(|error| FsError::from_io(path(), "cannot be locked", &error))?
            .into();
        lock_within(&file, operation, patience)
            .map_err(|errno| FsError::from_errno(path(), "cannot be locked", errno))?;
        Ok(file)
    }
}

/// A change that is being made.
#[derive(Debug)]
pub(crate) struct Flight<'a> {
    journal: &'a Journal,
    entry: Entry,
    pending: Pending,
    not_while_collecting: OwnedFd,
}

impl Flight<'_> {
    /// Everything is in place: adds it to the changes that were made, and answers its number.
    pub(crate) fn done(&self) -> Result<u64, FsError> {
        self.journal.append(self.entry.clone())
    }

    /// It is over: all in place and added with this number, or all as it was. What is not closed is looked
    /// after by the next start.
    pub(crate) fn close(self, id: Option<u64>) {
        self.pending.remove();
        let journal = self.journal;
        drop(self.not_while_collecting);
        // The change is made and kept; what could not be collected now can be later.
        let _ = id.map(|id| journal.collect_now_and_then(id));
    }
}
