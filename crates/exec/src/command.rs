//! A command as plain data: what is to run, where, with what around it.

use std::ffi::OsString;
use std::path::PathBuf;

/// What a shell is to run. How it is confined is not said here: that is the launcher's business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The script, as the shell reads it: any bytes but zero, at any length.
    pub script: Vec<u8>,
    /// The shell: bash, by its full path.
    pub shell: PathBuf,
    /// Where it begins.
    pub directory: PathBuf,
    /// All of its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// What it reads on stdin; empty is the end of the input at once.
    pub stdin: Vec<u8>,
    /// Whether stderr is stored apart from stdout. Otherwise both are one output, in the order of the writes.
    pub separate_streams: bool,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// Whether it ended as commands do that did what they were asked.
    pub fn is_success(self) -> bool {
        self == Exit::Code(0)
    }
}

/// What a command left behind when its shell ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How the shell ended.
    pub exit: Exit,
    /// Time on a processor, of the shell and of all it waited for.
    pub cpu: std::time::Duration,
    /// The most memory that one of them had at a time.
    pub peak_bytes: u64,
    /// Where it was, and what it exported; nothing, if it ended without a word, as by `exec` or a signal.
    pub left: Option<ShellState>,
}

/// What a shell said of itself in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellState {
    /// The exit codes of the parts of its last pipeline.
    pub pipe_codes: Vec<i32>,
    /// The last command that it ran itself: of a pipeline, the last part; or the `exit` that ended it.
    pub last_command: String,
    /// Its directory; nothing, if that was gone.
    pub directory: Option<PathBuf>,
    /// Its exported variables.
    pub environment: Vec<(OsString, OsString)>,
}
