//! The output of a command: all of it up to a limit, then its beginning and its end.
//!
//! The first kilobytes are kept in memory. Longer output goes to an unnamed file: its first part keeps the
//! beginning, its second part is a ring buffer. Bytes between the two are dropped and counted.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::io::{pread, pwrite};

/// Bytes that are kept in memory before a file is used. Most outputs fit.
const MEMORY_BYTES: usize = 64 << 10;

/// The size that a file always gets, even if the shared space is used up.
const MIN_FILE_BYTES: u64 = 1 << 20;

/// How much output is kept, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLimits {
    /// Bytes per command.
    pub bytes: u64,
    /// Bytes of all commands together.
    pub all_bytes: u64,
    /// A private directory on a disk. If `None`, long output is kept in memory files.
    pub directory: Option<PathBuf>,
}

/// What is kept of an output of which bytes were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptOutput {
    /// The number of dropped bytes.
    pub dropped: u64,
    /// Lines before them.
    pub first_lines: u64,
    /// Lines after them.
    pub last_lines: u64,
}

/// The space that all buffers share.
#[derive(Debug)]
pub(crate) struct OutputSpace {
    limits: OutputLimits,
    used: AtomicU64,
}

impl OutputSpace {
    pub(crate) fn new(limits: OutputLimits) -> Arc<OutputSpace> {
        Arc::new(OutputSpace { limits, used: AtomicU64::new(0) })
    }
}

/// The distance between offsets at which the number of preceding newlines is recorded.
const MARK_INTERVAL: u64 = 64 << 10;

#[derive(Debug)]
pub(crate) struct OutputBuffer {
    space: Arc<OutputSpace>,
    /// All bytes ever appended, and the newlines among them.
    written: u64,
    newlines: u64,
    /// Offsets outside the gap, with the number of newlines before each.
    marks: Vec<(u64, u64)>,
    memory: Vec<u8>,
    file: Option<SpillFile>,
    /// The offset from which bytes could not be stored, and the error.
    lost: Option<(u64, io::ErrorKind)>,
}

/// The file of a long output.
#[derive(Debug)]
struct SpillFile {
    file: OwnedFd,
    /// The size of the file, and of its first part.
    bytes: u64,
    head: u64,
    space: Arc<OutputSpace>,
}

impl OutputBuffer {
    pub(crate) fn new(space: Arc<OutputSpace>) -> OutputBuffer {
        OutputBuffer {
            space,
            written: 0,
            newlines: 0,
            marks: Vec::new(),
            memory: Vec::new(),
            file: None,
            lost: None,
        }
    }

    /// The number of bytes ever appended. Also the offset of the next one.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// The range of dropped bytes. If there are none, it is empty and at the end.
    pub(crate) fn gap(&self) -> Range<u64> {
        if let Some((at, _)) = self.lost {
            return at..self.written;
        }
        let kept = self
            .file
            .as_ref()
            .map(|file| file.head..self.written.saturating_sub(file.ring_bytes()));
        kept.filter(|gap| !gap.is_empty()).unwrap_or(self.written..self.written)
    }

    /// The number of newlines before an offset. An offset in the gap counts as the end of the gap.
    pub(crate) fn newlines_before(&self, offset: u64) -> u64 {
        let newlines_between = |from: u64, to: u64| {
            let count = usize::try_from(to.saturating_sub(from)).unwrap_or(0);
            count_newlines(&self.read(from, count).1)
        };
        let gap = self.gap();
        if gap.is_empty() || offset <= gap.start {
            let last = self.marks.iter().take_while(|(at, _)| *at <= offset).last();
            let (from, newlines) = last.copied().unwrap_or((0, 0));
            return newlines + newlines_between(from, offset);
        }
        let offset = offset.max(gap.end);
        let next = self.marks.iter().find(|(at, _)| *at >= offset);
        let (to, newlines) = next.copied().unwrap_or((self.written, self.newlines));
        newlines.saturating_sub(newlines_between(offset, to))
    }

    /// What is kept of an output of which bytes were dropped.
    pub(crate) fn kept(&self) -> Option<KeptOutput> {
        let gap = self.gap();
        let after = || self.newlines.saturating_sub(self.newlines_before(gap.end));
        (!gap.is_empty()).then(|| KeptOutput {
            dropped: gap.end - gap.start,
            first_lines: self.newlines_before(gap.start),
            last_lines: after(),
        })
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let at = self.written;
        self.written += bytes.len() as u64;
        self.newlines += count_newlines(bytes);
        if self.marks.last().is_none_or(|(last, _)| self.written - last >= MARK_INTERVAL) {
            self.marks.push((self.written, self.newlines));
            let gap = self.gap();
            self.marks.retain(|(at, _)| *at <= gap.start || *at >= gap.end);
        }
        if self.lost.is_some() {
            return;
        }
        if self.file.is_none() && self.memory.len() + bytes.len() <= MEMORY_BYTES {
            self.memory.extend_from_slice(bytes);
            return;
        }
        if let Err(error) = self.spill(at, bytes) {
            self.lost = Some((at, error.kind()));
        }
    }

    /// Returns at most `max` bytes and the offset of the first: the end of the gap if `from` is in the gap.
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
            let spilled = SpillFile::new(&self.space)?;
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

impl SpillFile {
    fn new(space: &Arc<OutputSpace>) -> io::Result<SpillFile> {
        let limits = &space.limits;
        let left = limits.all_bytes.saturating_sub(space.used.load(Ordering::Relaxed));
        let bytes = limits.bytes.min(left.max(MIN_FILE_BYTES));
        let file = unnamed_file(limits.directory.as_deref())?;
        space.used.fetch_add(bytes, Ordering::Relaxed);
        Ok(SpillFile { file, bytes, head: bytes / 4, space: space.clone() })
    }

    /// The size of the ring buffer.
    fn ring_bytes(&self) -> u64 {
        self.bytes - self.head
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.for_each_piece(at, bytes.len() as u64, |offset, range| {
            let mut rest = bytes.get(range).unwrap_or_default();
            let mut offset = offset;
            while !rest.is_empty() {
                let count = pwrite(&self.file, rest, offset)?;
                rest = rest.get(count..).unwrap_or_default();
                offset += count as u64;
            }
            Ok(())
        })
    }

    fn read(&self, from: u64, count: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(0)];
        let read = self.for_each_piece(from, count, |offset, range| {
            let mut rest = bytes.get_mut(range).unwrap_or_default();
            let mut offset = offset;
            while !rest.is_empty() {
                let count = pread(&self.file, &mut *rest, offset)?;
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                rest = rest.get_mut(count..).unwrap_or_default();
                offset += count as u64;
            }
            Ok(())
        });
        if read.is_err() {
            bytes.clear();
        }
        bytes
    }

    /// Calls `each` for each contiguous piece of a range of the output, with its position in the file and its
    /// position in the range.
    fn for_each_piece(
        &self,
        mut at: u64,
        count: u64,
        mut each: impl FnMut(u64, Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        let begin = at;
        let end = at + count;
        while at < end {
            let (offset, length) = if at < self.head {
                (at, self.head - at)
            } else {
                let in_ring = (at - self.head) % self.ring_bytes();
                (self.head + in_ring, self.ring_bytes() - in_ring)
            };
            let next = end.min(at + length);
            let part = |offset: u64| usize::try_from(offset - begin).unwrap_or(usize::MAX);
            each(offset, part(at)..part(next))?;
            at = next;
        }
        Ok(())
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.space.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn count_newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// A file without a path: nothing else can read it, and it vanishes with its last descriptor.
fn unnamed_file(directory: Option<&Path>) -> io::Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let on_disk = directory.map(|directory| open(directory, flags, Mode::RUSR | Mode::WUSR));
    match on_disk {
        Some(Ok(file)) => Ok(file),
        // The directory does not exist, or its file system has no unnamed files.
        _ => Ok(memfd_create("toolcrib-log", MemfdFlags::CLOEXEC)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(bytes: u64) -> OutputBuffer {
        OutputBuffer::new(OutputSpace::new(OutputLimits {
            bytes,
            all_bytes: 1 << 30,
            directory: None,
        }))
    }

    fn pattern(range: Range<u64>) -> Vec<u8> {
        range.map(|at| u8::try_from(at * 7 % 251).unwrap_or(0)).collect()
    }

    fn all(log: &OutputBuffer) -> (Vec<u8>, u64) {
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
    fn output_within_the_limit_is_kept_whole() {
        for total in [0, 1, 65_536, 65_537, 200_000, 1 << 20] {
            let mut log = log(1 << 20);
            for at in (0..total).step_by(3000) {
                log.append(&pattern(at..total.min(at + 3000)));
            }
            assert_eq!(all(&log), (pattern(0..total), 0), "{total}");
        }
    }

    #[test]
    fn head_and_tail_of_a_flood_are_kept_and_the_gap_is_counted() {
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
    fn newlines_before_an_offset_are_known_despite_a_gap() {
        let mut log = log(1 << 20);
        let line = |number: u32| format!("line {number}\n");
        (1..=500_000).for_each(|number| log.append(line(number).as_bytes()));
        let gap = log.gap();
        assert!(!gap.is_empty());
        for offset in [gap.start + 1, gap.end, gap.end + 1, gap.end + 300_000, log.written()] {
            let (_, rest) = log.read(offset, 1 << 20);
            let expected = 500_000 - count_newlines(&rest);
            assert_eq!(log.newlines_before(offset), expected, "{offset}");
        }
        for offset in [0, 7, 100_000, gap.start] {
            let (_, before) = log.read(0, usize::try_from(offset).unwrap());
            assert_eq!(log.newlines_before(offset), count_newlines(&before), "{offset}");
        }
        assert!(log.marks.len() < 30);
        let (first, last) = (log.read(0, 1 << 20).1, log.read(gap.end, 1 << 20).1);
        let kept = KeptOutput {
            dropped: gap.end - gap.start,
            first_lines: count_newlines(&first),
            last_lines: count_newlines(&last),
        };
        assert_eq!(log.kept(), Some(kept));
        assert!(kept.first_lines > 0 && kept.last_lines > 0);
    }

    #[test]
    fn buffers_share_their_space_and_return_it() {
        let limits = OutputLimits { bytes: 8 << 20, all_bytes: 8 << 20, directory: None };
        let space = OutputSpace::new(limits);
        let fill = || {
            let mut log = OutputBuffer::new(space.clone());
            (0..100).for_each(|_| log.append(&[0; 100_000]));
            log
        };
        let first = fill();
        assert_eq!(first.gap(), (2 << 20)..(10_000_000 - (6 << 20)));
        let second = fill();
        assert_eq!(second.gap().end, 10_000_000 - (3 << 18));
        drop((first, second));
        assert_eq!(space.used.load(Ordering::Relaxed), 0);
    }
}
