//! Patches as models and programs write them, and where their hunks go in a file.
//!
//! Two formats, one model: unified diffs, plain or git's, and the `*** Begin Patch` form. What says
//! nothing is understood: fences and prose around it, a heredoc, CRLF, blank context lines without
//! their space, counts that are wrong or missing. What may hide a change is refused: a line inside a
//! hunk that belongs to none, a patch that seems cut off.
//!
//! Line numbers are hints. A hunk goes where its lines are, and if that is not one place, nowhere.

mod apply;
mod envelope;
mod file_lines;
mod hunk;
mod mismatch;
mod names;
mod position;
mod source;
mod unified;

pub use self::apply::{Applied, HunkFate};
pub use self::hunk::{Hunk, HunkLine, Sign};
pub use self::mismatch::{Divergence, Misfit, Why};

use self::source::Source;

/// Lines of a patch that are taken: more than any that somebody has read, and a tenth of a gigabyte
/// when each is empty.
const MAX_LINES: usize = 5_000_000;

/// A patch: what is to become of some files, in its own order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch<'a> {
    /// Each file that it names, at least one. One file may be there more than once.
    pub files: Vec<FilePatch<'a>>,
}

/// What is to become of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch<'a> {
    /// The line of the patch, from 1, at which it begins.
    pub line: usize,
    /// What is to be done.
    pub action: FileAction,
    /// The name of the file, without `a/` or `b/`: any bytes. After a move or a copy, the new one.
    pub path: Vec<u8>,
    /// For a move or a copy, the name of the file that it comes from.
    pub from: Option<Vec<u8>>,
    /// Whether it is to be a program, if the patch says so.
    pub executable: Option<bool>,
    /// What changes in it.
    pub hunks: Vec<Hunk<'a>>,
}

/// What is to be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    /// It is made.
    Add,
    /// It stays where it is.
    Update,
    /// It goes. With hunks, these have all that it says.
    Delete,
    /// It gets another name.
    Move,
    /// Another file is made of it.
    Copy,
}

/// Why a text is no patch that can be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchError {
    /// Which kind of reason it is.
    pub kind: PatchErrorKind,
    /// The line of the patch, from 1; 0 where no line is to blame.
    pub line: usize,
    /// What is wrong, in words that go on from "the patch …" or "line N of the patch …".
    pub what: String,
    /// What to do about it.
    pub hint: &'static str,
}

/// The kinds of [`PatchError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchErrorKind {
    /// It cannot be read.
    Invalid,
    /// It can be read, and asks for what is not done: binary files, links, other kinds of diff.
    Unsupported,
    /// It is too long.
    TooLarge,
}

impl<'a> Patch<'a> {
    /// Reads a patch of either format. Takes time in proportion to its length, whatever it says.
    pub fn parse(text: &'a str) -> Result<Patch<'a>, PatchError> {
        if memchr::memchr_iter(b'\n', text.as_bytes()).count() >= MAX_LINES {
            let what = format!("has more than {MAX_LINES} lines");
            let hint = "Apply it in parts.";
            return Err(PatchError { kind: PatchErrorKind::TooLarge, line: 0, what, hint });
        }
        let source = Source::new(text);
        let files = match source.is_envelope() {
            true => envelope::parse(source)?,
            false => unified::parse(source)?,
        };
        if files.is_empty() {
            let hint = "Give a unified diff (---, +++, @@), or *** Begin Patch … *** End Patch.";
            return Err(PatchError::invalid(0, "names no file that is to change").hint(hint));
        }
        Ok(Patch { files })
    }
}

impl FilePatch<'_> {
    /// What a new file says.
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
