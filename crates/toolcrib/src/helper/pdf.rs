//! Text of a PDF, extracted in a helper process.

use std::time::Duration;

use toolcrib_exec::WorkerLimits;
use toolcrib_media::{PdfError, PdfText, read_pdf};

use super::{PDF, bad_answer, run_task};
use crate::cx::Cx;
use crate::error::Error;

/// Resources for reading a PDF. A malicious file costs a few seconds of one CPU and leaves the server intact.
const LIMITS: WorkerLimits = WorkerLimits {
    memory_bytes: 2 << 30,
    cpu_seconds: 10,
    wall: Duration::from_secs(20),
    output_bytes: 16 << 20,
};

/// Pages, and the limit of characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    first: u32,
    last: u32,
    chars: usize,
}

impl Task {
    pub(super) fn parse(words: &[&str]) -> Option<Task> {
        let [first, last, chars] = words else { return None };
        Some(Task {
            first: first.parse().ok()?,
            last: last.parse().ok()?,
            chars: chars.parse().ok()?,
        })
    }

    /// Runs in the helper process.
    pub(super) fn run(self, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
        let text = read_pdf(bytes, self.first..=self.last, self.chars);
        serde_json::to_vec(&text).map_err(|error| error.to_string())
    }
}

/// Extracts the text of some pages.
pub(crate) fn pdf_text(
    cx: &Cx<'_>,
    pdf: &[u8],
    (first, last): (u32, u32),
    chars: usize,
) -> Result<Result<PdfText, PdfError>, Error> {
    let words = vec![PDF.to_owned(), first.to_string(), last.to_string(), chars.to_string()];
    let answer = run_task(cx, "PDF", words, LIMITS, pdf).map_err(|error| {
        error.hint("It is read in a separate process with limits. Ask for fewer pages.")
    })?;
    serde_json::from_slice(&answer).map_err(|error| bad_answer(&error))
}
