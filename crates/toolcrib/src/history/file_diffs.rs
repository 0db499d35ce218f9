//! The files of a change with their hunks, for programs that show them.

use toolcrib_fs::{Content, FileChange};
use toolcrib_text::{LineHunk, TextProperties, line_hunks};

use super::{History, HistoryEntry};

/// Limits of the diffs of a change: files, lines of all hunks together, characters of a line.
const MAX_FILES: usize = 500;
const MAX_LINES: usize = 20_000;
const MAX_LINE_CHARS: usize = 2_000;

/// Larger contents are not compared while a person waits.
const MAX_BYTES: u64 = 8 << 20;

/// One file of a change, with its hunks.
#[derive(Debug, Clone)]
pub struct FileDiff {
    /// Path, as replies show it.
    pub path: String,
    /// `created`, `deleted`, `modified`, `mode` or `symlink`.
    pub kind: &'static str,
    /// The hunks, in the order of [`crate::UndoPart::Hunk`]. The texts are raw.
    pub hunks: Vec<LineHunk>,
    /// Whether hunks are left out, because there are too many lines or the file is too large.
    pub is_cut: bool,
    /// Whether the content is not text.
    pub is_binary: bool,
    /// Why there are no hunks.
    pub problem: Option<String>,
    /// Whether this file of the change has been undone.
    pub undone: bool,
    /// Numbers of the hunks that have been undone one by one.
    pub undone_hunks: Vec<usize>,
}

impl History {
    /// The files of a change with their hunks, and whether files are left out.
    pub(crate) fn file_diffs(&self, change: &HistoryEntry) -> (Vec<FileDiff>, bool) {
        let mut lines_left = MAX_LINES;
        let files = change.entry.files.iter().take(MAX_FILES);
        let diffs = files.map(|file| {
            let mut diff = self.file_diff_of(file, lines_left);
            diff.undone_hunks = change.undone_parts.hunks_of(&file.path());
            let all = 0..diff.hunks.len();
            let by_hunks = !diff.is_cut && !all.is_empty();
            diff.undone = change.undone_parts.includes(&file.path())
                || by_hunks && all.into_iter().all(|hunk| diff.undone_hunks.contains(&hunk));
            lines_left -= diff.hunks.iter().map(|hunk| hunk.lines.len()).sum::<usize>();
            diff
        });
        (diffs.collect(), change.entry.files.len() > MAX_FILES)
    }

    fn file_diff_of(&self, file: &FileChange, lines_left: usize) -> FileDiff {
        let FileChange { before, after, .. } = file;
        let kind = match (before, after) {
            (None, _) => "created",
            (_, None) => "deleted",
            (Some(before), Some(after)) if before.link || after.link => "symlink",
            (Some(before), Some(after)) if before.hash == after.hash => "mode",
            _ => "modified",
        };
        let path = self.paths.show(&self.paths.workspace.top(), &file.path());
        let mut diff = FileDiff {
            path,
            kind,
            hunks: Vec::new(),
            is_cut: false,
            is_binary: false,
            problem: None,
            undone: false,
            undone_hunks: Vec::new(),
        };
        if [before, after].into_iter().flatten().any(|version| version.size > MAX_BYTES) {
            diff.is_cut = true;
            return diff;
        }
        let (before, after) = match (self.version(*before), self.version(*after)) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(error), _) | (_, Err(error)) => {
                diff.problem = Some(error.message().to_owned());
                return diff;
            }
        };
        let is_binary = |content: &Content| TextProperties::of(content).looks_binary();
        diff.is_binary = [&before, &after].into_iter().flatten().any(is_binary);
        if !diff.is_binary {
            let hunks = line_hunks(before.as_deref(), after.as_deref(), MAX_LINE_CHARS);
            let total = hunks.len();
            let mut lines = 0;
            let fits = |hunk: &LineHunk| {
                lines += hunk.lines.len();
                lines <= lines_left
            };
            diff.hunks = hunks.into_iter().take_while(fits).collect();
            diff.is_cut = diff.hunks.len() < total;
        }
        diff
    }
}
