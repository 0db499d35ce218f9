//! The log: one line for each change, append-only.
//!
//! A line consists of its checksum and JSON. Numbers are consecutive, so a damaged or missing line is
//! identified by the numbers around it. The highest number is also stored in a separate file (`last`), so
//! that a missing last line is detected, and no number is used twice.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::{ControlFlow, RangeInclusive};
use std::os::unix::fs::FileExt;

use rustix::fs::OFlags;

use super::entry::Entry;
use super::read_back::lines_before;
use crate::error::FsError;
use crate::hash::ContentHash;
use crate::private_directory::PrivateDirectory;

/// Hex digits of a line's checksum.
const CHECK_DIGITS: usize = 8;

/// Nearly always enough for a whole line.
const FIRST_TAIL_BYTES: u64 = 8 << 10;

/// More than any valid line has. A longer one is damaged.
const MAX_LINE_BYTES: u64 = 1 << 28;

pub(super) const LOG: &str = "log";
const NEW: &str = "log.new";
const LAST: &str = "last";

/// The changes in a log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    /// The readable changes, oldest first.
    pub entries: Vec<Entry>,
    /// The damaged changes, oldest first.
    pub damaged: Vec<DamagedChanges>,
}

/// Changes whose lines in the log cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedChanges {
    /// Their numbers.
    pub ids: RangeInclusive<u64>,
    /// The kind of damage.
    pub damage: Damage,
}

/// The damage of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// It does not match its checksum.
    Checksum,
    /// It is missing.
    Missing,
}

impl fmt::Display for DamagedChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.ids.start(), self.ids.end());
        match (first == last, self.damage) {
            (true, Damage::Checksum) => write!(
                f,
                "change {first} is damaged: its line in the journal does not match its checksum"
            ),
            (true, Damage::Missing) => {
                write!(f, "change {first} is damaged: its line in the journal is missing")
            }
            (false, Damage::Checksum) => write!(
                f,
                "changes {first} to {last} are damaged: their lines in the journal do not match their checksums"
            ),
            (false, Damage::Missing) => write!(
                f,
                "changes {first} to {last} are damaged: their lines in the journal are missing"
            ),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Log {
    directory: PrivateDirectory,
}

impl Log {
    /// The log in a journal's directory.
    pub(super) fn new(directory: PrivateDirectory) -> Log {
        Log { directory }
    }

    /// Reads all changes, and finds damaged ones. An incomplete last line does not count: a crash cut it off
    /// before the change got its number.
    pub(super) fn read(&self) -> Result<Changes, FsError> {
        let cannot = |error| self.error("cannot be read", &error);
        // The highest number is read first: a change that is appended meanwhile is not missing.
        let last = self.stored_last_id();
        let mut gaps = GapFinder::default();
        if let Some(file) = self.open().map_err(cannot)? {
            let mut lines = BufReader::new(file);
            let mut line = Vec::new();
            while next_line(&mut lines, &mut line).map_err(cannot)? {
                gaps.add(parse(&line));
            }
        }
        Ok(gaps.end(last))
    }

    /// The highest number of a change, or 0. The caller holds the lock. Reads only the end of the log, and
    /// more of it until there is a whole line.
    pub(super) fn last_id(&self) -> Result<u64, FsError> {
        let mut bytes = FIRST_TAIL_BYTES;
        let found = loop {
            let (tail, is_all) =
                self.tail(bytes).map_err(|error| self.error("cannot be read", &error))?;
            match (last_number(&tail), is_all) {
                (Some(number), _) => break number,
                (None, true) => break complete_lines(&tail),
                (None, false) => bytes = bytes.saturating_mul(8),
            }
        };
        Ok(found.max(self.stored_last_id().unwrap_or(0)))
    }

    /// The readable changes with numbers after `id`, oldest first.
    pub(super) fn entries_after(&self, id: u64) -> Result<Vec<Entry>, FsError> {
        let mut entries = Vec::new();
        let mut read = || -> io::Result<()> {
            let Some(file) = self.open()? else { return Ok(()) };
            let max_line = usize::try_from(MAX_LINE_BYTES).unwrap_or(usize::MAX);
            let _ = lines_before(&file, file.metadata()?.len(), max_line, |line, _| {
                match parse(&[line, b"\n"].concat()) {
                    Some(entry) if entry.id <= id => return ControlFlow::Break(()),
                    entry => entries.extend(entry),
                }
                ControlFlow::Continue(())
            })?;
            Ok(())
        };
        read().map_err(|error| self.error("cannot be read", &error))?;
        entries.reverse();
        Ok(entries)
    }

    /// Appends lines and syncs them. The caller holds the lock. First removes a line that a crash cut off.
    pub(super) fn append(&self, entries: &[Entry]) -> Result<(), FsError> {
        let cannot = |error| self.error("cannot be written", &error);
        let file = self.directory.open_file(LOG, OFlags::RDWR | OFlags::CREATE).map_err(cannot)?;
        let end = complete_length(&file).map_err(cannot)?;
        file.set_len(end).map_err(cannot)?;
        let lines: String = entries.iter().map(line).collect();
        let written = file.write_all_at(lines.as_bytes(), end);
        written.and_then(|()| file.sync_data()).map_err(|error| {
            // After a failure, no line must be found.
            let _ = file.set_len(end);
            cannot(error)
        })?;
        if let Some(last) = entries.last() {
            self.store_last_id(last.id);
        }
        Ok(())
    }

    /// Replaces all changes by these. The caller holds the lock.
    pub(super) fn rewrite(&self, entries: &[Entry]) -> Result<(), FsError> {
        self.store_last_id(self.last_id()?);
        let write = || -> io::Result<()> {
            // A crash may have left one behind.
            let _ = self.directory.remove(NEW);
            let mut file = self.directory.create_file(NEW, OFlags::empty())?;
            for entry in entries {
                file.write_all(line(entry).as_bytes())?;
            }
            file.sync_data()?;
            self.directory.rename(NEW, LOG)
        };
        write().map_err(|error| self.error("cannot be written", &error))
    }

    /// The highest number from the `last` file. `None` if that is missing or damaged.
    fn stored_last_id(&self) -> Option<u64> {
        let bytes = self.directory.read(LAST, 100).ok()??;
        checked(&bytes)?.parse().ok()
    }

    /// Stores the highest number. If this fails, only the log has it.
    fn store_last_id(&self, id: u64) {
        let number = id.to_string();
        let flags = OFlags::WRONLY | OFlags::CREATE;
        if let Ok(file) = self.directory.open_file(LAST, flags) {
            let _ = file.write_all_at(format!("{} {number}\n", checksum(&number)).as_bytes(), 0);
        }
    }

    fn open(&self) -> io::Result<Option<File>> {
        match self.directory.open_file(LOG, OFlags::RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => file.map(Some),
        }
    }

    /// The last bytes of the log, and whether these are all.
    fn tail(&self, bytes: u64) -> io::Result<(Vec<u8>, bool)> {
        use std::io::{Seek, SeekFrom};
        let Some(mut file) = self.open()? else { return Ok((Vec::new(), true)) };
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(bytes)))?;
        let mut tail = Vec::new();
        file.take(bytes).read_to_end(&mut tail)?;
        Ok((tail, size <= bytes))
    }

    fn error(&self, cannot: &str, error: &io::Error) -> FsError {
        FsError::from_io(self.directory.path().join(LOG), cannot, error)
    }
}

/// Finds the numbers of unreadable lines.
#[derive(Default)]
struct GapFinder {
    changes: Changes,
    last: Option<u64>,
    /// The number of unreadable lines since the last readable one.
    unreadable: u64,
}

impl GapFinder {
    fn add(&mut self, entry: Option<Entry>) {
        let Some(entry) = entry else {
            self.unreadable += 1;
            return;
        };
        let before = entry.id.saturating_sub(1);
        let first = match self.last {
            Some(last) => last.saturating_add(1),
            None => entry.id.saturating_sub(self.unreadable).max(1),
        };
        self.add_damaged(first, before);
        self.last = Some(entry.id.max(self.last.unwrap_or(0)));
        self.unreadable = 0;
        self.changes.entries.push(entry);
    }

    /// Returns all changes, up to the highest number.
    fn end(mut self, given: Option<u64>) -> Changes {
        let counted = self.last.unwrap_or(0).saturating_add(self.unreadable);
        let last = counted.max(given.unwrap_or(0));
        let first = match self.last {
            Some(last) => last.saturating_add(1),
            // Without a readable line, only the last numbers are known.
            None => last.saturating_sub(self.unreadable.max(1)).saturating_add(1),
        };
        self.add_damaged(first.max(1), last);
        self.changes
    }

    fn add_damaged(&mut self, first: u64, last: u64) {
        let damage = if self.unreadable > 0 { Damage::Checksum } else { Damage::Missing };
        if first <= last {
            self.changes.damaged.push(DamagedChanges { ids: first..=last, damage });
        }
    }
}

/// A line: checksum, JSON, newline.
pub(super) fn line(entry: &Entry) -> String {
    let json = serde_json::to_string(entry).unwrap_or_default();
    format!("{} {json}\n", checksum(&json))
}

/// The entries of complete lines.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Entry> {
    bytes.split_inclusive(|&byte| byte == b'\n').filter_map(parse)
}

/// Reads a line with its newline. Returns whether there was one. The rest of a line that is too long becomes
/// the next.
pub(super) fn next_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    from.take(MAX_LINE_BYTES).read_until(b'\n', line)?;
    Ok(line.ends_with(b"\n") || line.len() as u64 == MAX_LINE_BYTES)
}

/// The number of the last complete line. An unreadable line has the number after its predecessor.
fn last_number(bytes: &[u8]) -> Option<u64> {
    let mut rest = &bytes[..bytes.iter().rposition(|&byte| byte == b'\n')? + 1];
    let mut unreadable = 0;
    while let Some(body) = rest.strip_suffix(b"\n") {
        let start = body.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if let Some(entry) = parse(&rest[start..]) {
            return Some(entry.id.saturating_add(unreadable));
        }
        unreadable += 1;
        rest = &rest[..start];
    }
    None
}

fn complete_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

pub(super) fn parse(line: &[u8]) -> Option<Entry> {
    serde_json::from_str(checked(line)?).ok()
}

/// The text of a line. `None` if it does not match its checksum.
fn checked(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let (check, text) = line.split_at_checked(CHECK_DIGITS)?;
    let text = text.strip_prefix(' ')?;
    (check == checksum(text)).then_some(text)
}

fn checksum(text: &str) -> String {
    ContentHash::of(text.as_bytes()).to_string()[..CHECK_DIGITS].to_owned()
}

/// The length of the file up to its last newline.
fn complete_length(file: &File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut chunk = [0; 4096];
    while end > 0 {
        let start = end.saturating_sub(chunk.len() as u64);
        let length = usize::try_from(end - start).unwrap_or(chunk.len());
        file.read_exact_at(&mut chunk[..length], start)?;
        if let Some(at) = chunk[..length].iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::super::entry::{About, Effects};
    use super::*;

    fn entry(id: u64) -> Entry {
        let about = About { tool: "Edit".into(), ..About::default() };
        Entry { id, ..Entry::new(String::new(), about, Effects::default()) }
    }

    /// A log with changes of these numbers.
    fn log(directory: &tempfile::TempDir, ids: RangeInclusive<u64>) -> Log {
        let log = Log::new(PrivateDirectory::new(&directory.path().join("state")));
        log.directory.make(&[]).unwrap();
        ids.for_each(|id| log.append(&[entry(id)]).unwrap());
        log
    }

    fn ids(changes: &Changes) -> Vec<u64> {
        changes.entries.iter().map(|entry| entry.id).collect()
    }

    /// The log is cut at every byte, as a crash of 0.1.0 leaves it: complete lines are read, and the next
    /// append removes the incomplete one.
    #[test]
    fn a_truncated_log_loses_only_the_incomplete_line() {
        let directory = tempfile::tempdir().unwrap();
        let log = log(&directory, 1..=3);
        let path = log.directory.path().join(LOG);
        let whole = std::fs::read(&path).unwrap();
        let ends: Vec<usize> =
            (0..whole.len()).filter(|&at| whole[at] == b'\n').map(|at| at + 1).collect();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            std::fs::remove_file(log.directory.path().join(LAST)).unwrap();
            let before = ends.iter().filter(|&&end| end <= cut).count();
            let changes = log.read().unwrap();
            assert_eq!((changes.entries.len(), changes.damaged.len()), (before, 0), "cut at {cut}");
            log.append(&[entry(9)]).unwrap();
            assert_eq!(log.read().unwrap().entries.len(), before + 1, "cut at {cut}");
            assert_eq!(log.last_id().unwrap(), 9);
        }
    }

    /// Whichever byte of a log is damaged or lost: the readable changes are unmodified, the others are
    /// reported, and no number is used again.
    #[test]
    fn a_damaged_change_is_reported_and_its_number_is_not_reused() {
        let directory = tempfile::tempdir().unwrap();
        let log = log(&directory, 1..=3);
        let path = log.directory.path().join(LOG);
        let whole = std::fs::read(&path).unwrap();
        let good = log.read().unwrap().entries;
        let check = |what: &str, at: usize| {
            let changes = log.read().unwrap();
            assert!(changes.entries.iter().all(|entry| good.contains(entry)), "{what} {at}");
            let mut all = ids(&changes);
            all.extend(changes.damaged.iter().flat_map(|damaged| damaged.ids.clone()));
            all.sort_unstable();
            let is_lost = |id: &u64| !all.contains(id);
            // Without a line before it, the first line of a log is not known to have existed.
            let lost: Vec<u64> = (1..=3).filter(is_lost).collect();
            let none_is_left = changes.entries.is_empty();
            assert!(lost.is_empty() || lost == [1] || none_is_left, "{what} {at}: {changes:?}");
            assert!(all.contains(&3), "{what} {at}");
            assert!(log.last_id().unwrap() >= 3, "{what} {at}");
        };
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(&path, &damaged).unwrap();
            check("flipped", at);
            assert!(!log.read().unwrap().damaged.is_empty(), "flipped {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            check("cut", at);
        }
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_identified_by_its_number() {
        let directory = tempfile::tempdir().unwrap();
        let log = log(&directory, 1..=4);
        let path = log.directory.path().join(LOG);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let damaged = |ids, damage| vec![DamagedChanges { ids, damage }];
        let tampered = lines[1].replace("Edit", "Read");
        std::fs::write(&path, [lines[0], &tampered, lines[2], lines[3]].concat()).unwrap();
        let changes = log.read().unwrap();
        assert_eq!(
            (ids(&changes), &changes.damaged),
            (vec![1, 3, 4], &damaged(2..=2, Damage::Checksum))
        );
        assert_eq!(
            changes.damaged[0].to_string(),
            "change 2 is damaged: its line in the journal does not match its checksum"
        );
        std::fs::write(&path, [lines[0], lines[3]].concat()).unwrap();
        assert_eq!(log.read().unwrap().damaged, damaged(2..=3, Damage::Missing));
        // Rewriting the log preserves the knowledge of a damaged change.
        std::fs::write(&path, [lines[0], lines[2], &tampered].concat()).unwrap();
        log.rewrite(&log.read().unwrap().entries).unwrap();
        assert_eq!(log.read().unwrap().damaged.last().unwrap().ids, 4..=4);
        assert_eq!(log.last_id().unwrap(), 4);
    }
}
