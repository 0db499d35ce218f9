//! Read: a text file, by lines.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_policy::Access;
use toolcrib_text::{Endings, Line, LineWindow, Survey, Window};

use crate::cx::Cx;
use crate::error::{Error, ErrorKind};
use crate::file::OpenFile;
use crate::reply::Reply;
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

/// Six columns of number, a tab, a newline.
const LINE_OVERHEAD: usize = 8;

/// What a reply needs besides the lines: the line in brackets at either end.
const FRAME_CHARS: usize = 500;

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
        let (survey, total) = survey(cx, &file)?;
        let first = self.first_line(&file, total)?;
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        let lines = window(cx, &file, survey.terminator(), first, limit)?;
        let link = cx.followed_link(&self.file_path)?;
        Ok(Page { file, survey, total, first, limit, lines, link }.reply())
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
                Err(Error::invalid(format!("{shown} has {lines} lines; there is no line {offset}"))
                    .hint(format!("Use an offset from 1 to {lines}, or -20 for the last 20 lines."))
                    .with("total_lines", lines))
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

/// Looks through the file once: what kind of text it is, and how many lines.
fn survey(cx: &Cx<'_>, file: &OpenFile) -> Result<(Survey, Total), Error> {
    let mut survey = Survey::default();
    let most = cx.limits().count_bytes;
    file.chunks(cx, |chunk| {
        survey.feed(chunk);
        // The first chunk tells, so that a sparse terabyte is refused as fast as a small file.
        if survey.looks_binary() {
            return Err(binary(file));
        }
        Ok(survey.bytes < most)
    })?;
    let whole = survey.bytes >= file.size();
    survey.finish();
    if survey.looks_binary() {
        return Err(binary(file));
    }
    let lines = survey.lines();
    Ok((survey, if whole { Total::Known(lines) } else { Total::AtLeast(lines) }))
}

fn binary(file: &OpenFile) -> Error {
    let message = format!("{} is not text ({} bytes)", file.shown(), file.size());
    Error::new(ErrorKind::Binary, message)
        .hint("Its bytes are not shown. Only text can be read here.")
        .with("size", file.size())
}

fn window(
    cx: &Cx<'_>,
    file: &OpenFile,
    terminator: u8,
    first: u64,
    limit: u64,
) -> Result<Vec<Line>, Error> {
    let limits = cx.limits();
    let mut window = LineWindow::new(Window {
        terminator,
        first,
        limit,
        line_chars: limits.line_chars,
        total_chars: limits.reply_chars.saturating_sub(FRAME_CHARS),
        line_overhead: LINE_OVERHEAD,
    });
    file.chunks(cx, |chunk| Ok(window.feed(chunk)))?;
    Ok(window.finish())
}

/// A part of a file, ready to be shown.
struct Page {
    file: OpenFile,
    survey: Survey,
    total: Total,
    first: u64,
    limit: u64,
    lines: Vec<Line>,
    link: Option<String>,
}

impl Page {
    fn reply(self) -> Reply {
        let mut text = String::new();
        let header = self.header();
        if !header.is_empty() {
            let _ = writeln!(text, "[{}]", header.join("; "));
        }
        for Line { number, text: line, left_out, .. } in &self.lines {
            let _ = write!(text, "{number:>6}\t{line}");
            if *left_out > 0 {
                let _ = write!(text, "…[+{left_out} characters]");
            }
            text.push('\n');
        }
        let read = self.lines.len() as u64;
        let next = self.first + read;
        let reply = |text: String| {
            Reply::new(text)
                .with("file_path", self.file.shown())
                .with("offset", self.first)
                .with("limit", self.limit)
                .with("lines_read", read)
        };
        match self.total {
            Total::Known(total) => {
                let remaining = (total + 1).saturating_sub(next);
                if remaining > 0 {
                    let last = next - 1;
                    let _ = writeln!(
                        text,
                        "[lines {}-{last} of {total}; for more, offset: {next}]",
                        self.first
                    );
                }
                reply(text)
                    .with("total_lines", total)
                    .with("remaining_lines", remaining)
                    .with("truncated", remaining > 0)
            }
            Total::AtLeast(total) => {
                let _ = writeln!(
                    text,
                    "[lines from {} of at least {total}; for more, offset: {next}]",
                    self.first
                );
                reply(text).with("total_lines_at_least", total).with("truncated", true)
            }
        }
    }

    /// What the lines do not show.
    fn header(&self) -> Vec<String> {
        let survey = &self.survey;
        let mut notes: Vec<String> = self.link.clone().into_iter().collect();
        if survey.bytes == 0 {
            notes.push("the file is empty".to_owned());
        }
        if survey.utf8_bom {
            notes.push("UTF-8 with BOM".to_owned());
        }
        if survey.invalid_utf8 > 0 {
            let bytes = counted(survey.invalid_utf8, "byte");
            notes.push(format!("not valid UTF-8: {bytes} shown as \\xNN"));
        }
        if survey.nuls > 0 {
            notes.push(format!("{} shown as \\x00", counted(survey.nuls, "NUL byte")));
        }
        let plain = survey.invalid_utf8 + survey.nuls == 0;
        if plain && self.lines.iter().any(|line| line.escaped) {
            notes.push("control characters shown as \\xNN".to_owned());
        }
        match survey.endings() {
            Endings::CrLf => notes.push("CRLF line endings".to_owned()),
            Endings::Cr => notes.push("lines end in CR alone".to_owned()),
            Endings::Mixed => notes.push(format!(
                "mixed line endings: {} of {} are CRLF",
                survey.crlf, survey.line_feeds
            )),
            Endings::Lf | Endings::None => {}
        }
        if survey.tab_indents > 0 {
            notes.push("indented with tabs".to_owned());
        }
        if matches!(self.total, Total::Known(_)) && !survey.ends_with_newline() {
            notes.push("no newline at end of file".to_owned());
        }
        notes
    }
}
