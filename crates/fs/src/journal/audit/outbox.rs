//! The audit log of a workspace as the outbox of a copy elsewhere: its records after a position, and the position itself.
//!
//! The log is the queue. Whoever sends the records reads them here, in batches, and never holds up an append for longer than
//! it takes to list the files. `KEY.store` has the position, and the lock on `KEY.store-lock` makes one process the sender.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};

use super::chained_line::{self, ChainLink};
use super::{AUDIT, current, key, skip_line};
use crate::error::FsError;
use crate::journal::bounded_log::MAX_LINE_BYTES;
use crate::journal::{Caps, Journal};
use crate::random;

/// Larger than any position.
const MAX_POSITION_BYTES: u64 = 16 << 10;

/// The end of the names of position files.
const POSITION: &str = ".store";

/// A record of the audit log whose hash is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRecord {
    /// Its number.
    pub seq: u64,
    /// Its hash, in hexadecimal digits.
    pub hash: String,
    /// The line without its newline.
    pub line: String,
}

/// How much of the log is elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxPosition {
    /// Where the records go.
    pub store: String,
    /// The id of the log there.
    pub log: String,
    /// The name of the workspace there.
    pub name: String,
    /// The workspace.
    pub workspace: String,
    /// The number of the last record that arrived. 0 if there is none.
    pub seq: u64,
}

/// The audit log of a workspace, from which records are sent.
#[derive(Debug)]
pub struct AuditOutbox {
    journal: Journal,
    workspace: String,
    key: String,
    /// Where the record after a number begins.
    place: Option<Place>,
    /// The inode and the length of the current file when nothing more was found.
    read_up_to: Option<(u64, u64)>,
    lock: Option<File>,
}

/// A place in a file of the log.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The record before it.
    seq: u64,
    inode: u64,
    offset: u64,
}

/// A batch of records that grows up to its limits.
struct Batch {
    records: Vec<OutboxRecord>,
    bytes: usize,
    max_records: usize,
    max_bytes: usize,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.records.len() >= self.max_records || self.bytes >= self.max_bytes
    }
}

impl AuditOutbox {
    /// The outbox of a workspace in a state directory. Nothing is created.
    ///
    /// # Errors
    ///
    /// Fails if another user could access the directory.
    pub fn open(directory: &Path, workspace: &str) -> Result<AuditOutbox, FsError> {
        Ok(AuditOutbox::of(Journal::open(directory, Caps::default())?, workspace))
    }

    /// The outboxes in a state directory whose records go to this store.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be read.
    pub fn all_of_store(directory: &Path, store: &str) -> Result<Vec<AuditOutbox>, FsError> {
        let journal = Journal::open(directory, Caps::default())?;
        let listed = journal.audit.directory.list(AUDIT);
        let names = listed.map_err(|error| journal.audit.error(AUDIT, &error))?;
        let names = names.into_iter().filter_map(|name| name.into_string().ok());
        let keys = names.filter_map(|name| Some(name.strip_suffix(POSITION)?.to_owned()));
        let position = |key: String| read_position(&journal, &key).ok().flatten();
        let wanted = keys.filter_map(position).filter(|position| position.store == store);
        let open = |position: OutboxPosition| AuditOutbox::of(journal.clone(), &position.workspace);
        Ok(wanted.map(open).collect())
    }

    pub(crate) fn of(journal: Journal, workspace: &str) -> AuditOutbox {
        let (workspace, key) = (workspace.to_owned(), key(workspace));
        AuditOutbox { journal, workspace, key, place: None, read_up_to: None, lock: None }
    }

    /// The workspace.
    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    /// Makes this process the sender of this log. Returns whether it is; another process may be.
    ///
    /// # Errors
    ///
    /// Fails if the lock file cannot be used.
    pub fn try_lock(&mut self) -> Result<bool, FsError> {
        if self.lock.is_some() {
            return Ok(true);
        }
        self.journal.prepare(&[AUDIT])?;
        let name = format!("{AUDIT}/{}{POSITION}-lock", self.key);
        let cannot = |error: &io::Error| self.journal.audit.error(&name, error);
        let opened = self.journal.audit.directory.open_file(&name, OFlags::RDWR | OFlags::CREATE);
        let file = opened.map_err(|error| cannot(&error))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => self.lock = Some(file),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(errno) => return Err(cannot(&errno.into())),
        }
        Ok(self.lock.is_some())
    }

    /// Whether records may have been added since a batch was not full. Only looks at one file.
    pub fn may_have_more(&self) -> bool {
        let Some(read_up_to) = self.read_up_to else { return true };
        let found = self.journal.audit.directory.stat(current(&self.key));
        found.is_ok_and(|found| {
            (found.st_ino, u64::try_from(found.st_size).unwrap_or(0)) != read_up_to
        })
    }

    /// The records after a number, oldest first, up to these limits; at least one if there is one. Lines that are no
    /// records, and records whose number is not higher than that of the one before, are left out.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn after(
        &mut self,
        seq: u64,
        max_records: usize,
        max_bytes: usize,
    ) -> Result<Vec<OutboxRecord>, FsError> {
        let files = self.journal.audit.files(&self.key)?;
        let known = self.place.take().filter(|place| place.seq == seq && is_in(*place, &files));
        let mut batch = Batch { records: Vec::new(), bytes: 0, max_records, max_bytes };
        let mut last = Place { seq, inode: 0, offset: 0 };
        let start = first_file(&files, known, seq);
        for (name, file, length) in files.into_iter().skip(start) {
            let cannot = |error: io::Error| self.journal.audit.error(&name, &error);
            let inode = file.metadata().map_err(cannot)?.ino();
            last.inode = inode;
            last.offset =
                known.filter(|known| known.inode == inode).map_or(0, |known| known.offset);
            read_file(file, length, &mut last, &mut batch).map_err(cannot)?;
            if batch.is_full() {
                self.place = Some(last);
                self.read_up_to = None;
                return Ok(batch.records);
            }
            self.read_up_to = Some((inode, length));
        }
        self.place = Some(last).filter(|last| last.inode != 0);
        Ok(batch.records)
    }

    /// The record with this number.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn find(&mut self, seq: u64) -> Result<Option<OutboxRecord>, FsError> {
        let found = self.after(seq.saturating_sub(1), 1, 1)?;
        Ok(found.into_iter().next().filter(|record| record.seq == seq))
    }

    /// The first record.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    pub fn first(&self) -> Result<Option<OutboxRecord>, FsError> {
        let mut fresh = AuditOutbox::of(self.journal.clone(), &self.workspace);
        Ok(fresh.after(0, 1, 1)?.into_iter().next())
    }

    /// Writes the records to the disk. A record that is elsewhere must not be lost here by a crash of the machine: the
    /// log would go on with another record of the same number.
    ///
    /// # Errors
    ///
    /// Fails if the disk fails.
    pub fn sync(&self) -> Result<(), FsError> {
        let name = current(&self.key);
        let cannot = |error: &io::Error| self.journal.audit.error(&name, error);
        let opened = self.journal.audit.directory.open_file(&name, OFlags::RDONLY);
        let file = opened.map_err(|error| cannot(&error))?;
        file.sync_data().map_err(|error| cannot(&error))
    }

    /// The position that was kept.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn position(&self) -> Result<Option<OutboxPosition>, FsError> {
        let name = format!("{AUDIT}/{}{POSITION}", self.key);
        read_position(&self.journal, &self.key)
            .map_err(|error| self.journal.audit.error(&name, &error))
    }

    /// Keeps a position, in one step.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn keep_position(&self, position: &OutboxPosition) -> Result<(), FsError> {
        self.journal.prepare(&[AUDIT])?;
        let name = format!("{AUDIT}/{}{POSITION}", self.key);
        let written = || {
            let directory = &self.journal.audit.directory;
            let draft = format!("{name}-{}", random::hex::<8>()?);
            let text = serde_json::to_vec(position).map_err(io::Error::other)?;
            let made = directory.create_file(&draft, OFlags::empty());
            let kept = made.and_then(|mut file| file.write_all(&text));
            let kept = kept.and_then(|()| directory.rename(&draft, &name));
            if kept.is_err() {
                // The draft is useless.
                let _ = directory.remove(&draft);
            }
            kept
        };
        written().map_err(|error: io::Error| self.journal.audit.error(&name, &error))
    }
}

/// Whether a place is still in one of the files. A removed file may have left its inode number to a later one.
fn is_in(place: Place, files: &[(String, File, u64)]) -> bool {
    let begins_before =
        |file: &File| super::first_link(file).is_some_and(|link| link.seq <= place.seq);
    files.iter().any(|(_, file, length)| {
        file.metadata().is_ok_and(|found| found.ino() == place.inode)
            && place.offset <= *length
            && (place.offset == 0 || begins_before(file))
    })
}

/// The file in which reading begins: that of the known place, or the last one that begins with a number up to `seq`.
fn first_file(files: &[(String, File, u64)], known: Option<Place>, seq: u64) -> usize {
    let is_it = |(_, file, _): &(String, File, u64)| match known {
        Some(known) => file.metadata().is_ok_and(|found| found.ino() == known.inode),
        None => super::first_link(file).is_some_and(|link| link.seq <= seq),
    };
    files.iter().rposition(is_it).unwrap_or(0)
}

fn read_position(journal: &Journal, key: &str) -> io::Result<Option<OutboxPosition>> {
    let name = format!("{AUDIT}/{key}{POSITION}");
    let content = journal.audit.directory.read(name, MAX_POSITION_BYTES)?;
    // A damaged position is found out again from the store.
    Ok(content.and_then(|content| serde_json::from_slice(&content).ok()))
}

/// Reads records from `last` on. `last` becomes the place after the last line that was read.
fn read_file(file: File, length: u64, last: &mut Place, batch: &mut Batch) -> io::Result<()> {
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(last.offset))?;
    let mut reader = reader.take(length.saturating_sub(last.offset));
    let mut line = Vec::new();
    while !batch.is_full() {
        line.clear();
        let read = reader.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line)?;
        match line.split_last() {
            // A line without an end is not written completely yet.
            None => break,
            Some((b'\n', line)) => {
                last.offset += read as u64;
                if let Some(record) = right_record(line).filter(|record| record.seq > last.seq) {
                    last.seq = record.seq;
                    batch.bytes += record.line.len();
                    batch.records.push(record);
                }
            }
            Some(_) if line.len() > MAX_LINE_BYTES => {
                let before = reader.limit();
                skip_line(&mut reader)?;
                last.offset += read as u64 + before.saturating_sub(reader.limit());
            }
            Some(_) => break,
        }
    }
    Ok(())
}

/// A line as a record, if its hash is right.
fn right_record(line: &[u8]) -> Option<OutboxRecord> {
    let (ChainLink { hash, seq, .. }, _) = chained_line::check(line).filter(|(_, right)| *right)?;
    let line = std::str::from_utf8(line).ok()?.to_owned();
    Some(OutboxRecord { seq, hash, line })
}

#[cfg(test)]
mod tests {
    use super::super::AuditEvent;
    use super::*;
    use crate::journal::calls::CallRecord;

    const HERE: &str = "/work";

    fn journal(directory: &Path) -> Journal {
        Journal::open(directory.join("state"), Caps::default()).unwrap()
    }

    fn add(journal: &Journal, count: u64, max_bytes: u64) {
        for number in 0..count {
            let call = CallRecord { id: number.to_string(), ..CallRecord::default() };
            journal
                .audit
                .append(journal, HERE, &AuditEvent::call(None, None, call), max_bytes)
                .unwrap();
        }
    }

    fn numbers(records: &[OutboxRecord]) -> Vec<u64> {
        records.iter().map(|record| record.seq).collect()
    }

    #[test]
    fn records_come_in_batches_over_several_files() {
        let top = tempfile::tempdir().unwrap();
        let journal = journal(top.path());
        // Small files, none of which is removed.
        add(&journal, 150, 1 << 16);
        assert!(!journal.audit.full_files(&key(HERE)).unwrap().is_empty());
        let mut outbox = AuditOutbox::of(journal.clone(), HERE);
        assert!(outbox.may_have_more());
        let mut seen = Vec::new();
        loop {
            let at = seen.last().copied().unwrap_or(0);
            match numbers(&outbox.after(at, 7, 1 << 20).unwrap()) {
                batch if batch.is_empty() => break,
                batch => seen.extend(batch),
            }
        }
        assert_eq!(seen, (1..=150).collect::<Vec<u64>>());
        assert!(!outbox.may_have_more());
        add(&journal, 2, 1 << 16);
        assert!(outbox.may_have_more());
        assert_eq!(numbers(&outbox.after(150, 7, 1 << 20).unwrap()), [151, 152]);
        // From anywhere, without a known place.
        assert_eq!(numbers(&outbox.after(12, 3, 1 << 20).unwrap()), [13, 14, 15]);
        assert_eq!(numbers(&outbox.after(12, 3, 1).unwrap()), [13], "at least one");
        assert_eq!(outbox.find(20).unwrap().unwrap().seq, 20);
        assert_eq!(outbox.find(153).unwrap(), None);
    }

    #[test]
    fn damaged_lines_are_left_out() {
        let top = tempfile::tempdir().unwrap();
        let journal = journal(top.path());
        add(&journal, 4, 1 << 20);
        let file = top.path().join("state").join(current(&key(HERE)));
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let long = "x".repeat(2 * MAX_LINE_BYTES);
        let edited = lines[2].replace("\"id\":\"2\"", "\"id\":\"9\"");
        let (one, two, four) = (lines[0], lines[1], lines[3]);
        let all = format!("{one}\n{long}\n\u{1}\n{two}\n{one}\n{edited}\n{four}\n{two}");
        std::fs::write(&file, all).unwrap();
        let mut outbox = AuditOutbox::of(journal, HERE);
        assert_eq!(numbers(&outbox.after(0, 2, 1 << 20).unwrap()), [1, 2]);
        assert_eq!(numbers(&outbox.after(2, 9, 1 << 20).unwrap()), [4]);
        assert!(outbox.after(4, 9, 1 << 20).unwrap().is_empty());
    }

    #[test]
    fn a_position_is_kept_and_one_process_sends() {
        let top = tempfile::tempdir().unwrap();
        let journal = journal(top.path());
        let mut outbox = AuditOutbox::of(journal.clone(), HERE);
        assert_eq!(outbox.position().unwrap(), None);
        let position = OutboxPosition {
            store: "s".to_owned(),
            workspace: HERE.to_owned(),
            seq: 7,
            ..OutboxPosition::default()
        };
        outbox.keep_position(&position).unwrap();
        assert_eq!(outbox.position().unwrap(), Some(position));
        let state = top.path().join("state");
        let of = |store| AuditOutbox::all_of_store(&state, store).unwrap();
        assert_eq!((of("s").len(), of("other").len()), (1, 0));
        assert_eq!(of("s")[0].workspace(), HERE);
        assert!(outbox.try_lock().unwrap() && outbox.try_lock().unwrap());
        let mut second = AuditOutbox::of(journal, HERE);
        assert!(!second.try_lock().unwrap());
        drop(outbox);
        assert!(second.try_lock().unwrap());
    }
}
