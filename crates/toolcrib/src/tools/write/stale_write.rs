//! Errors for overwriting content that the session has not seen. Each shows that content.

use toolcrib_text::{LineWindow, TextProperties, Window};

use crate::error::{Error, ErrorKind};
use crate::message_names::{EDIT, EXPECTED_HASH, READ};
use crate::seen_files::Seen;

/// Limits of a file that the error shows.
const MAX_LINES: u64 = 40;
const MAX_CHARS: usize = 4_000;

/// The error for a file that was never read.
pub(super) fn never_read(shown: &str, was: &[u8], now: &Seen) -> Error {
    let message = format!("{shown} exists, and this session has not read it with {READ}");
    refuse(ErrorKind::Conflict, message, was, now)
}

/// The error for a file that was read in part.
pub(super) fn partly_read(shown: &str, was: &[u8], seen: &Seen, now: &Seen) -> Error {
    let message = match seen.parts() {
        Some(parts) => format!("this session has read only a part of {shown}: {parts}"),
        None => format!("this session has not read the current content of {shown}"),
    };
    refuse(ErrorKind::Conflict, message, was, now)
}

/// The error for a file that changed since it was read.
pub(super) fn changed(
    shown: &str,
    was: &[u8],
    seen: &Seen,
    now: &Seen,
    by: Option<String>,
) -> Error {
    let where_it_changed = seen.changed_lines(now).map_or(String::new(), |at| format!(" at {at}"));
    let by = by.map_or(String::new(), |by| format!(", by {by}"));
    let message =
        format!("{shown} changed{where_it_changed} since this session last read or wrote it{by}");
    refuse(ErrorKind::Stale, message, was, now)
}

/// The error for a wrong hash.
pub(super) fn wrong_hash(shown: &str, was: &[u8], now: &Seen) -> Error {
    let message = format!("{shown} does not have the expected hash");
    refuse(ErrorKind::Stale, message, was, now)
}

fn refuse(kind: ErrorKind, message: String, was: &[u8], now: &Seen) -> Error {
    let hash = now.hash.short();
    let error = Error::new(kind, message);
    let error = match whole(was) {
        Some(content) => error.detail(format!("Current content:\n{content}")).hint(format!(
            "Nothing was written. To replace it, call again with {EXPECTED_HASH}: \"{hash}\"; to change a part of it, use {EDIT}."
        )),
        None => error.hint(format!(
            "Nothing was written. {READ} the whole file before you replace it, or change a part of it with {EDIT}."
        )),
    };
    error.with("hash", hash)
}

/// The content as lines. `None` if it is too long to be shown completely, or not text.
fn whole(text: &[u8]) -> Option<String> {
    let survey = TextProperties::of(text);
    if survey.looks_binary() {
        return None;
    }
    let mut window = LineWindow::new(Window {
        terminator: survey.terminator(),
        first: 1,
        limit: MAX_LINES,
        line_chars: 200,
        total_chars: MAX_CHARS,
    });
    window.feed(text);
    let lines = window.finish();
    let is_whole =
        lines.len() as u64 == survey.lines() && lines.iter().all(|line| line.left_out == 0);
    is_whole.then(|| lines.iter().map(|line| line.render()).collect())
}
