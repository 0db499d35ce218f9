//! A page of lines as a reply.

use toolcrib_syntax::MAX_BYTES;
use toolcrib_text::{Encoding, Endings, Line, TextProperties};

use super::default_limit;
use crate::cx::OpenFile;
use crate::error::Error;
use crate::message_names::OUTLINE;
use crate::phrases::{counted, counted_with_verb, range_text};
use crate::reply::Reply;
use crate::source_syntax::{base_name, has_definitions};
use crate::tools::invisible_notes::InvisibleCharacters;

/// Characters reserved for the line after the page.
pub(super) const FOOTER_CHARS: usize = 200;

/// The number of lines, as far as they were counted.
#[derive(Clone, Copy)]
pub(super) enum Total {
    Known(u64),
    AtLeast(u64),
    /// Lines were counted from the end, and only the requested ones.
    Unknown,
}

pub(super) struct Page<'a> {
    pub(super) file: &'a OpenFile,
    /// Notes about properties that the lines do not show.
    pub(super) header: Vec<String>,
    pub(super) total: Total,
    /// Number of the first line. Negative if counted from the end.
    pub(super) first: i64,
    pub(super) limit: u64,
    pub(super) lines: Vec<Line>,
    /// Hash of the file, if all of it was read.
    pub(super) hash: Option<String>,
}

impl Page<'_> {
    pub(super) fn reply(self) -> Reply {
        let read = self.lines.len() as u64;
        let next = self.first.saturating_add_unsigned(read);
        let cut: u64 = self.lines.iter().map(|line| line.left_out).sum();
        let remaining = self.remaining(next);
        let (first, last) = (self.first, next - 1);
        let span = match self.total {
            Total::Unknown if first < last => format!("lines {first} to {last}"),
            _ => range_text("line", first, last),
        };
        let span = match self.total {
            Total::Known(total) => format!("{span} of {total}"),
            Total::AtLeast(total) => format!("{span} of at least {total}"),
            Total::Unknown => span,
        };
        let footer = match remaining {
            0 => String::new(),
            _ if self.offers_outline() => {
                format!(
                    "[{span}; for more, offset: {next}; {OUTLINE}: true lists its definitions]\n"
                )
            }
            _ => format!("[{span}; for more, offset: {next}]\n"),
        };
        let mut text = in_brackets(&self.header);
        let mut hidden = InvisibleCharacters::default();
        for line in &self.lines {
            line.render_to(&mut text);
            hidden.examine(&line.text, || format!("line {}", line.number));
        }
        text += &hidden.note();
        let mut reply = hidden
            .facts(Reply::new(text + &footer))
            .with("file_path", self.file.shown())
            .with("offset", self.first)
            .with("limit", self.limit)
            .with("lines_read", read);
        reply = match self.total {
            Total::Known(total) => reply.with("total_lines", total),
            Total::AtLeast(total) => reply.with("total_lines_at_least", total),
            Total::Unknown => reply,
        };
        reply = reply
            .with("remaining_lines", remaining)
            .with("truncated", !footer.is_empty() || cut > 0);
        match self.hash {
            Some(hash) => reply.with("hash", hash),
            None => reply,
        }
    }

    /// Whether the file has definitions and is longer than the page of a call without a limit.
    fn offers_outline(&self) -> bool {
        let name = base_name(self.file.shown());
        let can_be_parsed = self.file.size() <= MAX_BYTES as u64 && has_definitions(name);
        self.first == 1 && self.limit >= default_limit() && can_be_parsed
    }

    /// The minimum number of lines after the page.
    fn remaining(&self, next: i64) -> u64 {
        match self.total {
            Total::Known(total) => (total + 1).saturating_sub(next.unsigned_abs()),
            // Counting stopped before the end.
            Total::AtLeast(total) => (total + 1).saturating_sub(next.unsigned_abs()).max(1),
            Total::Unknown => next.min(0).unsigned_abs(),
        }
    }
}

/// Notes about properties that the lines do not show.
pub(super) fn notes(survey: &TextProperties, encoding: Encoding) -> Vec<String> {
    let mut notes = Vec::new();
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
        Endings::Cr => notes.push("CR line endings".to_owned()),
        Endings::Mixed => notes
            .push(format!("mixed line endings: {} of {} are CRLF", survey.crlf, survey.line_feeds)),
        Endings::Lf | Endings::None => {}
    }
    match (survey.tab_indents, survey.space_indents) {
        (0, _) => {}
        (_, 0) => notes.push("indented with tabs".to_owned()),
        (tabs, spaces) => {
            let tabs = counted_with_verb(tabs, "line", ("begins", "begin"));
            notes.push(format!("mixed indentation: {tabs} with a tab, {spaces} with spaces"));
        }
    }
    notes
}

/// The notes as a line in brackets. Empty if there are none.
pub(super) fn in_brackets(notes: &[String]) -> String {
    if notes.is_empty() { String::new() } else { format!("[{}]\n", notes.join("; ")) }
}

/// The error for an offset past the last line.
pub(super) fn no_such_line(file: &OpenFile, line: u64, lines: u64) -> Error {
    let has = format!("{} has {}", file.shown(), counted(lines, "line"));
    let hint = match lines {
        0 => "It is empty.".to_owned(),
        _ => format!("Use an offset from 1 to {lines}, or -20 for the last 20 lines."),
    };
    Error::invalid(format!("{has}; there is no line {line}")).hint(hint).with("total_lines", lines)
}
