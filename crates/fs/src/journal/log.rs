//! The log: lines that are only ever appended, each whole or not there.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;

use super::entry::Entry;
use crate::error::FsError;
use crate::hash::ContentHash;

/// Hex digits of a line's checksum.
const CHECK_DIGITS: usize = 8;

/// Enough for a whole line, nearly always.
const FIRST_TAIL_BYTES: u64 = 8 << 10;

#[derive(Debug, Clone)]
pub(super) struct Log {
    path: PathBuf,
}

impl Log {
    pub(super) fn new(directory: &Path) -> Log {
        Log { path: directory.join("log") }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Every whole line, the oldest first. What is no line is passed over.
    pub(super) fn read(&self) -> Result<Vec<Entry>, FsError> {
        match std::fs::read(&self.path) {
            Ok(bytes) => Ok(lines(&bytes).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(FsError::from_io(&self.path, "cannot be read", &error)),
        }
    }

    /// The number of the newest change, 0 if there is none. The caller holds the lock. Looks at the end
    /// of the log only, and at more of it as long as no whole line is there.
    pub(super) fn last_id(&self) -> Result<u64, FsError> {
        let mut bytes = FIRST_TAIL_BYTES;
        loop {
            let (tail, is_all) = self.tail(bytes)?;
            if let Some(entry) = last_line(&tail) {
                return Ok(entry.id);
            }
            if is_all {
                return Ok(0);
            }
            bytes *= 8;
        }
    }

    /// Appends a line; when it returns, the line is on disk. The caller holds the lock. A line that a
    /// crash cut off is taken away first.
    pub(super) fn append(&self, entry: &Entry) -> Result<(), FsError> {
        let error = |errno| FsError::from_errno(&self.path, "cannot be written", errno);
        let line = line(entry);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let open = || rustix::fs::open(&self.path, flags, Mode::from_raw_mode(0o600));
        let file = retry_on_intr(open).map_err(error)?;
        let end = whole_length(&file).map_err(error)?;
        let cut = || retry_on_intr(|| rustix::fs::ftruncate(&file, end));
        cut().map_err(error)?;
        write_at(&file, line.as_bytes(), end)
            .and_then(|()| retry_on_intr(|| rustix::fs::fdatasync(&file)))
            .map_err(|errno| {
                // Whoever is told that it failed must not find it there.
                let _ = cut();
                error(errno)
            })
    }

    /// The last bytes of the log, and whether those are all.
    fn tail(&self, bytes: u64) -> Result<(Vec<u8>, bool), FsError> {
        use std::io::{Read, Seek, SeekFrom};
        let read = || -> std::io::Result<(Vec<u8>, bool)> {
            let mut file = std::fs::File::open(&self.path)?;
            let size = file.metadata()?.len();
            file.seek(SeekFrom::Start(size.saturating_sub(bytes)))?;
            let mut tail = Vec::new();
            file.read_to_end(&mut tail)?;
            Ok((tail, size <= bytes))
        };
        match read() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok((Vec::new(), true)),
            answer => {
                answer.map_err(|error| FsError::from_io(&self.path, "cannot be read", &error))
            }
        }
    }
}

/// A line: checksum, JSON, newline.
pub(super) fn line(entry: &Entry) -> String {
    let json = serde_json::to_string(entry).unwrap_or_default();
    format!("{} {json}\n", checksum(&json))
}

/// The entries of whole lines.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Entry> {
    bytes.split_inclusive(|&byte| byte == b'\n').filter_map(parse)
}

/// The last whole line.
fn last_line(bytes: &[u8]) -> Option<Entry> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let body = rest.strip_suffix(b"\n").unwrap_or(rest);
        let start = body.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if let Some(entry) = parse(&rest[start..]) {
            return Some(entry);
        }
        rest = &rest[..start];
    }
    None
}

fn parse(line: &[u8]) -> Option<Entry> {
    let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let (check, json) = line.split_at_checked(CHECK_DIGITS)?;
    let json = json.strip_prefix(' ')?;
    (check == checksum(json)).then(|| serde_json::from_str(json).ok())?
}

fn checksum(json: &str) -> String {
    ContentHash::of(json.as_bytes()).to_string()[..CHECK_DIGITS].to_owned()
}

fn write_at(file: &OwnedFd, bytes: &[u8], offset: u64) -> Result<(), rustix::io::Errno> {
    let mut written = 0;
    while written < bytes.len() {
        let at = offset + written as u64;
        written += retry_on_intr(|| rustix::io::pwrite(file, &bytes[written..], at))?;
    }
    Ok(())
}

/// How long the file is up to its last newline.
fn whole_length(file: &OwnedFd) -> Result<u64, rustix::io::Errno> {
    let size = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0);
    let mut end = size;
    let mut chunk = [0; 4096];
    while end > 0 {
        let start = end.saturating_sub(chunk.len() as u64);
        let length = usize::try_from(end - start).unwrap_or(chunk.len());
        let read = retry_on_intr(|| rustix::io::pread(file, &mut chunk[..length], start))?;
        if let Some(at) = chunk[..read].iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::super::entry::About;
    use super::*;

    fn entry(id: u64) -> Entry {
        let about = About { tool: "Edit".into(), ..About::default() };
        Entry { id, ..Entry::new(String::new(), about, Vec::new(), Vec::new()) }
    }

    /// The log is cut at every byte; what is whole is read, what is not is gone at the next append.
    #[test]
    fn a_log_that_is_cut_anywhere_loses_only_the_line_that_was_cut() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::new(directory.path());
        (1..=3).for_each(|id| log.append(&entry(id)).unwrap());
        let whole = std::fs::read(log.path()).unwrap();
        let ends: Vec<usize> =
            (0..whole.len()).filter(|&at| whole[at] == b'\n').map(|at| at + 1).collect();
        for cut in 0..=whole.len() {
            std::fs::write(log.path(), &whole[..cut]).unwrap();
            let before = ends.iter().filter(|&&end| end <= cut).count();
            assert_eq!(log.read().unwrap().len(), before, "cut at {cut}");
            log.append(&entry(9)).unwrap();
            assert_eq!(log.read().unwrap().len(), before + 1, "cut at {cut}");
            assert_eq!(log.last_id().unwrap(), 9);
        }
    }

    #[test]
    fn a_line_that_was_tampered_with_is_no_line() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::new(directory.path());
        log.append(&entry(1)).unwrap();
        let text = std::fs::read_to_string(log.path()).unwrap();
        std::fs::write(log.path(), text.replace("Edit", "Read")).unwrap();
        assert_eq!(log.read().unwrap().len(), 0);
    }
}
