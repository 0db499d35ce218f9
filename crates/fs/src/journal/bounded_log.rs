//! A log of bounded size for records that need fewer guarantees than changes: one line of JSON each, in two
//! files. A line that a crash cut off is skipped, and writes are not synced.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, OFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Journal, LOCK_TIMEOUT};
use crate::error::FsError;
use crate::private_directory::PrivateDirectory;

/// When the current file reaches this size, it replaces the older one.
const MAX_BYTES: u64 = 4 << 20;

/// Longer lines are not stored.
pub(super) const MAX_LINE_BYTES: usize = 64 << 10;

/// The files of one kind of records.
#[derive(Debug, Clone)]
pub(super) struct BoundedLog {
    directory: PrivateDirectory,
    /// The name of the current file. The older one has `.before` behind it.
    name: &'static str,
    open: Arc<Mutex<Option<File>>>,
}

impl BoundedLog {
    pub(super) fn new(directory: PrivateDirectory, name: &'static str) -> BoundedLog {
        BoundedLog { directory, name, open: Arc::default() }
    }

    /// Stores a record. Fails if it cannot be written.
    pub(super) fn append(&self, journal: &Journal, record: &impl Serialize) -> Result<(), FsError> {
        let mut line = serde_json::to_string(record).unwrap_or_default();
        line.push('\n');
        if line.len() > MAX_LINE_BYTES {
            return Ok(());
        }
        let mut open = self.open.lock();
        let is_full = |file: &File| file.metadata().is_ok_and(|found| found.len() >= MAX_BYTES);
        let file = match open.take() {
            Some(file) if !is_full(&file) => file,
            _ => self.open_with_room(journal)?,
        };
        // A single write, so that lines of other processes are not mixed in.
        let written = open.insert(file).write_all(line.as_bytes());
        written.map_err(|error| self.error(&error))
    }

    /// Fails if a record could not be stored now.
    pub(super) fn check(&self, journal: &Journal) -> Result<(), FsError> {
        self.open_with_room(journal).map(drop)
    }

    /// The stored records, newest first.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<Vec<T>, FsError> {
        let mut all = Vec::new();
        for name in [self.previous(), self.name.to_owned()] {
            let file = match self.directory.open_file(&name, OFlags::RDONLY) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    let path = self.directory.path().join(&name);
                    return Err(FsError::from_io(path, "cannot be read", &error));
                }
            };
            // Several processes may each append a line to a file that is nearly full.
            let lines = BufReader::new(file.take(2 * MAX_BYTES)).split(b'\n');
            let lines = lines.map_while(Result::ok);
            all.extend(lines.filter_map(|line| serde_json::from_slice(&line).ok()));
        }
        all.reverse();
        Ok(all)
    }

    fn previous(&self) -> String {
        format!("{}.before", self.name)
    }

    /// Opens the current file. If it is full, starts a new one.
    fn open_with_room(&self, journal: &Journal) -> Result<File, FsError> {
        journal.prepare(&[])?;
        let file = self.open_current().map_err(|error| self.error(&error))?;
        if file.metadata().is_ok_and(|found| found.len() < MAX_BYTES) {
            return Ok(file);
        }
        let _lock =
            journal.lock_file("lock", FlockOperation::NonBlockingLockExclusive, LOCK_TIMEOUT)?;
        // Another process may have replaced it already.
        let found = self.directory.stat(self.name);
        if found.is_ok_and(|found| u64::try_from(found.st_size).unwrap_or(0) >= MAX_BYTES) {
            let renamed = self.directory.rename(self.name, self.previous());
            renamed.map_err(|error| self.error(&error))?;
        }
        self.open_current().map_err(|error| self.error(&error))
    }

    fn open_current(&self) -> io::Result<File> {
        self.directory.open_file(self.name, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)
    }

    fn error(&self, error: &io::Error) -> FsError {
        FsError::from_io(self.directory.path().join(self.name), "cannot be written", error)
    }
}
