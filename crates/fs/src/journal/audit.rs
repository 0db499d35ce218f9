//! The audit log of a workspace: one line for each call that ended, each with the hash of the line before it.
//!
//! # How it works
//!
//! `audit/KEY.jsonl` has the lines; KEY is from the path of the workspace. Unlike the other logs, nothing is ever removed from it.
//! When the file is full, it gets the number of its first record into its name, and a new one goes on with the chain.
//!
//! A process appends under the lock of the workspace, so that several sessions make one chain. It knows the last
//! record unless another process has written since, which the size of the file shows. A crash in the middle of a
//! write leaves a line without an end. The next append removes it, and records that.

mod chained_line;
mod verify;

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};

use self::chained_line::NO_HASH;
use self::verify::Verifier;
pub use self::verify::{AuditBreak, AuditReport};
use super::bounded_log::MAX_LINE_BYTES;
use super::calls::CallRecord;
use super::command_ends::CommandEndRecord;
use super::read_back::lines_before;
use super::{Journal, LOCK_TIMEOUT};
use crate::error::FsError;
use crate::hash::ContentHash;
use crate::lock::lock_with_timeout;
use crate::private_directory::PrivateDirectory;

/// The subdirectory.
pub(super) const AUDIT: &str = "audit";

/// When a file reaches this size, a new one begins. Room for about 100,000 calls.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A record of the audit log. The format is stable: later versions may add fields and events, but never remove one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AuditEvent {
    /// A call has ended.
    Call {
        /// The id of the user whose process served it.
        user: u32,
        /// The process that served it.
        process: u32,
        /// The program that made it, as it names itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<String>,
        /// The call.
        #[serde(flatten)]
        call: Box<CallRecord>,
    },
    /// A command has ended after its call.
    CommandEnd(CommandEndRecord),
    /// A crash had left an incomplete line, which was removed.
    TornLineRemoved {
        /// Its length.
        bytes: u64,
        /// The time, in milliseconds since 1970.
        time_ms: u64,
    },
}

impl AuditEvent {
    /// A call that this process served.
    pub fn call(client: Option<String>, call: CallRecord) -> AuditEvent {
        AuditEvent::Call {
            user: rustix::process::geteuid().as_raw(),
            process: std::process::id(),
            client,
            call: Box::new(call),
        }
    }

    /// The event as JSON that fits a line.
    fn text(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        // The hashes and the number take less than 256 bytes.
        if text.len() + 256 <= MAX_LINE_BYTES {
            return text;
        }
        let short = match self.clone() {
            AuditEvent::Call { user, process, client, call } => {
                AuditEvent::Call { user, process, client, call: Box::new(call.shortened()) }
            }
            AuditEvent::CommandEnd(end) => {
                AuditEvent::CommandEnd(CommandEndRecord { refusals: Vec::new(), ..end })
            }
            other => other,
        };
        serde_json::to_string(&short).unwrap_or_default()
    }
}

/// The audit logs of a journal.
#[derive(Debug, Clone)]
pub(super) struct AuditLogs {
    directory: PrivateDirectory,
    open: Arc<Mutex<Option<OpenLog>>>,
}

/// The log that was last appended to.
#[derive(Debug)]
struct OpenLog {
    key: String,
    lock: std::os::fd::OwnedFd,
    file: File,
    /// Its inode number, its length, and its last record, after our last append.
    inode: u64,
    length: u64,
    last: LastRecord,
}

/// The end of a chain.
#[derive(Debug, Clone)]
struct LastRecord {
    seq: u64,
    hash: String,
}

impl LastRecord {
    fn none() -> LastRecord {
        LastRecord { seq: 0, hash: NO_HASH.to_owned() }
    }
}

impl AuditLogs {
    pub(super) fn new(directory: PrivateDirectory) -> AuditLogs {
        AuditLogs { directory, open: Arc::default() }
    }

    fn append(
        &self,
        journal: &Journal,
        workspace: &str,
        event: &AuditEvent,
        max_bytes: u64,
    ) -> Result<(), FsError> {
        let key = key(workspace);
        let mut open = self.open.lock();
        // After an error, the next append looks at the file again.
        let mut log = match open.take() {
            Some(log) if log.key == key => log,
            _ => self.open(journal, key)?,
        };
        let cannot = |error: &io::Error| self.error(&current(&log.key), error);
        lock_with_timeout(&log.lock, FlockOperation::NonBlockingLockExclusive, LOCK_TIMEOUT)
            .map_err(|errno| cannot(&errno.into()))?;
        let written = self.append_locked(&mut log, event, max_bytes);
        let unlocked = rustix::fs::flock(&log.lock, FlockOperation::Unlock).map_err(Into::into);
        written.and(unlocked).map_err(|error| self.error(&current(&log.key), &error))?;
        *open = Some(log);
        Ok(())
    }

    fn append_locked(
        &self,
        log: &mut OpenLog,
        event: &AuditEvent,
        max_bytes: u64,
    ) -> io::Result<()> {
        let name = current(&log.key);
        // Another process may have begun a new file.
        let is_current = self.directory.stat(&name).is_ok_and(|found| found.st_ino == log.inode);
        if !is_current {
            log.file = self.open_current(&log.key)?;
            log.inode = log.file.metadata()?.ino();
            log.length = u64::MAX;
        }
        let mut text = String::new();
        let length = log.file.metadata()?.len();
        if length != log.length {
            let (last, torn) = self.last_record(log, length)?;
            log.last = last;
            log.length = length - torn;
            if torn > 0 {
                log.file.set_len(log.length)?;
                let event = AuditEvent::TornLineRemoved { bytes: torn, time_ms: now_ms() };
                log.last.push(&mut text, &event);
            }
        }
        if log.length >= max_bytes {
            let first = first_number(&log.file).unwrap_or(0);
            self.directory.rename(&name, format!("{AUDIT}/{}.{first:012}.jsonl", log.key))?;
            log.file = self.open_current(&log.key)?;
            log.inode = log.file.metadata()?.ino();
            log.length = 0;
        }
        log.last.push(&mut text, event);
        // A single write, so that a reader sees whole lines.
        log.file.write_all(text.as_bytes())?;
        log.length += text.len() as u64;
        Ok(())
    }

    /// The last record of a file, and the number of bytes after its line. If the file is empty, the last record of the
    /// file before it.
    fn last_record(&self, log: &OpenLog, length: u64) -> io::Result<(LastRecord, u64)> {
        let (found, end) = end_of(&log.file, length)?;
        let torn = length - end;
        if let Some(last) = found {
            return Ok((last, torn));
        }
        match self.full_files(&log.key)?.pop() {
            Some(name) if end == 0 => {
                let before = self.directory.open_file(&name, OFlags::RDONLY)?;
                let (found, _) = end_of(&before, before.metadata()?.len())?;
                Ok((found.unwrap_or_else(LastRecord::none), torn))
            }
            _ => Ok((LastRecord::none(), torn)),
        }
    }

    fn open(&self, journal: &Journal, key: String) -> Result<OpenLog, FsError> {
        journal.prepare(&[AUDIT])?;
        let name = current(&key);
        let cannot = |error: io::Error| self.error(&name, &error);
        let lock = format!("{AUDIT}/{key}.lock");
        let lock =
            self.directory.open_file(&lock, OFlags::RDWR | OFlags::CREATE).map_err(cannot)?;
        let file = self.open_current(&key).map_err(cannot)?;
        let inode = file.metadata().map_err(cannot)?.ino();
        let last = LastRecord::none();
        Ok(OpenLog { key, lock: lock.into(), file, inode, length: u64::MAX, last })
    }

    fn open_current(&self, key: &str) -> io::Result<File> {
        self.directory.open_file(current(key), OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)
    }

    /// The names of the full files, oldest first.
    fn full_files(&self, key: &str) -> io::Result<Vec<String>> {
        let number = |name: &str| {
            let digits = name.strip_prefix(key)?.strip_prefix('.')?.strip_suffix(".jsonl")?;
            digits.parse::<u64>().ok()
        };
        let names =
            self.directory.list(AUDIT)?.into_iter().filter_map(|name| name.into_string().ok());
        let mut full: Vec<(u64, String)> =
            names.filter_map(|name| Some((number(&name)?, format!("{AUDIT}/{name}")))).collect();
        full.sort();
        Ok(full.into_iter().map(|(_, name)| name).collect())
    }

    /// Passes the lines of the log to `visit`, oldest first, without newlines. `None` is a line that is too long for a
    /// record. Returns the number of bytes after the last newline.
    fn read(
        &self,
        workspace: &str,
        mut visit: impl FnMut(Option<&[u8]>) -> ControlFlow<()>,
    ) -> Result<u64, FsError> {
        let key = key(workspace);
        let mut torn = 0;
        for (name, file, length) in self.files(&key)? {
            let mut reader = BufReader::new(file.take(length));
            let mut line = Vec::new();
            loop {
                line.clear();
                let mut bounded = reader.by_ref().take(MAX_LINE_BYTES as u64 + 1);
                let read = bounded.read_until(b'\n', &mut line);
                read.map_err(|error| self.error(&name, &error))?;
                let seen = match line.split_last() {
                    None => break,
                    Some((b'\n', line)) => visit(Some(line)),
                    Some(_) if line.len() > MAX_LINE_BYTES => visit(None),
                    Some(_) => {
                        torn = line.len() as u64;
                        break;
                    }
                };
                if seen.is_break() {
                    return Ok(0);
                }
            }
        }
        Ok(torn)
    }

    /// The files with their lengths, oldest first, at one moment between two appends.
    fn files(&self, key: &str) -> Result<Vec<(String, File, u64)>, FsError> {
        let cannot = |error: io::Error| self.error(&current(key), &error);
        let lock = self.directory.open_file(format!("{AUDIT}/{key}.lock"), OFlags::RDONLY);
        let lock = match lock {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            lock => Some(lock.map_err(cannot)?.into()),
        };
        if let Some(lock) = &lock {
            lock_with_timeout(lock, FlockOperation::NonBlockingLockShared, LOCK_TIMEOUT)
                .map_err(|errno| cannot(errno.into()))?;
        }
        let mut files = Vec::new();
        let names = self.full_files(key).map_err(cannot)?;
        for name in names.into_iter().chain([current(key)]) {
            match self.directory.open_file(&name, OFlags::RDONLY) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                file => {
                    let file = file.map_err(cannot)?;
                    let length = file.metadata().map_err(cannot)?.len();
                    files.push((name, file, length));
                }
            }
        }
        Ok(files)
    }

    fn error(&self, name: &str, error: &io::Error) -> FsError {
        FsError::from_io(self.directory.path().join(name), "cannot be used", error)
    }
}

impl LastRecord {
    /// Appends the line of an event, which becomes the last record.
    fn push(&mut self, text: &mut String, event: &AuditEvent) {
        let seq = self.seq.saturating_add(1);
        let (line, hash) = chained_line::make(&self.hash, seq, &event.text());
        text.push_str(&line);
        text.push('\n');
        *self = LastRecord { seq, hash };
    }
}

/// The last record of a file, and the end of its last line. Damaged lines at the end count as records, so that the
/// damage stays visible.
fn end_of(file: &File, length: u64) -> io::Result<(Option<LastRecord>, u64)> {
    let (mut found, mut damaged, mut end) = (None, 0_u64, 0);
    let visit = |line: &[u8], at: u64| {
        end = end.max(at + line.len() as u64 + 1);
        match chained_line::check(line) {
            Some((link, _)) => {
                let hash = if damaged > 0 { NO_HASH.to_owned() } else { link.hash };
                found = Some(LastRecord { seq: link.seq.saturating_add(damaged), hash });
                ControlFlow::Break(())
            }
            None => {
                damaged += 1;
                ControlFlow::Continue(())
            }
        }
    };
    let _ = lines_before(file, length, MAX_LINE_BYTES, visit)?;
    let damaged_only = LastRecord { seq: damaged, hash: NO_HASH.to_owned() };
    Ok((found.or((damaged > 0).then_some(damaged_only)), end))
}

/// The number of the first record of a file.
fn first_number(file: &File) -> Option<u64> {
    use std::os::unix::fs::FileExt as _;
    let mut bytes = vec![0; MAX_LINE_BYTES];
    let length = file.read_at(&mut bytes, 0).ok()?;
    let line = bytes[..length].split(|&byte| byte == b'\n').next()?;
    chained_line::check(line).map(|(link, _)| link.seq)
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

fn key(workspace: &str) -> String {
    // 0.1.0 wrote a slash at the end of some paths.
    ContentHash::of(workspace.trim_end_matches('/').as_bytes()).to_string()[..16].to_owned()
}

fn current(key: &str) -> String {
    format!("{AUDIT}/{key}.jsonl")
}

impl Journal {
    /// Appends a record to the audit log of a workspace. Fails if it cannot be written.
    pub fn record_audit(&self, workspace: &str, event: &AuditEvent) -> Result<(), FsError> {
        self.audit.append(self, workspace, event, MAX_FILE_BYTES)
    }

    /// Checks the audit log of a workspace, with a hash that was kept elsewhere if there is one.
    pub fn verify_audit(
        &self,
        workspace: &str,
        kept: Option<&str>,
    ) -> Result<AuditReport, FsError> {
        let mut verifier = Verifier::new(kept);
        let torn = self.audit.read(workspace, |line| {
            match line {
                Some(line) => verifier.line(line),
                None => verifier.long_line(),
            }
            ControlFlow::Continue(())
        })?;
        Ok(verifier.finish(torn))
    }

    /// Passes the lines of the audit log of a workspace to `visit`, oldest first, as they are and without newlines.
    pub fn audit_lines(
        &self,
        workspace: &str,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), FsError> {
        let read =
            self.audit.read(workspace, |line| line.map_or(ControlFlow::Continue(()), &mut visit));
        read.map(drop)
    }
}

#[cfg(test)]
mod tests;
