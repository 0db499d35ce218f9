//! The host's own program, started once more as a child with limits, for work that must not take the
//! host with it.
//!
//! A host that wants this calls [`run_helper`] first thing in its `main`, and tells the runtime where
//! its program is ([`crate::RuntimeBuilder::helper`]).

mod matching;
mod pdf;
mod picture;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use toolcrib_exec::{
    Worker, WorkerError, WorkerLimits, WorkerSlot, WorkerSlots, run_shim, serve, serve_conversation,
};
use toolcrib_search::answer_questions;

use crate::cx::Cx;
use crate::error::{Error, ErrorKind};

pub(crate) use self::matching::MatchingProcesses;
pub(crate) use self::pdf::pdf_text;
pub(crate) use self::picture::fitting_picture;

/// The argument by which the program knows that it was started as a helper.
const ARGUMENT: &str = "toolcrib-helper";

/// The arguments of a helper that keeps a command.
pub(crate) const KEEP: [&str; 2] = [ARGUMENT, "keep"];

/// The first word of what else a helper does.
const PDF: &str = "pdf";
const PICTURE: &str = "picture";
const MATCH: &str = "match";

/// Decoders that run at once: each may take a gigabyte.
static DECODERS: WorkerSlots = WorkerSlots::new(4);

/// A call waits no longer than this for a decoder; common clients give up after a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(40);

/// Does a helper's work, if these are the arguments of one, and answers the code to exit with; nothing,
/// if the program was started for something else.
///
/// ```no_run
/// # use std::process::ExitCode;
/// fn main() -> ExitCode {
///     if let Some(code) = toolcrib::run_helper(std::env::args_os()) {
///         return code;
///     }
///     // What the program is for.
///     ExitCode::SUCCESS
/// }
/// ```
pub fn run_helper(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    // First: every command pays for it.
    let mut arguments = arguments.peekable();
    if arguments.peek().is_some_and(|task| task == KEEP[1]) {
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

/// A place for a decoder, as soon as one is free. Held while the file is in memory, too.
pub(crate) fn place_to_decode(cx: &Cx<'_>) -> Result<WorkerSlot<'static>, Error> {
    let began = Instant::now();
    let cancelled = || cx.check_cancelled().is_err() || began.elapsed() >= LONGEST_WAIT;
    DECODERS.take(&cancelled).ok_or_else(|| match cx.check_cancelled() {
        Err(cancelled) => cancelled,
        Ok(()) => Error::new(ErrorKind::Limit, "too many pictures and PDFs are read at once")
            .hint("Nothing was read. Try again when other calls have been answered."),
    })
}

/// What a helper answers to some bytes.
fn ask(
    cx: &Cx<'_>,
    what: &str,
    words: Vec<String>,
    limits: WorkerLimits,
    bytes: &[u8],
) -> Result<Vec<u8>, Error> {
    let program = cx.runtime().helper().ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, format!("this host has no helper to read a {what} with"))
            .hint("A program that embeds toolcrib calls run_helper and RuntimeBuilder::helper.")
    })?;
    let cancelled = || cx.check_cancelled().is_err();
    worker(program, words, limits).run(bytes, &cancelled).map_err(|error| failed(cx, what, &error))
}

fn worker(program: &Path, words: Vec<String>, limits: WorkerLimits) -> Worker {
    let arguments = std::iter::once(ARGUMENT.to_owned()).chain(words).map(OsString::from).collect();
    Worker { program: program.to_owned(), arguments, limits }
}

fn failed(cx: &Cx<'_>, what: &str, error: &WorkerError) -> Error {
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

fn not_understood(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, format!("the helper's answer is not understood: {error}"))
}
