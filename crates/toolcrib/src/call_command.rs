//! The command of a call, for the host program: its output while it runs, and its end.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use toolcrib_exec::{Ending, Exit, Job, Status};
use toolcrib_text::Secrets;

use crate::sandbox_refusal_notes::{DeniedAccess, denied_accesses};

/// A command that a call has started.
#[derive(Clone)]
pub struct CallCommand {
    job: Arc<Job>,
    secrets: Arc<Secrets>,
}

/// A command that may be forgotten by its session, together with its output.
#[derive(Clone)]
pub struct WeakCallCommand {
    job: Weak<Job>,
    secrets: Arc<Secrets>,
}

/// A part of the output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// Offset of its first byte.
    pub from: u64,
    /// Offset after its last byte.
    pub next: u64,
    /// The text, with secrets masked as far as they are in one part.
    pub text: String,
    /// Bytes before `from` that were asked for and are no longer available.
    pub dropped: u64,
    /// Whether the command has ended, and this is the end of its output.
    pub ended: bool,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEnd {
    /// `completed`, `failed`, `killed` or `timeout`.
    pub status: &'static str,
    /// The exit code of its shell. `None` if a signal ended it.
    pub exit_code: Option<i32>,
    /// When it ended.
    pub time: SystemTime,
    /// The accesses that the sandbox denied.
    pub denied: Vec<DeniedAccess>,
}

/// Longer than a command usually runs. Then it is waited for again.
const WAIT_INTERVAL: Duration = Duration::from_secs(60 * 60);

impl fmt::Debug for CallCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallCommand").field("id", &self.job.id()).finish_non_exhaustive()
    }
}

impl fmt::Debug for WeakCallCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakCallCommand").finish_non_exhaustive()
    }
}

impl CallCommand {
    pub(crate) fn new(job: Arc<Job>, secrets: Secrets) -> CallCommand {
        CallCommand { job, secrets: Arc::new(secrets) }
    }

    /// Its id in the session, such as `sh_1`.
    pub fn id(&self) -> &str {
        self.job.id()
    }

    /// Number of bytes that it has written.
    pub fn written(&self) -> u64 {
        self.job.snapshot().written
    }

    /// Whether its shell still runs.
    pub fn is_running(&self) -> bool {
        self.job.snapshot().status.is_running()
    }

    /// Whether one of its processes still runs, perhaps after its shell.
    pub fn has_processes(&self) -> bool {
        !self.job.snapshot().all_exited
    }

    /// How long its shell has run.
    pub fn duration(&self) -> Duration {
        self.job.snapshot().duration
    }

    /// Its output from this byte, at most `max` bytes. Never ends within a UTF-8 character, unless the output does.
    pub fn output(&self, from: u64, max: usize) -> CommandOutput {
        // Before the output is read: what comes in between is read the next time.
        let before = self.job.snapshot();
        let (at, mut bytes) = self.job.read(from.min(before.written), max);
        let is_closed = before.closed && !before.status.is_running();
        let at_end = at + bytes.len() as u64 >= before.written;
        if !(is_closed && at_end) {
            // The rest of a secret comes with the next read, and only then it can be recognized.
            bytes.truncate(bytes.len() - self.secrets.unfinished(&bytes).min(bytes.len()));
            bytes.truncate(whole_characters(&bytes));
        }
        let next = at + bytes.len() as u64;
        let text = String::from_utf8_lossy(&bytes);
        CommandOutput {
            from: at,
            next,
            text: self.secrets.mask(&text).into_owned(),
            dropped: at.saturating_sub(from),
            ended: is_closed && next >= before.written,
        }
    }

    /// Ends it: SIGTERM, and SIGKILL after two seconds. Returns whether it was running.
    pub fn stop(&self) -> bool {
        let is_running = self.has_processes();
        if is_running {
            self.job.end(Ending::Polite, Status::Killed);
        }
        is_running
    }

    /// The accesses that the sandbox has denied so far.
    pub fn denied_accesses(&self) -> Vec<DeniedAccess> {
        denied_accesses(&self.job.refusals())
    }

    /// Waits until its shell has ended.
    pub(crate) fn wait_for_end(&self) -> CommandEnd {
        let ended = loop {
            let state = self.job.wait(WAIT_INTERVAL, |state| !state.status.is_running());
            if !state.status.is_running() {
                break state;
            }
        };
        let exit_code = ended.ended.and_then(|ended| match ended.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) => None,
        });
        CommandEnd {
            status: ended.status.name(),
            exit_code,
            time: ended.finished.unwrap_or_else(SystemTime::now),
            denied: self.denied_accesses(),
        }
    }

    /// A reference that does not keep the output.
    pub fn downgrade(&self) -> WeakCallCommand {
        WeakCallCommand { job: Arc::downgrade(&self.job), secrets: self.secrets.clone() }
    }
}

impl WeakCallCommand {
    /// The command, if its session still has it.
    pub fn upgrade(&self) -> Option<CallCommand> {
        Some(CallCommand { job: self.job.upgrade()?, secrets: self.secrets.clone() })
    }
}

/// Length of the bytes without an incomplete UTF-8 character at their end.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(&bytes[bytes.len().saturating_sub(3)..]) {
        Err(error) if error.error_len().is_none() => {
            let incomplete = bytes.len().min(3) - error.valid_up_to();
            // A lone start is kept if it is all there is, so that reading goes on.
            if incomplete < bytes.len() { bytes.len() - incomplete } else { bytes.len() }
        }
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_between_characters() {
        for (bytes, whole) in [
            (&b"abc"[..], 3),
            (b"", 0),
            ("aä".as_bytes(), 3),
            (&"aä".as_bytes()[..2], 1),
            (&"aa€".as_bytes()[..4], 2),
            (&"aa😀".as_bytes()[..5], 2),
            (b"\xff\xfe\xfd", 3),
            (&"€".as_bytes()[..2], 2),
        ] {
            assert_eq!(whole_characters(bytes), whole, "{bytes:?}");
        }
    }
}
