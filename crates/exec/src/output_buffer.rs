//! What a command wrote: all of it up to a bound, then its beginning and its end.
//!
//! The first kilobytes are in memory. A longer output goes to a file without a name, whose first part keeps
//! the beginning and whose second part is a ring. What falls between the two is counted.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::io::{pread, pwrite};

/// What is kept in memory, before anything goes to a file: most outputs.
const IN_MEMORY: usize = 64 << 10;

/// A log always gets this much, though the room for all of them be used up.
const LEAST_FILE: u64 = 1 << 20;

/// How much logs may hold, and where they put it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLimits {
    /// Bytes of one log.
    pub bytes: u64,
    /// Bytes of all logs together.
    pub all_bytes: u64,
    /// A directory of one's own, on a disk; without one, long logs are in memory that is no process's.
    pub directory: Option<PathBuf>,
}

/// The room that all logs share.
#[derive(Debug)]
pub(crate) struct LogRoom {
    limits: LogLimits,
    used: AtomicU64,
}

impl LogRoom {
    pub(crate) fn new(limits: LogLimits) -> Arc<LogRoom> {
        Arc::new(LogRoom { limits, used: AtomicU64::new(0) })
    }
}

/// How far the places are apart at which the line ends before them are known.
const MARK_BYTES: u64 = 64 << 10;

#[derive(Debug)]
pub(crate) struct Log {
    room: Arc<LogRoom>,
    /// All bytes that ever came, and the line ends among them.
    written: u64,
    newlines: u64,
    /// Places before the gap and behind it, and how many line ends came before each.
    marks: Vec<(u64, u64)>,
    memory: Vec<u8>,
    file: Option<Spilled>,
    /// Bytes from here on could not be stored, and why.
    lost: Option<(u64, io::ErrorKind)>,
}

/// The file of a long log.
#[derive(Debug)]
struct Spilled {
    file: OwnedFd,
    /// Bytes in it at most, and of these, those of the beginning.
    bytes: u64,
    head: u64,
    room: Arc<LogRoom>,
}

impl Log {
    pub(crate) fn new(room: Arc<LogRoom>) -> Log {
        Log {
            room,
            written: 0,
            newlines: 0,
            marks: Vec::new(),
            memory: Vec::new(),
            file: None,
            lost: None,
        }
    }

    /// How many bytes came in all: also the place where the next one will be.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// The bytes that came and are not kept; empty, and at the end, if all are.
    pub(crate) fn gap(&self) -> Range<u64> {
        if let Some((at, _)) = self.lost {
            return at..self.written;
        }
        let kept =
            self.file.as_ref().map(|file| file.head..self.written.saturating_sub(file.ring()));
        kept.filter(|gap| !gap.is_empty()).unwrap_or(self.written..self.written)
    }

    /// How many line ends came before a place; before the end of the gap, if it is in the gap.
    pub(crate) fn newlines_before(&self, place: u64) -> u64 {
        let between = |from: u64, to: u64| {
            let count = usize::try_from(to.saturating_sub(from)).unwrap_or(0);
            count_newlines(&self.read(from, count).1)
        };
        let gap = self.gap();
        if gap.is_empty() || place <= gap.start {
            let last = self.marks.iter().take_while(|(at, _)| *at <= place).last();
            let (from, newlines) = last.copied().unwrap_or((0, 0));
            return newlines + between(from, place);
        }
        let place = place.max(gap.end);
        let next = self.marks.iter().find(|(at, _)| *at >= place);
        let (to, newlines) = next.copied().unwrap_or((self.written, self.newlines));
        newlines.saturating_sub(between(place, to))
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let at = self.written;
        self.written += bytes.len() as u64;
        self.newlines += count_newlines(bytes);
        if self.marks.last().is_none_or(|(last, _)| self.written - last >= MARK_BYTES) {
            self.marks.push((self.written, self.newlines));
            let gap = self.gap();
            self.marks.retain(|(at, _)| *at <= gap.start || *at >= gap.end);
        }
        if self.lost.is_some() {
            return;
        }
        if self.file.is_none() && self.memory.len() + bytes.len() <= IN_MEMORY {
            self.memory.extend_from_slice(bytes);
            return;
        }
        if let Err(error) = self.spill(at, bytes) {
            self.lost = Some((at, error.kind()));
        }
    }

    /// Bytes from `from` on, at most so many, and where they begin: behind the gap, if `from` is in it.
    pub(crate) fn read(&self, from: u64, max: usize) -> (u64, Vec<u8>) {
        let gap = self.gap();
        let from = if gap.contains(&from) { gap.end } else { from };
        let end = if from < gap.start { gap.start } else { self.written };
        let count = end.saturating_sub(from).min(max as u64);
        let bytes = match &self.file {
            None => {
                let start = usize::try_from(from).unwrap_or(usize::MAX);
                let kept = self.memory.get(start..).unwrap_or_default();
                kept.get(..kept.len().min(usize::try_from(count).unwrap_or(0)))
                    .unwrap_or_default()
                    .to_vec()
            }
            Some(spilled) => spilled.read(from, count),
        };
        (from, bytes)
    }

    fn spill(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            let spilled = Spilled::new(&self.room)?;
            spilled.write(0, &self.memory)?;
            self.file = Some(spilled);
            self.memory = Vec::new();
        }
        match &self.file {
            Some(spilled) => spilled.write(at, bytes),
            None => Ok(()),
        }
    }
}

impl Spilled {
    fn new(room: &Arc<LogRoom>) -> io::Result<Spilled> {
        let limits = &room.limits;
        let left = limits.all_bytes.saturating_sub(room.used.load(Ordering::Relaxed));
        let bytes = limits.bytes.min(left.max(LEAST_FILE));
        let file = nameless_file(limits.directory.as_deref())?;
        room.used.fetch_add(bytes, Ordering::Relaxed);
        Ok(Spilled { file, bytes, head: bytes / 4, room: room.clone() })
    }

    /// Bytes of the ring.
    fn ring(&self) -> u64 {
        self.bytes - self.head
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.pieces(at, bytes.len() as u64, |place, range| {
            let mut rest = bytes.get(range).unwrap_or_default();
            let mut place = place;
            while !rest.is_empty() {
                let count = pwrite(&self.file, rest, place)?;
                rest = rest.get(count..).unwrap_or_default();
                place += count as u64;
            }
            Ok(())
        })
    }

    fn read(&self, from: u64, count: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(0)];
        let read = self.pieces(from, count, |place, range| {
            let mut rest = bytes.get_mut(range).unwrap_or_default();
            let mut place = place;
            while !rest.is_empty() {
                let count = pread(&self.file, &mut *rest, place)?;
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                rest = rest.get_mut(count..).unwrap_or_default();
                place += count as u64;
            }
            Ok(())
        });
        if read.is_err() {
            bytes.clear();
        }
        bytes
    }

    /// Where a stretch of the output is in the file, piece by piece: `each` gets the place of a piece and
    /// which part of the stretch it is.
    fn pieces(
        &self,
        mut at: u64,
        count: u64,
        mut each: impl FnMut(u64, Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        let begin = at;
        let end = at + count;
        while at < end {
            let (place, room) = match at < self.head {
                true => (at, self.head - at),
                false => {
                    let in_ring = (at - self.head) % self.ring();
                    (self.head + in_ring, self.ring() - in_ring)
                }
            };
            let next = end.min(at + room);
            let part = |offset: u64| usize::try_from(offset - begin).unwrap_or(usize::MAX);
            each(place, part(at)..part(next))?;
            at = next;
        }
        Ok(())
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        self.room.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn count_newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// A file that no path leads to: nothing else reads it, and it goes with the last who has it open.
fn nameless_file(directory: Option<&Path>) -> io::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let on_disk = directory.map(|directory| open(directory, flags, Mode::RUSR | Mode::WUSR));
    match on_disk {
        Some(Ok(file)) => Ok(file),
        // No such directory, or a file system that cannot do this.
        _ => Ok(memfd_create("toolcrib-log", MemfdFlags::CLOEXEC)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(bytes: u64) -> Log {
        Log::new(LogRoom::new(LogLimits { bytes, all_bytes: 1 << 30, directory: None }))
    }

    fn pattern(range: Range<u64>) -> Vec<u8> {
        range.map(|at| u8::try_from(at * 7 % 251).unwrap_or(0)).collect()
    }

    fn all(log: &Log) -> (Vec<u8>, u64) {
        let (mut bytes, mut at) = (Vec::new(), 0);
        while at < log.written() {
            let (from, some) = log.read(at, 10_000);
            assert!(!some.is_empty());
            at = from + some.len() as u64;
            bytes.extend(some);
        }
        (bytes, log.gap().end - log.gap().start)
    }

    #[test]
    fn what_fits_is_kept_as_it_came() {
        for total in [0, 1, 65_536, 65_537, 200_000, 1 << 20] {
            let mut log = log(1 << 20);
            for at in (0..total).step_by(3000) {
                log.append(&pattern(at..total.min(at + 3000)));
            }
            assert_eq!(all(&log), (pattern(0..total), 0), "{total}");
        }
    }

    #[test]
    fn of_a_flood_the_beginning_and_the_end_are_kept_and_the_rest_is_counted() {
        let mut log = log(1 << 20);
        let total = 5_000_000;
        for at in (0..total).step_by(70_000) {
            log.append(&pattern(at..total.min(at + 70_000)));
        }
        let (head, ring) = (1 << 18, 3 << 18);
        let (kept, dropped) = all(&log);
        assert_eq!(dropped, total - head - ring);
        assert_eq!(kept, [pattern(0..head), pattern(total - ring..total)].concat());
        assert_eq!(log.read(head + 5, 3), (total - ring, pattern(total - ring..total - ring + 3)));
    }

    #[test]
    fn the_line_ends_before_a_place_are_known_after_a_drop() {
        let mut log = log(1 << 20);
        let line = |number: u32| format!("line {number}\n");
        (1..=500_000).for_each(|number| log.append(line(number).as_bytes()));
        let gap = log.gap();
        assert!(!gap.is_empty());
        for place in [gap.start + 1, gap.end, gap.end + 1, gap.end + 300_000, log.written()] {
            let (_, rest) = log.read(place, 1 << 20);
            let expected = 500_000 - count_newlines(&rest);
            assert_eq!(log.newlines_before(place), expected, "{place}");
        }
        for place in [0, 7, 100_000, gap.start] {
            let (_, before) = log.read(0, usize::try_from(place).unwrap());
            assert_eq!(log.newlines_before(place), count_newlines(&before), "{place}");
        }
        assert!(log.marks.len() < 30);
    }

    #[test]
    fn logs_share_their_room_and_give_it_back() {
        let limits = LogLimits { bytes: 8 << 20, all_bytes: 8 << 20, directory: None };
        let room = LogRoom::new(limits);
        let fill = || {
            let mut log = Log::new(room.clone());
            (0..100).for_each(|_| log.append(&[0; 100_000]));
            log
        };
        let first = fill();
        assert_eq!(first.gap(), (2 << 20)..(10_000_000 - (6 << 20)));
        let second = fill();
        assert_eq!(second.gap().end, 10_000_000 - (3 << 18));
        drop((first, second));
        assert_eq!(room.used.load(Ordering::Relaxed), 0);
    }
}
