//! The process of a server, and the conversation with it.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcrib_exec::{
    CommandInput, CommandOutput, Ending, Job, Jobs, OutputStream, StartOptions, Status, size_text,
};
use toolcrib_lsp::{Client, ClientError, ClientSettings, Errors, FileChange};
use toolcrib_text::{truncate_line, visible};

use super::check::Launch;

/// How long a server may leave its input unread.
const WRITE_TIME: Duration = Duration::from_secs(20);

/// Output that is read while the server does not read its input.
const MAX_UNREAD_BYTES: usize = 32 << 20;

/// Bytes of its last error message that are kept.
const MAX_STDERR_BYTES: usize = 4_000;

/// Characters of its last error message that are shown.
const SHOWN_CHARS: usize = 160;

/// How often requests are repeated that could not be answered.
const TICK: Duration = Duration::from_millis(100);

/// How long one wait for output lasts.
const WAIT: Duration = Duration::from_millis(20);

/// Why a server can no longer be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// It ended or broke the protocol. Another start may help.
    Broken(String),
    /// Another start would not help.
    Final(String),
}

impl Failure {
    pub(super) fn timeout() -> Failure {
        Failure::Broken("it does not answer".to_owned())
    }
}

pub(super) struct Conversation {
    job: Arc<Job>,
    client: Client,
    input: CommandInput,
    output: RefCell<CommandOutput>,
    received: RefCell<Vec<u8>>,
    stderr: RefCell<Vec<u8>>,
    ticked: Cell<Instant>,
}

impl Conversation {
    /// Starts a server in its sandbox.
    pub(super) fn start(
        jobs: &Jobs,
        launch: &Launch,
        settings: ClientSettings,
    ) -> Result<Conversation, Failure> {
        let options = StartOptions::sandboxed(&launch.sandbox, launch.guard.clone());
        let (job, streams) = jobs
            .spawn(&launch.command, options)
            .map_err(|error| Failure::Final(error.to_string()))?;
        let (output, input) = streams.into_io();
        let Some(input) = input else {
            return Err(Failure::Final("it has no input".to_owned()));
        };
        Ok(Conversation {
            job,
            client: Client::new(settings),
            input,
            output: RefCell::new(output),
            received: RefCell::default(),
            stderr: RefCell::default(),
            ticked: Cell::new(Instant::now()),
        })
    }

    /// The client, to give it texts.
    pub(super) fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Sends what is to be sent, and reads what there is, waiting at most a moment.
    pub(super) fn exchange(&mut self, is_over: &dyn Fn() -> bool) -> Result<(), Failure> {
        self.exchange_within(WAIT, is_over)
    }

    /// Reads what there is, without waiting.
    pub(super) fn drain(&mut self) -> Result<(), Failure> {
        self.exchange_within(Duration::ZERO, &|| false)
    }

    fn exchange_within(
        &mut self,
        wait: Duration,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        if self.ticked.get().elapsed() >= TICK {
            self.ticked.set(Instant::now());
            self.client.tick();
        }
        let bytes = self.client.take_output();
        let began = Instant::now();
        let goes_on = || {
            // A server that waits for us to read its output does not read its input.
            self.read(Duration::ZERO);
            let has_room = self.received.borrow().len() < MAX_UNREAD_BYTES;
            has_room && !is_over() && began.elapsed() < WRITE_TIME
        };
        if self.input.write(&bytes, &goes_on).is_err() {
            return Err(self.failure("it does not read its input"));
        }
        self.read(wait);
        let received = std::mem::take(&mut *self.received.borrow_mut());
        self.client.receive(&received).map_err(|error| match error {
            ClientError::Initialize | ClientError::Unsupported => Failure::Final(error.to_string()),
            error => Failure::Broken(error.to_string()),
        })?;
        if self.output.borrow().is_closed() {
            return Err(self.failure("it ended"));
        }
        Ok(())
    }

    fn read(&self, wait: Duration) {
        self.output.borrow_mut().pass_on(wait, &mut |stream, bytes| match stream {
            OutputStream::Stdout => self.received.borrow_mut().extend_from_slice(bytes),
            OutputStream::Stderr => {
                let mut stderr = self.stderr.borrow_mut();
                stderr.extend_from_slice(bytes);
                let excess = stderr.len().saturating_sub(MAX_STDERR_BYTES);
                stderr.drain(..excess);
            }
        });
    }

    /// The reason why the server cannot be used: a limit, or its last words.
    fn failure(&self, otherwise: &str) -> Failure {
        let ended = self.job.wait(Duration::from_secs(1), |now| now.all_exited);
        if let Some(exceeded) = self.job.exceeded_limit() {
            let (used, allowed) = (size_text(exceeded.used), size_text(exceeded.allowed));
            let limit = exceeded.limit.name();
            return Failure::Final(format!("{limit} {used} is more than the limit of {allowed}"));
        }
        self.read(Duration::ZERO);
        let stderr = visible(&self.stderr.borrow());
        let words = error_line(&stderr).map_or(String::new(), |line| format!(": {line}"));
        let why = if ended.all_exited { "it ended" } else { otherwise };
        Failure::Broken(format!("{why}{words}"))
    }

    /// Whether the server can answer: it has started, and has loaded the project.
    pub(super) fn is_settled(&self) -> bool {
        self.client.is_ready() && self.client.is_quiescent()
    }

    /// The errors of a version of a text, if they are known.
    pub(super) fn answer(&self, path: &Path, version: i64) -> Option<Errors> {
        self.client.answer(path, version).cloned()
    }

    /// Tells the server of changed files. A text of it that is not the file any more is closed.
    pub(super) fn files_changed(&mut self, target: &Path, mut changes: Vec<FileChange>) {
        for change in &changes {
            if change.path != target {
                self.client.close(&change.path);
            }
        }
        let has_text = self.client.has_text(target);
        changes.retain(|change| change.path != target || !has_text);
        self.client.files_changed(&changes);
    }

    /// Ends the server.
    pub(super) fn end(mut self) {
        self.client.shut_down();
        let bytes = self.client.take_output();
        // It may not read any more.
        let _ = self.input.write(&bytes, &|| false);
        self.job.end(Ending::Prompt, Status::Killed);
    }
}

/// The line of a server's messages that says why it ended: the last error that no stack trace repeats, otherwise the
/// last line.
fn error_line(messages: &str) -> Option<String> {
    let lines = || messages.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    // Runtimes print stack traces and their version after the error. Frames name functions, such as `error::new`.
    let error = lines().find(|line| line.contains("rror: "));
    let line = error.or_else(|| lines().find(|line| line.contains("rror")));
    line.or_else(|| lines().next()).map(|line| truncate_line(line, SHOWN_CHARS))
}

#[cfg(test)]
mod tests {
    use super::error_line;

    fn assert_error(messages: &str, expected: &str) {
        assert_eq!(error_line(messages).as_deref(), Some(expected), "{messages}");
    }

    #[test]
    fn the_error_is_found_before_a_stack_trace() {
        assert_error(
            "starts\nerror: no component\n\nStack backtrace:\n  0: recursion_error\n  1: main\n",
            "error: no component",
        );
        assert_error(
            "file.js:1\nTypeError: no module\n    at throwError (a.js)\n\nNode.js v24\n",
            "TypeError: no module",
        );
    }

    #[test]
    fn without_an_error_the_last_line_is_used() {
        assert_error("Error\nready\n", "Error");
        assert_error("starts\nwas interrupted \n\n", "was interrupted");
        assert_eq!(error_line("\n \n"), None);
    }
}
