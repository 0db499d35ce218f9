//! Errors for overwriting content that the session has not seen. Each shows that content.

use toolcrib_media::{Kind, kind_of};
use toolcrib_text::{Encoding, LineWindow, TextProperties, Window};

use crate::cx::Cx;
use crate::error::{Error, ErrorKind};
use crate::message_names::{EDIT, EXPECTED_HASH, READ};
use crate::seen_files::Seen;

/// Limits of a file that the error shows.
const MAX_LINES: u64 = 40;
const MAX_CHARS: usize = 4_000;

/// The error for a file that was never read.
pub(super) fn never_read(cx: &Cx<'_>, shown: &str, was: &[u8], now: &Seen) -> Error {
    let message = format!("{shown} exists, and this session has not read it with {READ}");
    refuse(cx, ErrorKind::Conflict, message, was, now)
}

/// The error for a file that was read in part.
pub(super) fn partly_read(cx: &Cx<'_>, shown: &str, was: &[u8], seen: &Seen, now: &Seen) -> Error {
    let message = match seen.parts() {
        Some(parts) => format!("this session has read only a part of {shown}: {parts}"),
        None => format!("this session has not read the current content of {shown}"),
    };
    refuse(cx, ErrorKind::Conflict, message, was, now)
}

/// The error for a file that changed since it was read.
pub(super) fn changed(
    cx: &Cx<'_>,
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
    refuse(cx, ErrorKind::Stale, message, was, now)
}

/// The error for a wrong hash.
pub(super) fn wrong_hash(cx: &Cx<'_>, shown: &str, was: &[u8], now: &Seen) -> Error {
    let message = format!("{shown} does not have the expected hash");
    refuse(cx, ErrorKind::Stale, message, was, now)
}

fn refuse(cx: &Cx<'_>, kind: ErrorKind, message: String, was: &[u8], now: &Seen) -> Error {
    let hash = now.hash.short();
    let error = Error::new(kind, message);
    let error = match (whole(was), why_not_readable(cx, was)) {
        (Some(content), _) => error.detail(format!("Current content:\n{content}")).hint(format!(
            "Nothing was written. To replace it, call again with {EXPECTED_HASH}: \"{hash}\"; to change a part of it, use {EDIT}."
        )),
        (None, Some(why)) => error.hint(format!(
            "Nothing was written. {why} To replace it, call again with {EXPECTED_HASH}: \"{hash}\"."
        )),
        (None, None) => error.hint(format!(
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

/// Why no calls of Read show the whole file. `None` if they do.
fn why_not_readable(cx: &Cx<'_>, was: &[u8]) -> Option<String> {
    let limits = cx.limits();
    if was.len() as u64 > limits.look_bytes {
        return Some(format!("It is too large: {READ} shows only parts of it."));
    }
    let encoding = Encoding::of(was);
    let is_document = matches!(kind_of(was), Some(Kind::Picture(_) | Kind::Pdf));
    if is_document || TextProperties::of(was).looks_binary() && !encoding.is_utf16() {
        return Some(format!("It is not text: {READ} does not show its bytes."));
    }
    let text = encoding.decode(was).unwrap_or(was.into());
    let mut window = LineWindow::new(Window {
        terminator: TextProperties::of(&text).terminator(),
        first: 1,
        limit: u64::MAX,
        line_chars: limits.line_chars,
        total_chars: usize::MAX,
    });
    window.feed(&text);
    let is_cut = window.finish().iter().any(|line| line.left_out > 0);
    is_cut.then(|| {
        format!("It has lines of more than {} characters, which {READ} cuts.", limits.line_chars)
    })
}
