//! The host's own program, started once more as a child with limits, for work that must not take the
//! host with it.
//!
//! A host that wants this calls [`run_helper`] first thing in its `main`, and tells the runtime where
//! its program is ([`crate::RuntimeBuilder::helper`]).

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use toolcrib_exec::{Worker, WorkerError, WorkerLimits, keep, serve};
use toolcrib_media::{PdfError, PdfText, read_pdf};

use crate::cx::Cx;
use crate::error::{Error, ErrorKind};

/// The argument by which the program knows that it was started as a helper.
const ARGUMENT: &str = "toolcrib-helper";

/// The arguments of a helper that keeps a command.
pub(crate) const KEEP: [&str; 2] = [ARGUMENT, "keep"];

/// What reading a PDF may cost. A bomb takes a few seconds of one processor, not the server.
const PDF_LIMITS: WorkerLimits = WorkerLimits {
    memory_bytes: 2 << 30,
    cpu_seconds: 10,
    wall: Duration::from_secs(20),
    output_bytes: 16 << 20,
};

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
        return Some(keep());
    }
    let task: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    let pdf = match task.as_slice() {
        [task, first, last, chars] if task == "pdf" => {
            first.parse().ok().zip(last.parse().ok()).zip(chars.parse().ok())
        }
        _ => None,
    };
    let Some(((first, last), chars)) = pdf else { return Some(ExitCode::from(2)) };
    Some(serve(move |bytes| {
        serde_json::to_vec(&read_pdf(bytes, first..=last, chars)).map_err(|error| error.to_string())
    }))
}

/// The text of some pages of a PDF, read by a helper.
pub(crate) fn pdf_text(
    cx: &Cx<'_>,
    pdf: &[u8],
    (first, last): (u32, u32),
    chars: usize,
) -> Result<Result<PdfText, PdfError>, Error> {
    let program = cx.runtime().helper().ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, "this host has no helper to read a PDF with")
            .hint("A program that embeds toolcrib calls run_helper and RuntimeBuilder::helper.")
    })?;
    let words = ["pdf".into(), first.to_string(), last.to_string(), chars.to_string()];
    let arguments = std::iter::once(ARGUMENT.into()).chain(words.map(OsString::from)).collect();
    let worker = Worker { program: program.to_owned(), arguments, limits: PDF_LIMITS };
    let cancelled = || cx.check_cancelled().is_err();
    let answer = worker.run(pdf, &cancelled).map_err(|error| failed(cx, &error))?;
    serde_json::from_slice(&answer).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("the helper's answer is not understood: {error}"))
    })
}

fn failed(cx: &Cx<'_>, error: &WorkerError) -> Error {
    if let Err(cancelled) = cx.check_cancelled() {
        return cancelled;
    }
    let kind = match error {
        WorkerError::TimedOut => ErrorKind::Timeout,
        WorkerError::OutOfMemory | WorkerError::TooMuchOutput => ErrorKind::Limit,
        WorkerError::NotStarted(_) | WorkerError::Lost(_) => ErrorKind::Io,
        _ => ErrorKind::Unsupported,
    };
    Error::new(kind, format!("the PDF could not be read: {error}"))
        .hint("It is read in a process of its own, with limits. Fewer pages may do.")
}
