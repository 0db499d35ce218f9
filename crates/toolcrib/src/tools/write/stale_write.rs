//! Errors for overwriting content that the session has not seen. Each shows that content.

use toolcrib_text::{LineWindow, TextProperties, Window};

use crate::dialect_names::{EDIT, EXPECTED_HASH};
use crate::error::{Error, ErrorKind};
use crate::seen_files::Seen;

/// Lines of the file that the error shows.
const HEAD_LINES: u64 = 40;
const HEAD_CHARS: usize = 4_000;

/// The error for a file that was never read.
pub(super) fn never_read(shown: &str, was: &[u8], now: &Seen) -> Error {
    let message = format!("{shown} exists, and this session has not read it");
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
    let message = format!("{shown} changed since it was last read{where_it_changed}{by}");
    refuse(ErrorKind::Stale, message, was, now)
}

/// The error for a wrong hash.
pub(super) fn wrong_hash(shown: &str, was: &[u8], now: &Seen) -> Error {
    let message = format!("{shown} does not have the expected hash");
    refuse(ErrorKind::Stale, message, was, now)
}

fn refuse(kind: ErrorKind, message: String, was: &[u8], now: &Seen) -> Error {
    let hash = now.hash.short();
    Error::new(kind, message)
        .detail(format!("Current content:\n{}", head(was)))
        .hint(format!(
            "Nothing was written. To replace it anyway, call again with {EXPECTED_HASH}: \"{hash}\"; to change a part of it, use {EDIT}."
        ))
        .with("hash", hash)
}

fn head(text: &[u8]) -> String {
    let survey = TextProperties::of(text);
    if survey.looks_binary() {
        return format!("[not text: {} bytes]", text.len());
    }
    let mut window = LineWindow::new(Window {
        terminator: survey.terminator(),
        first: 1,
        limit: HEAD_LINES,
        line_chars: 200,
        total_chars: HEAD_CHARS,
    });
    window.feed(text);
    let lines = window.finish();
    let shown = lines.len() as u64;
    let mut head: String = lines.iter().map(|line| line.render()).collect();
    if shown < survey.lines() {
        head += &format!("[{} more lines]\n", survey.lines() - shown);
    }
    head
}
