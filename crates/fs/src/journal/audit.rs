//! The audit log of a workspace: one line for each call that ended, each with the hash of the line before it.
//!
//! # How it works
//!
//! `audit/KEY.jsonl` has the lines; KEY is from the path of the workspace.
//! When the file is full, it gets the number of its first record into its name, and a new one goes on with the chain. If
//! all files together are over the limit, the oldest are removed, and the chain records each removal first. So a beginning
//! that is missing for another reason is found.
//!
//! A process appends under the lock of the workspace, so that several sessions make one chain. It knows the last
//! record unless another process has written since, which the size of the file shows. A crash in the middle of a
//! write leaves a line without an end. The next append removes it, and records that. Bytes that no crash can leave are
//! kept, and count as a damaged line.

mod chained_line;
mod escaped_json;
mod outbox;
mod shared_holder;
mod verify;

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};

use self::chained_line::{ChainLink, NO_HASH};
pub use self::escaped_json::escaped_json;
pub use self::outbox::{AuditOutbox, OutboxPosition, OutboxRecord};
pub use self::shared_holder::SharedHolder;
pub use self::verify::{AuditBreak, AuditReport, AuditVerifier};
use super::bounded_log::MAX_LINE_BYTES;
use super::calls::CallRecord;
use super::command_ends::CommandEndRecord;
use super::read_back::{chunks_before, lines_before, read_chunk};
use super::{Journal, LOCK_TIMEOUT};
use crate::error::FsError;
use crate::hash::ContentHash;
use crate::lock::lock_with_timeout;
use crate::private_directory::PrivateDirectory;
use crate::unix_time::now_ms;

/// The subdirectory.
pub(super) const AUDIT: &str = "audit";

/// When a file reaches this size, a new one begins. Room for about 100,000 calls.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The least number of files that the limit has room for, so that removing one leaves most records.
const LEAST_FILES: u64 = 4;

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
        /// Who made it, if the server knows callers by an identity provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<PrincipalRecord>,
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
    /// The log was over its limit, so that a file with its oldest records was removed.
    OldestRemoved {
        /// The number of the last removed record.
        last: u64,
        /// Its hash.
        last_hash: String,
        /// The time, in milliseconds since 1970.
        time_ms: u64,
    },
}

/// Who made a call, as an identity provider says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrincipalRecord {
    /// The provider.
    pub issuer: String,
    /// Who it is, in the words of the provider.
    pub subject: String,
}

impl AuditEvent {
    /// A call that this process served.
    pub fn call(
        client: Option<String>,
        principal: Option<PrincipalRecord>,
        call: CallRecord,
    ) -> AuditEvent {
        AuditEvent::Call {
            user: rustix::process::geteuid().as_raw(),
            process: std::process::id(),
            client,
            principal,
            call: Box::new(call),
        }
    }

    /// The event as JSON that fits a line and has no characters that a terminal acts on.
    fn text(&self) -> String {
        let text = escaped_json(self);
        // The hashes and the number take less than 256 bytes.
        if text.len() + 256 <= MAX_LINE_BYTES {
            return text;
        }
        let short = match self.clone() {
            AuditEvent::Call { user, process, client, principal, call } => {
                let call = Box::new(call.shortened());
                AuditEvent::Call { user, process, client, principal, call }
            }
            AuditEvent::CommandEnd(end) => {
                AuditEvent::CommandEnd(CommandEndRecord { refusals: Vec::new(), ..end })
            }
            other => other,
        };
        escaped_json(&short)
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

    /// Appends a record. `max_bytes` is the limit of all files of the workspace.
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
            log.length = self.go_on(log, length, &mut text)?;
        }
        let mut over_limit = Vec::new();
        if log.length >= MAX_FILE_BYTES.min(max_bytes / LEAST_FILES) {
            // What the text has so far belongs to the end of the full file.
            log.file.write_all(text.as_bytes())?;
            text.clear();
            self.directory.rename(&name, self.name_when_full(log))?;
            log.file = self.open_current(&log.key)?;
            log.inode = log.file.metadata()?.ino();
            log.length = 0;
            over_limit = self.over_limit(&log.key, max_bytes)?;
        }
        for (_, removal) in &over_limit {
            removal.iter().for_each(|removal| log.last.push(&mut text, removal));
        }
        log.last.push(&mut text, event);
        // A single write, so that a reader sees whole lines.
        log.file.write_all(text.as_bytes())?;
        log.length += text.len() as u64;
        // After their records, so that a crash leaves no beginning that is missing without a reason.
        over_limit.iter().try_for_each(|(name, _)| self.directory.remove(name))
    }

    /// A name for the current file that no other file has, from the number of its first record.
    fn name_when_full(&self, log: &OpenLog) -> String {
        let mut number = first_link(&log.file).map_or(log.last.seq, |link| link.seq);
        // Damaged files may claim any number.
        while self.directory.stat(full(&log.key, number)).is_ok() {
            number = number.saturating_add(1);
        }
        full(&log.key, number)
    }

    /// Finds the end of the chain in a file that another process has written, or a crash has left. Returns the length of
    /// the file. `text` gets what must be written before the next record.
    fn go_on(&self, log: &mut OpenLog, length: u64, text: &mut String) -> io::Result<u64> {
        let (last, torn) = self.last_record(log, length)?;
        log.last = last;
        if torn > MAX_LINE_BYTES as u64 {
            // No crash leaves that much of a line. It stays, as a damaged line.
            text.push('\n');
            log.last = LastRecord { seq: log.last.seq.saturating_add(1), hash: NO_HASH.to_owned() };
            return Ok(length);
        }
        if torn > 0 {
            log.file.set_len(length - torn)?;
            let event = AuditEvent::TornLineRemoved { bytes: torn, time_ms: now_ms() };
            log.last.push(text, &event);
        }
        Ok(length - torn)
    }

    /// The oldest full files that must be removed so that the log stays within its limit, each with the event that
    /// records it. There is no event if the file after it does not begin with a record, since verification fails then.
    fn over_limit(
        &self,
        key: &str,
        max_bytes: u64,
    ) -> io::Result<Vec<(String, Option<AuditEvent>)>> {
        let size = |name: &String| {
            let found = self.directory.stat(name)?;
            Ok(u64::try_from(found.st_size).unwrap_or(0))
        };
        let names = self.full_files(key)?;
        let sizes = names.iter().map(size).collect::<io::Result<Vec<u64>>>()?;
        // The file that begins now gets as large as this.
        let mut total = MAX_FILE_BYTES.min(max_bytes / LEAST_FILES);
        let fits = |size: &&u64| {
            total = total.saturating_add(**size);
            total <= max_bytes
        };
        let kept = sizes.iter().rev().take_while(fits).count();
        let removed = names.len() - kept;
        let mut over = Vec::new();
        for (at, name) in names.iter().enumerate().take(removed) {
            let next = names.get(at + 1).map(|next| self.directory.open_file(next, OFlags::RDONLY));
            let next = next.transpose()?.and_then(|file| first_link(&file));
            let event = next.map(|next| AuditEvent::OldestRemoved {
                last: next.seq.saturating_sub(1),
                last_hash: next.prev,
                time_ms: now_ms(),
            });
            over.push((name.clone(), event));
        }
        Ok(over)
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
    /// record, or has no end in a full file. Returns the number of bytes after the last newline, which a crash left.
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
                    Some(_) if line.len() > MAX_LINE_BYTES => {
                        skip_line(&mut reader).map_err(|error| self.error(&name, &error))?;
                        visit(None)
                    }
                    // A crash leaves it at the end of the file that is written.
                    Some(_) if name == current(&key) => {
                        torn = line.len() as u64;
                        break;
                    }
                    Some(_) => visit(None),
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
    let end = end_of_lines(file, length)?;
    let (mut found, mut damaged, mut from) = (None, 0_u64, end);
    let visit = |line: &[u8], at: u64| {
        // Lines that are too long are left out.
        damaged += u64::from(at + line.len() as u64 + 1 < from);
        from = at;
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
    let _ = lines_before(file, end, MAX_LINE_BYTES, visit)?;
    damaged += u64::from(found.is_none() && from > 0);
    let damaged_only = LastRecord { seq: damaged, hash: NO_HASH.to_owned() };
    Ok((found.or((damaged > 0).then_some(damaged_only)), end))
}

/// The offset after the last newline.
fn end_of_lines(file: &File, length: u64) -> io::Result<u64> {
    for chunk in chunks_before(length) {
        if let Some(newline) = memchr::memrchr(b'\n', &read_chunk(file, &chunk)?) {
            return Ok(chunk.start + newline as u64 + 1);
        }
    }
    Ok(0)
}

/// Skips the rest of a line.
fn skip_line(reader: &mut impl io::BufRead) -> io::Result<()> {
    loop {
        let bytes = reader.fill_buf()?;
        let (length, is_end) = match memchr::memchr(b'\n', bytes) {
            Some(newline) => (newline + 1, true),
            None => (bytes.len(), bytes.is_empty()),
        };
        reader.consume(length);
        if is_end {
            return Ok(());
        }
    }
}

/// The link of the first record of a file.
fn first_link(file: &File) -> Option<ChainLink> {
    let mut bytes = vec![0; MAX_LINE_BYTES];
    let length = file.read_at(&mut bytes, 0).ok()?;
    let line = bytes[..length].split(|&byte| byte == b'\n').next()?;
    chained_line::check(line).map(|(link, _)| link)
}

fn key(workspace: &str) -> String {
    // 0.1.0 wrote a slash at the end of some paths.
    ContentHash::of(workspace.trim_end_matches('/').as_bytes()).to_string()[..16].to_owned()
}

fn current(key: &str) -> String {
    format!("{AUDIT}/{key}.jsonl")
}

/// The name of a full file.
fn full(key: &str, number: u64) -> String {
    format!("{AUDIT}/{key}.{number:012}.jsonl")
}

impl Journal {
    /// Appends a record to the audit log of a workspace. Removes the oldest records of a log that is over its limit, and
    /// records that. Fails if it cannot be written.
    pub fn record_audit(&self, workspace: &str, event: &AuditEvent) -> Result<(), FsError> {
        self.audit.append(self, workspace, event, self.caps.audit_bytes)
    }

    /// Checks the audit log of a workspace, with a hash that was kept elsewhere if there is one.
    pub fn verify_audit(
        &self,
        workspace: &str,
        kept: Option<&str>,
    ) -> Result<AuditReport, FsError> {
        let mut verifier = AuditVerifier::new(kept);
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

    /// The audit log of a workspace, to send its records elsewhere.
    pub fn audit_outbox(&self, workspace: &str) -> AuditOutbox {
        AuditOutbox::of(self.clone(), workspace)
    }
}

#[cfg(test)]
mod tests;
