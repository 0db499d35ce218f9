//! Read: a text file, by lines.

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_policy::Access;
use toolcrib_text::{Detector, Encoding, Endings, Line, LineWindow, Survey, Window};

use crate::cx::Cx;
use crate::error::{Error, ErrorKind};
use crate::file::OpenFile;
use crate::reply::Reply;
use crate::seen::{Seeing, Seen};
use crate::tool::{Category, Hints, Tool};
use crate::words::counted;

/// Reads a text file. Each line comes as its number, a tab, and its text.
///
/// Use offset and limit for a part of a long file; the reply names the next offset when there is
/// more. A first line in brackets tells what the text does not show: line endings, a byte order
/// mark, a missing newline at the end. Lines over 2,000 characters are cut, and say so.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    /// The file: relative to the workspace's directory, or absolute.
    file_path: String,
    /// The first line to read, from 1; below zero it counts from the end, so -20 begins at the 20th
    /// line before it. Default 1.
    offset: Option<i64>,
    /// How many lines at most. Default 2000.
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u64>,
}

const DEFAULT_LIMIT: u64 = 2_000;

/// What a reply needs besides its lines and its header: the line behind them.
const FOOTER_CHARS: usize = 200;

impl Tool for Read {
    const NAME: &'static str = "Read";
    const CATEGORY: Category = Category::File;
    const HINTS: Hints = Hints::READS;
    const ALIASES: &'static [(&'static str, &'static str)] = &[("path", "file_path")];

    fn access(&self) -> Vec<Access> {
        vec![Access::Read(self.file_path.clone().into())]
    }

    fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
        let file = cx.open(&self.file_path)?;
        let Look { survey, encoding, seen, total } = look(cx, &file)?;
        let header = header(&survey, encoding, total, cx.followed_link(&self.file_path)?);
        let first = self.first_line(&file, total)?;
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        let room = cx.limits().reply_chars.saturating_sub(header.chars().count() + FOOTER_CHARS);
        let window = Window {
            terminator: survey.terminator(),
            first,
            limit,
            line_chars: cx.limits().line_chars,
            total_chars: room,
        };
        let (lines, total) = read_window(cx, &file, encoding, window, total)?;
        if lines.is_empty() && first > 1 {
            return Err(no_such_line(&file, first, total));
        }
        if let (Total::Known(_), Some(seen)) = (total, &seen) {
            cx.session().saw(file.path().to_owned(), seen.clone());
        }
        let hash = seen.map(|seen| seen.hash.short());
        Ok(Page { file, header, total, first, limit, lines, hash }.reply())
    }
}

impl Read {
    fn first_line(&self, file: &OpenFile, total: Total) -> Result<u64, Error> {
        let offset = self.offset.unwrap_or(1);
        let shown = file.shown();
        match (offset, total) {
            (0, _) => Err(Error::invalid("`offset`: lines are counted from 1")
                .hint("Use 1 for the first line, -1 for the last.")),
            (1, _) => Ok(1),
            (1.., Total::Known(lines)) if offset.unsigned_abs() > lines => {
                Err(no_such_line(file, offset.unsigned_abs(), total))
            }
            (1.., _) => Ok(offset.unsigned_abs()),
            (_, Total::Known(lines)) => Ok(lines.saturating_sub(offset.unsigned_abs()) + 1),
            (_, Total::AtLeast(lines)) => Err(Error::new(
                ErrorKind::TooLarge,
                format!("{shown} has {} bytes, too many to count lines from its end", file.size()),
            )
            .hint(format!("Use an offset from the start; it has at least {lines} lines."))),
        }
    }
}

/// How many lines a file has, as far as it was counted.
#[derive(Clone, Copy)]
enum Total {
    Known(u64),
    AtLeast(u64),
}

/// What one look through a file tells of it.
struct Look {
    survey: Survey,
    encoding: Encoding,
    /// What it says, if it was looked through to its end.
    seen: Option<Seen>,
    total: Total,
}

/// Looks through the file: what kind of text it is, what it says, how many lines. Text that is not UTF-8
/// is looked through again, as the letters it stands for.
fn look(cx: &Cx<'_>, file: &OpenFile) -> Result<Look, Error> {
    let (mut raw, mut detector) = (Survey::default(), Detector::default());
    let mut seeing = Seeing::default();
    let most = cx.limits().count_bytes;
    let ended = file.chunks(cx, |chunk| {
        raw.feed(chunk);
        detector.feed(chunk);
        seeing.feed(chunk);
        // The first chunk tells, so that a sparse terabyte is refused as fast as a small file.
        if raw.looks_binary() && !detector.may_be_utf16() {
            return Err(binary(file));
        }
        Ok(raw.bytes < most)
    })?;
    raw.finish();
    let encoding = detector.finish(&raw);
    let survey = if encoding.is_utf8() { raw } else { survey_letters(cx, file, encoding, most)? };
    let lines = survey.lines();
    let total = if ended { Total::Known(lines) } else { Total::AtLeast(lines) };
    Ok(Look { survey, encoding, seen: ended.then(|| seeing.finish()), total })
}

fn survey_letters(
    cx: &Cx<'_>,
    file: &OpenFile,
    encoding: Encoding,
    most: u64,
) -> Result<Survey, Error> {
    let (mut survey, mut stream, mut read) = (Survey::default(), encoding.stream(), 0);
    file.chunks(cx, |chunk| {
        read += chunk.len() as u64;
        survey.feed(&stream.feed(chunk, false));
        Ok(read < most)
    })?;
    survey.feed(&stream.feed(b"", true));
    survey.finish();
    Ok(survey)
}

/// The lines of the window; and how many there are in all, if the file ended within it.
fn read_window(
    cx: &Cx<'_>,
    file: &OpenFile,
    encoding: Encoding,
    window: Window,
    total: Total,
) -> Result<(Vec<Line>, Total), Error> {
    let (mut lines, mut stream) = (LineWindow::new(window), encoding.stream());
    let ended = file.chunks(cx, |chunk| Ok(lines.feed(&stream.feed(chunk, false))))?;
    if ended {
        lines.feed(&stream.feed(b"", true));
    }
    let total = match (ended, lines.total_lines()) {
        (true, Some(lines)) => Total::Known(lines),
        _ => total,
    };
    Ok((lines.finish(), total))
}

fn no_such_line(file: &OpenFile, line: u64, total: Total) -> Error {
    let (Total::Known(lines) | Total::AtLeast(lines)) = total;
    let has = format!("{} has {}", file.shown(), counted(lines, "line"));
    let hint = match lines {
        0 => "It is empty.".to_owned(),
        _ => format!("Use an offset from 1 to {lines}, or -20 for the last 20 lines."),
    };
    Error::invalid(format!("{has}; there is no line {line}")).hint(hint).with("total_lines", lines)
}

fn binary(file: &OpenFile) -> Error {
    let message = format!("{} is not text ({} bytes)", file.shown(), file.size());
    Error::new(ErrorKind::Binary, message)
        .hint("Its bytes are not shown. Only text can be read here.")
        .with("size", file.size())
}

/// A part of a file, ready to be shown.
struct Page {
    file: OpenFile,
    header: String,
    total: Total,
    first: u64,
    limit: u64,
    lines: Vec<Line>,
    hash: Option<String>,
}

impl Page {
    fn reply(self) -> Reply {
        let read = self.lines.len() as u64;
        let next = self.first + read;
        let cut: u64 = self.lines.iter().map(|line| line.left_out).sum();
        let lines: String = self.lines.iter().map(Line::render).collect();
        let (footer, remaining) = match self.total {
            Total::Known(total) if next > total => (String::new(), 0),
            Total::Known(total) => {
                let span = format!("lines {}-{} of {total}", self.first, next - 1);
                (format!("[{span}; for more, offset: {next}]\n"), total + 1 - next)
            }
            Total::AtLeast(total) => {
                let span = format!("lines from {} of at least {total}", self.first);
                (format!("[{span}; for more, offset: {next}]\n"), (total + 1).saturating_sub(next))
            }
        };
        let mut reply = Reply::new(self.header + &lines + &footer)
            .with("file_path", self.file.shown())
            .with("offset", self.first)
            .with("limit", self.limit)
            .with("lines_read", read);
        reply = match self.total {
            Total::Known(total) => reply.with("total_lines", total),
            Total::AtLeast(total) => reply.with("total_lines_at_least", total),
        };
        reply = reply
            .with("remaining_lines", remaining)
            .with("truncated", !footer.is_empty() || cut > 0);
        match self.hash {
            Some(hash) => reply.with("hash", hash),
            None => reply,
        }
    }
}

/// What the lines do not show, as a line in brackets; empty, if there is nothing to say.
fn header(survey: &Survey, encoding: Encoding, total: Total, link: Option<String>) -> String {
    let mut notes: Vec<String> = link.into_iter().collect();
    if survey.bytes == 0 {
        notes.push("the file is empty".to_owned());
    }
    if !encoding.is_utf8() || encoding.has_bom() {
        let mark = if encoding.has_bom() { " with BOM" } else { "" };
        notes.push(format!("{}{mark}", encoding.name()));
    }
    if survey.invalid_utf8 > 0 {
        let bytes = counted(survey.invalid_utf8, "byte");
        notes.push(format!("not valid UTF-8: {bytes} shown as \\xNN"));
    }
    if survey.controls > 0 {
        let controls = counted(survey.controls, "control character");
        notes.push(format!("{controls} shown as \\xNN"));
    }
    match survey.endings() {
        Endings::CrLf => notes.push("CRLF line endings".to_owned()),
        Endings::Cr => notes.push("lines end in CR alone".to_owned()),
        Endings::Mixed => notes
            .push(format!("mixed line endings: {} of {} are CRLF", survey.crlf, survey.line_feeds)),
        Endings::Lf | Endings::None => {}
    }
    if survey.tab_indents > 0 {
        notes.push("indented with tabs".to_owned());
    }
    if matches!(total, Total::Known(_)) && !survey.ends_with_newline() {
        notes.push("no newline at end of file".to_owned());
    }
    if notes.is_empty() { String::new() } else { format!("[{}]\n", notes.join("; ")) }
}
