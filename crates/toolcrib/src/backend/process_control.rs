//! Input, signals and terminal size of a command while it runs.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use toolcrib_exec::{CommandInput, Job, Signal};

use super::exec::TerminalSize;
use crate::error::{Error, ErrorKind};

/// Controls a command while it runs, from any thread. It belongs to one command.
#[derive(Debug, Default)]
pub struct ProcessControl {
    state: Mutex<State>,
    changed: Condvar,
    /// Held while bytes are written, so that two writes do not mix.
    writing: Mutex<()>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    NotStarted,
    Running(Running),
    Ended,
}

#[derive(Debug, Clone)]
struct Running {
    job: Arc<Job>,
    /// `None` if stdin is closed or was never open.
    stdin: Option<Arc<CommandInput>>,
}

/// A signal for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessSignal {
    /// `SIGHUP`.
    Hangup,
    /// `SIGINT`.
    Interrupt,
    /// `SIGQUIT`.
    Quit,
    /// `SIGKILL`.
    Kill,
    /// `SIGUSR1`.
    User1,
    /// `SIGUSR2`.
    User2,
    /// `SIGTERM`.
    Terminate,
}

impl ProcessSignal {
    /// All signals, each with its name in the protocol.
    pub const NAMES: [(&'static str, ProcessSignal); 7] = [
        ("HUP", ProcessSignal::Hangup),
        ("INT", ProcessSignal::Interrupt),
        ("QUIT", ProcessSignal::Quit),
        ("KILL", ProcessSignal::Kill),
        ("USR1", ProcessSignal::User1),
        ("USR2", ProcessSignal::User2),
        ("TERM", ProcessSignal::Terminate),
    ];

    fn to_signal(self) -> Signal {
        match self {
            ProcessSignal::Hangup => Signal::HUP,
            ProcessSignal::Interrupt => Signal::INT,
            ProcessSignal::Quit => Signal::QUIT,
            ProcessSignal::Kill => Signal::KILL,
            ProcessSignal::User1 => Signal::USR1,
            ProcessSignal::User2 => Signal::USR2,
            ProcessSignal::Terminate => Signal::TERM,
        }
    }
}

impl ProcessControl {
    /// Writes all bytes to stdin. Blocks until the command has started, and while it does not read.
    ///
    /// # Errors
    ///
    /// Fails if the command does not run or has closed its stdin.
    pub fn write_stdin(&self, bytes: &[u8]) -> Result<(), Error> {
        let _writing = self.writing.lock();
        self.wait_for_start();
        let stdin = self.running()?.stdin.ok_or_else(stdin_closed)?;
        stdin.write(bytes, &|| self.running().is_ok()).map_err(|_| stdin_closed())
    }

    /// Closes stdin, after the command has started. A terminal gets its end-of-file character.
    ///
    /// # Errors
    ///
    /// Fails if the command does not run.
    pub fn close_stdin(&self) -> Result<(), Error> {
        self.wait_for_start();
        if let Some(end) = self.running()?.stdin.and_then(|stdin| stdin.end_of_file()) {
            return self.write_stdin(&end);
        }
        let _writing = self.writing.lock();
        if let State::Running(running) = &mut *self.state.lock() {
            running.stdin = None;
        }
        Ok(())
    }

    /// Sends a signal to all processes of the command.
    ///
    /// # Errors
    ///
    /// Fails if the command does not run.
    pub fn signal(&self, signal: ProcessSignal) -> Result<(), Error> {
        self.running()?.job.signal(signal.to_signal());
        Ok(())
    }

    /// Sets the size of the terminal.
    ///
    /// # Errors
    ///
    /// Fails if the command does not run or has no terminal.
    pub fn resize(&self, TerminalSize { rows, columns }: TerminalSize) -> Result<(), Error> {
        let no_terminal = || Error::invalid("the command has no terminal");
        let stdin = self.running()?.stdin.ok_or_else(no_terminal)?;
        stdin.resize(rows, columns).map_err(|_| no_terminal())
    }

    pub(super) fn attach(&self, job: Arc<Job>, stdin: Option<CommandInput>) {
        let stdin = stdin.map(Arc::new);
        self.set_state(State::Running(Running { job, stdin }));
    }

    pub(super) fn end(&self) {
        self.set_state(State::Ended);
    }

    fn set_state(&self, state: State) {
        *self.state.lock() = state;
        self.changed.notify_all();
    }

    fn wait_for_start(&self) {
        let is_waiting = |state: &mut State| matches!(state, State::NotStarted);
        self.changed.wait_while(&mut self.state.lock(), is_waiting);
    }

    fn running(&self) -> Result<Running, Error> {
        match &*self.state.lock() {
            State::Running(running) => Ok(running.clone()),
            State::NotStarted | State::Ended => {
                Err(Error::new(ErrorKind::NotFound, "the command does not run"))
            }
        }
    }
}

fn stdin_closed() -> Error {
    Error::new(ErrorKind::Io, "the stdin of the command is closed")
}
