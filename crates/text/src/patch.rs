//! Parses patches as models and programs write them, and applies their hunks to files.
//!
//! Two formats with one data model: unified diffs, plain or git's, and the `*** Begin Patch` format.
//! Insignificant deviations are accepted: fences and prose around the patch, a heredoc, CRLF, blank context
//! lines without their space, wrong or missing counts. Input that may hide a change is rejected: a line
//! inside a hunk that has no sign, a patch that seems cut off.
//!
//! Line numbers are hints. A hunk is applied where its lines are. If that position is not unique, it is not
//! applied.

mod apply;
mod envelope;
mod file_lines;
mod hunk;
mod mismatch;
mod names;
mod position;
mod unfenced_lines;
mod unified;

pub use self::apply::{Applied, HunkFate};
pub use self::hunk::{Hunk, HunkLine, Sign};
pub use self::mismatch::{Divergence, Misfit, Why};

use self::unfenced_lines::UnfencedLines;

/// Limit of lines of a patch. More than any reviewed patch has, and a tenth of a gigabyte if each line is
/// empty.
const MAX_LINES: usize = 5_000_000;

/// A patch: the changes of some files, in its own order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch<'a> {
    /// The files that it names, at least one. A file may occur more than once.
    pub files: Vec<FilePatch<'a>>,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch<'a> {
    /// The line of the patch, from 1, at which it begins.
    pub line: usize,
    /// The kind of change.
    pub action: FileAction,
    /// The name of the file, as bytes, without `a/` or `b/`. After a move or a copy, the new name.
    pub path: Vec<u8>,
    /// For a move or a copy, the name of the source file.
    pub from: Option<Vec<u8>>,
    /// The executable bit, if the patch sets it.
    pub executable: Option<bool>,
    /// The changed lines.
    pub hunks: Vec<Hunk<'a>>,
}

/// The kind of change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    /// The file is created.
    Add,
    /// The file is changed in place.
    Update,
    /// The file is deleted. If there are hunks, they contain its whole content.
    Delete,
    /// The file is renamed.
    Move,
    /// The file is copied.
    Copy,
}

/// Why a patch cannot be parsed or is not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchError {
    /// The kind of error.
    pub kind: PatchErrorKind,
    /// The line of the patch, from 1. 0 if no single line is wrong.
    pub line: usize,
    /// The error message, to follow "the patch …" or "line N of the patch …".
    pub what: String,
    /// A hint for the caller.
    pub hint: &'static str,
}

/// The kinds of [`PatchError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchErrorKind {
    /// It cannot be parsed.
    Invalid,
    /// It is valid, but not supported: binary files, symlinks, other kinds of diff.
    Unsupported,
    /// It is too long.
    TooLarge,
}

impl<'a> Patch<'a> {
    /// Parses a patch of either format, in linear time.
    pub fn parse(text: &'a str) -> Result<Patch<'a>, PatchError> {
        if memchr::memchr_iter(b'\n', text.as_bytes()).count() >= MAX_LINES {
            let what = format!("has more than {MAX_LINES} lines");
            let hint = "Apply it in parts.";
            return Err(PatchError { kind: PatchErrorKind::TooLarge, line: 0, what, hint });
        }
        let source = UnfencedLines::new(text);
        let files =
            if source.is_envelope() { envelope::parse(source)? } else { unified::parse(source)? };
        if files.is_empty() {
            let hint = "Give a unified diff (---, +++, @@), or *** Begin Patch … *** End Patch.";
            return Err(PatchError::invalid(0, "names no file to change").hint(hint));
        }
        Ok(Patch { files })
    }
}

impl FilePatch<'_> {
    /// The content of a new file.
    pub fn added_text(&self) -> String {
        let lines: Vec<&HunkLine<'_>> = self.hunks.iter().flat_map(|hunk| &hunk.lines).collect();
        let mut text = String::with_capacity(lines.iter().map(|line| line.text.len() + 1).sum());
        for line in lines.into_iter().filter(|line| line.sign == Sign::Add) {
            text.push_str(line.text);
            text.push('\n');
        }
        if self.hunks.last().is_some_and(|hunk| hunk.new_unended) {
            text.pop();
        }
        text
    }
}

impl PatchError {
    fn invalid(line: usize, what: impl Into<String>) -> PatchError {
        PatchError { kind: PatchErrorKind::Invalid, line, what: what.into(), hint: "" }
    }

    fn unsupported(line: usize, what: impl Into<String>) -> PatchError {
        PatchError { kind: PatchErrorKind::Unsupported, ..PatchError::invalid(line, what) }
    }

    fn hint(mut self, hint: &'static str) -> PatchError {
        self.hint = hint;
        self
    }
}

#[cfg(test)]
mod tests;
