//! Text that is too large to be read as a whole: its properties are those of its beginning, and lines are read from
//! the nearer end.

use toolcrib_text::{Detector, Encoding, LineCount, LineWindow, TextProperties, Window};

use super::Part;
use super::binary::binary;
use super::line_page::{FOOTER_CHARS, Page, Total, in_brackets, no_such_line, notes};
use crate::cx::Cx;
use crate::cx::OpenFile;
use crate::error::{Error, ErrorKind};
use crate::reply::Reply;

/// Bytes of the beginning that are examined.
const SAMPLE_BYTES: usize = 1 << 20;

/// Bytes read at a time backwards from the end.
const BACK_BYTES: u64 = 64 << 10;

/// Reads a part of a large text file, in constant memory.
pub(super) fn read(
    cx: &Cx<'_>,
    file: &OpenFile,
    part: Part,
    mut header: Vec<String>,
) -> Result<Reply, Error> {
    let sample = file.head(SAMPLE_BYTES)?;
    let (survey, encoding) = kind(&sample).ok_or_else(|| binary(cx, file))?;
    header.extend(notes(&survey, encoding));
    header.push(format!(
        "{} bytes; encoding and line endings are those of the beginning",
        file.size()
    ));
    let text = Large { cx, file, encoding, terminator: survey.terminator(), limit: part.limit };
    if part.offset < 0 {
        text.page_before_end(part.offset.unsigned_abs(), header)
    } else {
        text.page_from(part.offset.max(1).unsigned_abs(), header)
    }
}

/// The properties of a sample. `None` if it is not text.
fn kind(sample: &[u8]) -> Option<(TextProperties, Encoding)> {
    let (mut survey, mut detector) = (TextProperties::default(), Detector::default());
    survey.feed(sample);
    detector.feed(sample);
    if survey.looks_binary() && !detector.may_be_utf16() {
        return None;
    }
    let encoding = detector.finish(&survey);
    if !encoding.is_utf8() {
        survey = TextProperties::default();
        survey.feed(&encoding.stream().feed(sample, false));
    }
    // The sample may end within a character or between \r and \n; that end is not counted.
    Some((survey, encoding))
}

struct Large<'a> {
    cx: &'a Cx<'a>,
    file: &'a OpenFile,
    encoding: Encoding,
    terminator: u8,
    limit: u64,
}

impl Large<'_> {
    fn window(&self, first: u64, header: &[String]) -> LineWindow {
        let limits = self.cx.limits();
        let room = limits.reply_chars.saturating_sub(in_brackets(header).chars().count());
        LineWindow::new(Window {
            terminator: self.terminator,
            first,
            limit: self.limit,
            line_chars: limits.line_chars,
            total_chars: room.saturating_sub(FOOTER_CHARS),
        })
    }

    /// The page from a line on, with the number of lines. Lines are counted up to a limit, and at least to the end
    /// of the page.
    fn page_from(&self, first: u64, header: Vec<String>) -> Result<Reply, Error> {
        let (mut window, mut wants_more) = (self.window(first, &header), true);
        let mut stream = self.encoding.stream();
        let (mut count, mut read) = (LineCount::new(self.terminator), 0);
        let mut chunks = self.file.chunks(self.cx);
        let ended = loop {
            if !wants_more && read >= self.cx.limits().count_bytes {
                break false;
            }
            let Some(chunk) = chunks.next_chunk()? else { break true };
            read += chunk.len() as u64;
            let letters = stream.feed(chunk, false);
            count.feed(&letters);
            wants_more = wants_more && window.feed(&letters);
        };
        let lines = count.lines();
        let total = if ended { Total::Known(lines) } else { Total::AtLeast(lines) };
        let shown = window.finish();
        if shown.is_empty() {
            return Err(no_such_line(self.file, first, lines));
        }
        let (first, limit, file) = (first.cast_signed(), self.limit, self.file);
        Ok(Page { file, header, total, first, limit, lines: shown, hash: None }.reply())
    }

    /// The page that begins `back` lines before the end. Line numbers are negative, since lines are counted from
    /// the end.
    fn page_before_end(&self, back: u64, mut header: Vec<String>) -> Result<Reply, Error> {
        let (start, lines_there) = self.start_of_line(back)?;
        header.push("lines are counted from the end".to_owned());
        let mut window = self.window(1, &header);
        let mut stream = self.encoding.stream();
        let mut chunks = self.file.chunks_from(self.cx, start);
        while let Some(chunk) = chunks.next_chunk()? {
            if !window.feed(&stream.feed(chunk, false)) {
                break;
            }
        }
        let first = -lines_there.cast_signed();
        let mut lines = window.finish();
        lines.iter_mut().for_each(|line| line.number += first - 1);
        let (limit, file) = (self.limit, self.file);
        Ok(Page { file, header, total: Total::Unknown, first, limit, lines, hash: None }.reply())
    }

    /// The position of the line `back` lines before the end, or of the first line, and the number of lines from
    /// there on.
    fn start_of_line(&self, back: u64) -> Result<(u64, u64), Error> {
        let unit = self.encoding.unit_bytes();
        let size = self.file.size() / unit * unit;
        // The newline at the end of the file does not end an earlier line.
        let mut end = size;
        if self.ends_a_line(end)? {
            end -= unit;
        }
        let (mut found, least) = (0, size.saturating_sub(self.cx.limits().count_bytes));
        while end > 0 {
            self.cx.check_cancelled()?;
            if end < least {
                return Err(too_far(self.file, found));
            }
            let start = end.saturating_sub(BACK_BYTES);
            let part = self.file.part(start, usize::try_from(end - start).unwrap_or(0))?;
            for at in self.encoding.line_ends_backwards(&part, self.terminator) {
                found += 1;
                if found == back {
                    return Ok((start + at as u64 + unit, back));
                }
            }
            end = start;
        }
        Ok((0, found + 1))
    }

    fn ends_a_line(&self, end: u64) -> Result<bool, Error> {
        let unit = self.encoding.unit_bytes();
        let Some(start) = end.checked_sub(unit) else { return Ok(false) };
        let last = self.file.part(start, usize::try_from(unit).unwrap_or(1))?;
        Ok(self.encoding.line_ends_backwards(&last, self.terminator).next().is_some())
    }
}

fn too_far(file: &OpenFile, lines: u64) -> Error {
    let message = format!(
        "{} has very long lines: only the last {lines} can be counted from the end",
        file.shown()
    );
    Error::new(ErrorKind::TooLarge, message)
        .hint(format!("Use an offset from -{} to -1.", lines.max(1)))
}
