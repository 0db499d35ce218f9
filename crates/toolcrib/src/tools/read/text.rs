//! Reads text that is small enough to be examined as a whole first.

use toolcrib_text::{Detector, Encoding, Line, LineWindow, TextProperties, Window};

use super::binary::binary;
use super::line_page::{FOOTER_CHARS, Page, Total, in_brackets, no_such_line, notes};
use super::{Part, large_text};
use crate::changed_by::authors;
use crate::cx::Cx;
use crate::cx::OpenFile;
use crate::error::Error;
use crate::reply::Reply;
use crate::seen_files::{Seen, SeenBuilder};

/// Files up to this size are held in memory while they are examined. Most are.
const SMALL_BYTES: usize = 192 << 10;

pub(super) fn read(
    cx: &Cx<'_>,
    file: &OpenFile,
    part: Part,
    mut header: Vec<String>,
) -> Result<Reply, Error> {
    if file.size() > cx.limits().look_bytes {
        return large_text::read(cx, file, part, header);
    }
    let Examined { survey, encoding, seen, whole } = examine(cx, file)?;
    let total = survey.lines();
    header.extend(notes(&survey, encoding));
    if !survey.ends_with_newline() {
        header.push("no newline at end of file".to_owned());
    }
    let before = cx.session().seen(file.path());
    let other = before.as_ref().filter(|before| before.hash != seen.hash);
    header.extend(other.map(|before| changed(cx, file, before, &seen)));
    let first = match part.offset {
        0 | 1 => 1,
        offset @ 1.. if offset.unsigned_abs() > total => {
            return Err(no_such_line(file, offset.unsigned_abs(), total));
        }
        offset @ 1.. => offset.unsigned_abs(),
        offset => total.saturating_sub(offset.unsigned_abs()) + 1,
    };
    let room = cx.limits().reply_chars;
    let window = Window {
        terminator: survey.terminator(),
        first,
        limit: part.limit,
        line_chars: cx.limits().line_chars,
        total_chars: room.saturating_sub(in_brackets(&header).chars().count() + FOOTER_CHARS),
    };
    let lines = match whole {
        Some(whole) => window_of(&whole, encoding, window),
        None => read_window(cx, file, encoding, window)?,
    };
    let hash = Some(seen.hash.short());
    let whole_lines = lines.iter().filter(|line| line.left_out == 0);
    let seen = seen.with_lines(before, whole_lines.map(|line| line.number.unsigned_abs()), total);
    cx.session().remember_seen(file.path().to_owned(), seen);
    let (first, total) = (first.cast_signed(), Total::Known(total));
    Ok(Page { file, header, total, first, limit: part.limit, lines, hash }.reply())
}

/// The properties of a file.
struct Examined {
    survey: TextProperties,
    encoding: Encoding,
    seen: Seen,
    /// The content, if the file is small: it need not be read again.
    whole: Option<Vec<u8>>,
}

/// Examines a file: text properties, hash, number of lines. Text that is not UTF-8 is examined again after
/// decoding. An encoding that the session has used before is kept if it can decode the file.
fn examine(cx: &Cx<'_>, file: &OpenFile) -> Result<Examined, Error> {
    let (mut raw, mut detector) = (TextProperties::default(), Detector::default());
    let mut seeing = SeenBuilder::default();
    let (mut chunks, mut pieces, mut whole) = (file.chunks(cx), 0, None);
    while let Some(chunk) = chunks.next_chunk()? {
        pieces += 1;
        whole = (pieces == 1 && chunk.len() <= SMALL_BYTES).then(|| chunk.to_vec());
        raw.feed(chunk);
        detector.feed(chunk);
        seeing.feed(chunk);
        if raw.looks_binary() && !detector.may_be_utf16() {
            return Err(binary(cx, file));
        }
    }
    raw.finish();
    let found = detector.finish(&raw);
    let known = cx.session().encoding(file.path());
    let known = known.filter(|known| known.outlasts(found, &raw));
    let (encoding, survey) = match known.map(|known| survey_letters(cx, file, known)).transpose()? {
        Some((survey, 0)) => (known.unwrap_or(found), survey),
        _ if found.is_utf8() => (found, raw),
        _ => (found, survey_letters(cx, file, found)?.0),
    };
    cx.session().remember_encoding(file.path(), encoding);
    Ok(Examined { survey, encoding, seen: seeing.finish(), whole })
}

/// The properties of the decoded text, and the number of chunks that could not be decoded.
fn survey_letters(
    cx: &Cx<'_>,
    file: &OpenFile,
    encoding: Encoding,
) -> Result<(TextProperties, u64), Error> {
    let (mut survey, mut stream) = (TextProperties::default(), encoding.stream());
    let mut chunks = file.chunks(cx);
    while let Some(chunk) = chunks.next_chunk()? {
        survey.feed(&stream.feed(chunk, false));
    }
    survey.feed(&stream.feed(b"", true));
    survey.finish();
    Ok((survey, stream.errors))
}

fn read_window(
    cx: &Cx<'_>,
    file: &OpenFile,
    encoding: Encoding,
    window: Window,
) -> Result<Vec<Line>, Error> {
    let (mut lines, mut stream) = (LineWindow::new(window), encoding.stream());
    let mut chunks = file.chunks(cx);
    while let Some(chunk) = chunks.next_chunk()? {
        if !lines.feed(&stream.feed(chunk, false)) {
            return Ok(lines.finish());
        }
    }
    lines.feed(&stream.feed(b"", true));
    Ok(lines.finish())
}

/// A window of content in memory.
fn window_of(whole: &[u8], encoding: Encoding, window: Window) -> Vec<Line> {
    let (mut lines, mut stream) = (LineWindow::new(window), encoding.stream());
    if lines.feed(&stream.feed(whole, false)) {
        lines.feed(&stream.feed(b"", true));
    }
    lines.finish()
}

/// The note that the file has changed since the session last saw it. It is shown once.
fn changed(cx: &Cx<'_>, file: &OpenFile, before: &Seen, now: &Seen) -> String {
    let by = authors(cx.history(), cx.session(), file.path(), before.hash, now.hash);
    let by = by.map_or(String::new(), |by| format!(", by {by}"));
    let at = before.changed_lines(now).map_or(String::new(), |at| format!(": {at}"));
    format!("changed since it was last seen{by}{at}")
}
