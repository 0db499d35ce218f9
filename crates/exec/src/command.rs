//! A command as plain data: script, shell, directory, environment and stdin.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::path_encoding;

/// A script for a shell to run. It does not say how the command is confined: that is up to the launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The script. It may have any length and any bytes except zero.
    pub script: Vec<u8>,
    /// The absolute path of bash.
    #[serde(with = "path_encoding::path")]
    pub shell: PathBuf,
    /// The initial working directory.
    #[serde(with = "path_encoding::path")]
    pub directory: PathBuf,
    /// The complete environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Its stdin.
    pub stdin: Stdin,
    /// Whether stderr is stored apart from stdout. Otherwise both are one output, in the order of the writes.
    pub separate_streams: bool,
}

/// The stdin of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// This content. If it is empty, stdin is at end of file.
    Content(Vec<u8>),
    /// A pipe that stays open.
    Pipe,
    /// A terminal, which is also stdout and stderr.
    Terminal {
        /// Its height.
        rows: u16,
        /// Its width.
        columns: u16,
    },
}

impl Stdin {
    /// At end of file.
    pub const EMPTY: Stdin = Stdin::Content(Vec::new());
}

/// A stream that a command writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Stdout, and stderr unless it is stored apart.
    Output,
    /// Stderr, if it is stored apart.
    Errors,
}

/// How a shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Exit {
    /// Whether the exit code is 0.
    pub fn is_success(self) -> bool {
        self == Exit::Code(0)
    }
}

/// The result of a command whose shell has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How the shell ended.
    pub exit: Exit,
    /// CPU time of the shell and of all processes that it waited for.
    pub cpu: std::time::Duration,
    /// The largest resident memory of any one of these processes.
    pub peak_bytes: u64,
    /// The state of the shell at its end. `None` if it did not report it, as after `exec` or a signal. Shared, because
    /// each [`crate::Snapshot`] has it and it contains the whole environment.
    pub shell_state: Option<Arc<ShellState>>,
}

/// The state that a shell reports when it exits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellState {
    /// The exit codes of the parts of its last pipeline.
    pub pipe_codes: Vec<i32>,
    /// The last command that it ran itself: the last part of a pipeline, or the `exit` that ended it.
    pub last_command: String,
    /// Its working directory. `None` if that no longer existed.
    pub directory: Option<PathBuf>,
    /// Its exported variables.
    pub environment: Vec<(OsString, OsString)>,
}
