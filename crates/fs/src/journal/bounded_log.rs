//! A log of bounded size for records that need fewer guarantees than changes: one line of JSON each, in two
//! files. A line that a crash cut off is skipped, and writes are not synced.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, OFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::read_back::lines_before;
use super::{Journal, LOCK_TIMEOUT};
use crate::error::FsError;
use crate::private_directory::PrivateDirectory;

/// When the current file reaches this size, it replaces the older one.
pub(super) const MAX_BYTES: u64 = 4 << 20;

/// The number of records between two looks at the size of the current file.
const SIZE_CHECK_INTERVAL: u32 = 32;

/// Longer lines are not stored.
pub(super) const MAX_LINE_BYTES: usize = 64 << 10;

/// The files of one kind of records.
#[derive(Debug, Clone)]
pub(super) struct BoundedLog {
    directory: PrivateDirectory,
    /// The name of the current file. The older one has `.before` behind it.
    name: &'static str,
    max_bytes: u64,
    open: Arc<Mutex<Option<OpenLog>>>,
}

/// The current file, and the number of records that may follow before its size is looked at.
#[derive(Debug)]
struct OpenLog {
    file: File,
    unchecked: u32,
}

/// A place between two records: the inode number of the file, which stays when the file gets the older name, and the
/// offset of the record after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    file: u64,
    offset: u64,
}

impl Position {
    pub(super) fn parse(text: &str) -> Option<Position> {
        let (file, offset) = text.split_once('-')?;
        let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
        Some(Position { file: number(file)?, offset: number(offset)? })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.file, self.offset)
    }
}

impl BoundedLog {
    pub(super) fn new(
        directory: PrivateDirectory,
        name: &'static str,
        max_bytes: u64,
    ) -> BoundedLog {
        BoundedLog { directory, name, max_bytes, open: Arc::default() }
    }

    /// Stores a record. Returns `false` if it is too long, and fails if it cannot be written.
    pub(super) fn append(
        &self,
        journal: &Journal,
        record: &impl Serialize,
    ) -> Result<bool, FsError> {
        let mut line = serde_json::to_string(record).unwrap_or_default();
        line.push('\n');
        if line.len() > MAX_LINE_BYTES {
            return Ok(false);
        }
        let mut open = self.open.lock();
        let is_full =
            |file: &File| file.metadata().is_ok_and(|found| found.len() >= self.max_bytes);
        let current = match open.take() {
            Some(OpenLog { file, unchecked: left @ 1.. }) => OpenLog { file, unchecked: left - 1 },
            Some(log) if !is_full(&log.file) => OpenLog { unchecked: SIZE_CHECK_INTERVAL, ..log },
            _ => OpenLog { file: self.open_with_room(journal)?, unchecked: SIZE_CHECK_INTERVAL },
        };
        // A single write, so that lines of other processes are not mixed in.
        let written = open.insert(current).file.write_all(line.as_bytes());
        written.map(|()| true).map_err(|error| self.error(&error))
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
            // Several processes may each append lines to a file that is nearly full.
            let lines = BufReader::new(file.take(2 * self.max_bytes)).split(b'\n');
            let lines = lines.map_while(Result::ok);
            all.extend(lines.filter_map(|line| serde_json::from_slice(&line).ok()));
        }
        all.reverse();
        Ok(all)
    }

    /// Passes records to `visit`, newest first, from a position back. Returns where to go on if `visit` stopped, at
    /// the record that it stopped at, or if `max_bytes` were read.
    pub(super) fn read_back(
        &self,
        from: Option<Position>,
        max_bytes: u64,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<Option<Position>, FsError> {
        let mut left = max_bytes;
        let mut from = from;
        let mut stopped_at = None;
        for name in [self.name.to_owned(), self.previous()] {
            let cannot = |error: &io::Error| {
                FsError::from_io(self.directory.path().join(&name), "cannot be read", error)
            };
            let file = match self.directory.open_file(&name, OFlags::RDONLY) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(cannot(&error)),
            };
            let found = file.metadata().map_err(|error| cannot(&error))?;
            let end = match from {
                Some(position) if position.file != found.ino() => continue,
                Some(position) => position.offset.min(found.len()),
                None => found.len(),
            };
            from = None;
            let mut line_end = end;
            let seen = lines_before(&file, end, MAX_LINE_BYTES, |line, at| {
                let is_last = left == 0 || visit(line).is_break();
                if is_last {
                    stopped_at = Some(Position { file: found.ino(), offset: line_end });
                    return ControlFlow::Break(());
                }
                left = left.saturating_sub(line_end - at);
                line_end = at;
                ControlFlow::Continue(())
            });
            if seen.map_err(|error| cannot(&error))?.is_break() {
                break;
            }
        }
        Ok(stopped_at)
    }

    fn previous(&self) -> String {
        format!("{}.before", self.name)
    }

    /// Opens the current file. If it is full, starts a new one.
    fn open_with_room(&self, journal: &Journal) -> Result<File, FsError> {
        journal.prepare(&[])?;
        let file = self.open_current().map_err(|error| self.error(&error))?;
        if file.metadata().is_ok_and(|found| found.len() < self.max_bytes) {
            return Ok(file);
        }
        let _lock =
            journal.lock_file("lock", FlockOperation::NonBlockingLockExclusive, LOCK_TIMEOUT)?;
        // Another process may have replaced it already.
        let found = self.directory.stat(self.name);
        if found.is_ok_and(|found| u64::try_from(found.st_size).unwrap_or(0) >= self.max_bytes) {
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
