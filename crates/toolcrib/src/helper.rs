//! Child processes of the host's own program, for work that may crash or exhaust resources.
//!
//! The host calls [`run_helper`] at the start of its `main`, and passes the path of its program to
//! [`crate::RuntimeBuilder::helper`].

mod matching;
mod pdf;
mod picture;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use toolcrib_exec::{
    Worker, WorkerError, WorkerLimits, WorkerSlot, WorkerSlots, run_shim, serve, serve_conversation,
};
use toolcrib_search::answer_questions;

use crate::command_state::{HELPER_ARGUMENT, SHIM_ARGUMENTS};
use crate::cx::{Cx, HELPER_HINT};
use crate::error::{Error, ErrorKind};

pub(crate) use self::matching::MatchingProcesses;
pub(crate) use self::pdf::pdf_text;
pub(crate) use self::picture::scaled_picture;

/// First word of the other tasks.
const PDF: &str = "pdf";
const PICTURE: &str = "picture";
const MATCH: &str = "match";

/// Concurrent decoders. Each may use a gigabyte.
static DECODERS: WorkerSlots = WorkerSlots::new(4);

/// A call waits at most this long for a decoder. Common clients give up after a minute.
const DECODER_WAIT_TIMEOUT: Duration = Duration::from_secs(40);

/// Runs the helper's task if the arguments are those of a helper process, and returns the exit code. Returns
/// `None` if the program was started for another purpose; continue with your own `main` then.
///
/// Call it first: the helper starts your program again for commands, PDFs and images.
///
/// ```no_run
/// # use std::process::ExitCode;
/// fn main() -> ExitCode {
///     if let Some(code) = toolcrib::run_helper(std::env::args_os()) {
///         return code;
///     }
///     // The program's own work.
///     ExitCode::SUCCESS
/// }
/// ```
pub fn run_helper(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    IS_READY.store(true, Ordering::Relaxed);
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != HELPER_ARGUMENT {
        return None;
    }
    // First, because every command pays for it.
    let mut arguments = arguments.peekable();
    if arguments.peek().is_some_and(|task| task == SHIM_ARGUMENTS[1]) {
        return Some(run_shim());
    }
    let task: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    let task: Vec<&str> = task.iter().map(String::as_str).collect();
    let done = match task.as_slice() {
        [PDF, task @ ..] => pdf::Task::parse(task).map(|task| serve(|bytes| task.run(bytes))),
        [PICTURE, task @ ..] => {
            picture::parse(task).map(|fit| serve(|bytes| picture::run(&bytes, fit)))
        }
        [MATCH] => Some(serve_conversation(answer_questions)),
        _ => None,
    };
    Some(done.unwrap_or(ExitCode::from(2)))
}

/// Whether this program can be its own helper: its `main` has called [`run_helper`].
pub(crate) fn is_helper_ready() -> bool {
    IS_READY.load(Ordering::Relaxed)
}

static IS_READY: AtomicBool = AtomicBool::new(false);

/// Waits for a free decoder slot. The caller holds it while the file is in memory, too.
pub(crate) fn acquire_decoder(cx: &Cx<'_>) -> Result<WorkerSlot<'static>, Error> {
    let began = Instant::now();
    let cancelled = || cx.check_cancelled().is_err() || began.elapsed() >= DECODER_WAIT_TIMEOUT;
    DECODERS.take(&cancelled).ok_or_else(|| match cx.check_cancelled() {
        Err(cancelled) => cancelled,
        Ok(()) => Error::new(ErrorKind::Limit, "too many images and PDFs are being read at once")
            .hint("Nothing was read. Try again when other calls have finished."),
    })
}

/// Runs a helper on some bytes and returns its output.
fn run_task(
    cx: &Cx<'_>,
    what: &str,
    words: Vec<String>,
    limits: WorkerLimits,
    bytes: &[u8],
) -> Result<Vec<u8>, Error> {
    let program = cx.helper().ok_or_else(|| {
        Error::new(
            ErrorKind::Unsupported,
            format!("this host has no helper process to read a {what}"),
        )
        .hint(HELPER_HINT)
    })?;
    let cancelled = || cx.check_cancelled().is_err();
    worker(program, words, limits)
        .run(bytes, &cancelled)
        .map_err(|error| worker_error(cx, what, &error))
}

fn worker(program: &Path, words: Vec<String>, limits: WorkerLimits) -> Worker {
    let arguments =
        std::iter::once(HELPER_ARGUMENT.to_owned()).chain(words).map(OsString::from).collect();
    Worker { program: program.to_owned(), arguments, limits }
}

fn worker_error(cx: &Cx<'_>, what: &str, error: &WorkerError) -> Error {
    if let Err(cancelled) = cx.check_cancelled() {
        return cancelled;
    }
    let kind = match error {
        WorkerError::TimedOut => ErrorKind::Timeout,
        WorkerError::OutOfMemory | WorkerError::TooMuchOutput => ErrorKind::Limit,
        WorkerError::NotStarted(_) | WorkerError::Lost(_) => ErrorKind::Io,
        _ => ErrorKind::Unsupported,
    };
    Error::new(kind, format!("the {what} could not be read: {error}"))
}

fn bad_answer(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, format!("the reply of the helper process is invalid: {error}"))
}
