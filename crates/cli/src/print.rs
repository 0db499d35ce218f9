//! What is shown to people.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

use anstyle::{AnsiColor, Style};
use toolcrib::{Error, Reply};

use crate::args::Common;

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const HUNK: Style = AnsiColor::Cyan.on_default();
const NAME: Style = Style::new().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Green.on_default().bold();

/// Whether a reply is printed for people.
pub(crate) fn for_people(common: &Common) -> bool {
    common.text || (!common.json && io::stdout().is_terminal())
}

/// A reply, its diff in colour.
pub(crate) fn reply(reply: &Reply) -> io::Result<()> {
    let mut text = plain(reply.output().trim_end());
    text.push('\n');
    text += &diff(reply.diff_text());
    anstream::stdout().write_all(text.as_bytes())
}

/// An error with its hint, on standard error.
pub(crate) fn error(error: &Error) -> io::Result<()> {
    let mut text = format!("{ERROR}error[{}]{ERROR:#}: ", error.kind().name());
    let hint = error.hint_text();
    let body = error.text();
    text += &plain(body.strip_suffix(hint).unwrap_or(&body).trim_end());
    text.push('\n');
    if !hint.is_empty() {
        let _ = writeln!(text, "{HINT}hint{HINT:#}: {}", plain(hint));
    }
    anstream::stderr().write_all(text.as_bytes())
}

/// What is wrong with the command line or its surroundings.
pub(crate) fn usage_error(message: &str) {
    let text = format!("{ERROR}error{ERROR:#}: {}\n", plain(message));
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// A diff in colour.
pub(crate) fn diff(diff: &str) -> String {
    let mut text = String::new();
    for line in diff.lines() {
        let style = match line.as_bytes().first() {
            _ if line.starts_with("--- ") || line.starts_with("+++ ") => NAME,
            Some(b'+') => ADDED,
            Some(b'-') => REMOVED,
            Some(b'@') => HUNK,
            _ => Style::new(),
        };
        let _ = writeln!(text, "{style}{}{style:#}", plain(line));
    }
    text
}

/// Text in which nothing acts on the terminal.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' && c != '\t' {
            let _ = write!(plain, "\\x{:02x}", u32::from(c));
        } else {
            plain.push(c);
        }
    }
    plain
}
