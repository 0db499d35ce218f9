//! Output for people.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use toolcrib::{
    Error, Recovered, RecoveryOutcome, Reply, visible_content, visible_lines, visible_name,
};

use crate::args::Common;

pub(crate) const ADDED: Style = AnsiColor::Green.on_default();
pub(crate) const REMOVED: Style = AnsiColor::Red.on_default();
const HUNK: Style = AnsiColor::Cyan.on_default();
pub(crate) const NAME: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Green.on_default().bold();

/// Whether a command prints text. Every command does unless `--json` is given; only `call` differs.
pub(crate) fn for_people(common: &Common) -> bool {
    !common.json
}

/// Whether `call` prints text: programs that run it in a pipe want the whole reply as JSON.
pub(crate) fn call_for_people(common: &Common) -> bool {
    common.text || (!common.json && io::stdout().is_terminal())
}

/// The result of printing to stdout. A reader that has seen enough is no error: `toolcrib policy list | head` ends quietly.
pub(crate) fn printed(written: io::Result<()>) -> Result<(), String> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot print: {error}"))
        }
        _ => Ok(()),
    }
}

/// Prints a line to stdout.
pub(crate) fn line(line: &impl std::fmt::Display) -> Result<(), String> {
    printed(writeln!(io::stdout(), "{line}"))
}

/// Prints a reply, with its diff in colour.
pub(crate) fn reply(reply: &Reply) -> io::Result<()> {
    let mut text = visible_content(reply.output().trim_end());
    text.push('\n');
    text += &diff(reply.diff_text());
    anstream::stdout().write_all(text.as_bytes())
}

/// Prints a reply that the user is about to decide on. Every invisible character is escaped.
pub(crate) fn preview(reply: &Reply) -> io::Result<()> {
    let output = reply.output().trim_end();
    let mut text = plain(output.strip_prefix("Dry run, nothing written. ").unwrap_or(output));
    text.push('\n');
    text += &DiffColours::default().paint(reply.diff_text());
    anstream::stdout().write_all(text.as_bytes())
}

/// Prints an error with its hint to stderr.
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

/// Prints an error of usage or environment to stderr.
pub(crate) fn usage_error(message: &str) {
    let text = format!("{ERROR}error{ERROR:#}: {}\n", plain(message));
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Prints the result of a command to stdout.
pub(crate) fn answer(message: &str) {
    let _ = anstream::stdout().write_all(format!("{}\n", plain(message)).as_bytes());
}

/// Prints a text for each item to stdout, or one that says that there is none.
#[cfg(any(feature = "backup", feature = "postgres"))]
pub(crate) fn lines<T>(items: &[T], text: impl Fn(&T) -> String, none: &str) {
    let texts: Vec<String> = items.iter().map(text).collect();
    answer(&if texts.is_empty() { none.to_owned() } else { texts.join("\n") });
}

/// Prints an object with one array to stdout.
#[cfg(any(feature = "backup", feature = "postgres"))]
pub(crate) fn json_list<T>(name: &str, items: &[T], json: impl Fn(&T) -> Value) {
    let items: Vec<Value> = items.iter().map(json).collect();
    answer(&json!({ name: items }).to_string());
}

/// Prints a note to stderr.
pub(crate) fn note(message: &str) {
    let _ = anstream::stderr().write_all(format!("{}\n", plain(message)).as_bytes());
}

/// Prints a warning to stderr.
pub(crate) fn warning(message: &str) {
    let text = format!("{WARNING}warning{WARNING:#}: {}\n", plain(message));
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Prints one line of `doctor`.
pub(crate) fn finding(what: &str, found: &Result<String, String>) -> io::Result<()> {
    let text = match found {
        Ok(is) => format!("{NAME}{what:<14}{NAME:#}{}\n", plain(is)),
        Err(problem) => format!("{NAME}{what:<14}{NAME:#}{ERROR}{}{ERROR:#}\n", plain(problem)),
    };
    anstream::stdout().write_all(text.as_bytes())
}

/// Reports changes that the end of a process had interrupted.
pub(crate) fn recovered(recovered: &[Recovered]) {
    for change in recovered {
        let did = match &change.outcome {
            RecoveryOutcome::Finished => "was finished".to_owned(),
            RecoveryOutcome::Reverted => "was reverted".to_owned(),
            RecoveryOutcome::Failed(error) => format!("could not be finished or reverted: {error}"),
        };
        let mut text = format!(
            "{WARNING}note{WARNING:#}: an interrupted change by {} {}\n",
            plain(&change.about.tool),
            plain(&did)
        );
        for path in &change.left_alone {
            let path = visible_name(path.as_os_str().as_encoded_bytes());
            let _ = writeln!(text, "  {path} was changed since and was not touched");
        }
        let _ = anstream::stderr().write_all(text.as_bytes());
    }
}

/// A diff in colour.
pub(crate) fn diff(diff: &str) -> String {
    DiffColours::default().paint_with(diff, visible_content)
}

/// Colours a diff that comes in parts.
#[derive(Default)]
pub(crate) struct DiffColours {
    /// Remaining lines of the current hunk. Outside a hunk, lines are headers.
    old: u64,
    new: u64,
}

impl DiffColours {
    /// Colours the next part of a diff that the user is about to decide on. Every invisible character is escaped.
    pub(crate) fn paint(&mut self, part: &str) -> String {
        self.paint_with(part, plain)
    }

    fn paint_with(&mut self, part: &str, shown: fn(&str) -> String) -> String {
        let mut text = String::new();
        for line in part.lines() {
            let style = self.style(line);
            let _ = writeln!(text, "{style}{}{style:#}", shown(line));
        }
        text
    }

    fn style(&mut self, line: &str) -> Style {
        match line.as_bytes().first() {
            Some(b'+') if self.new > 0 => {
                self.new -= 1;
                ADDED
            }
            Some(b'-') if self.old > 0 => {
                self.old -= 1;
                REMOVED
            }
            Some(b' ') if self.old + self.new > 0 => {
                (self.old, self.new) = (self.old.saturating_sub(1), self.new.saturating_sub(1));
                Style::new()
            }
            Some(b'@') => {
                (self.old, self.new) = hunk_lengths(line);
                HUNK
            }
            Some(b'+' | b'-') => NAME,
            _ => Style::new(),
        }
    }
}

/// The numbers of lines in `@@ -1,3 +1,4 @@`.
fn hunk_lengths(header: &str) -> (u64, u64) {
    let length = |range: &str| match range[1..].split_once(',') {
        Some((_, length)) => length.parse().unwrap_or(0),
        None => 1,
    };
    let mut words = header.split(' ').skip(1);
    match (words.next(), words.next()) {
        (Some(old), Some(new)) if old.len() > 1 && new.len() > 1 => (length(old), length(new)),
        _ => (0, 0),
    }
}

/// Escapes control characters and invisible characters, line by line.
pub(crate) fn plain(text: &str) -> String {
    visible_lines(text)
}

/// The same in one line.
#[cfg(feature = "postgres")]
pub(crate) fn one_line(text: &str) -> String {
    plain(text).replace('\n', "\\n")
}

/// Shows a text in `less`. Returns whether that was possible.
pub(crate) fn through_pager(text: &str) -> bool {
    let pager = std::process::Command::new("less")
        .args(["-R", "-F", "-X"])
        .stdin(std::process::Stdio::piped())
        .spawn();
    let Ok(mut pager) = pager else { return false };
    let plain;
    let text = match anstream::AutoStream::choice(&io::stdout()) {
        anstream::ColorChoice::Never => {
            plain = anstream::adapter::strip_str(text).to_string();
            &plain
        }
        _ => text,
    };
    if let Some(mut input) = pager.stdin.take() {
        // The user may quit before the end.
        let _ = input.write_all(text.as_bytes());
    }
    pager.wait().is_ok()
}
