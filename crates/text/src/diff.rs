//! Unified diffs between two versions of a file.

mod indent;
mod line_hunks;
mod myers;
#[cfg(test)]
mod oracle;
mod shortened;
mod slide;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp};

use self::indent::Indents;
pub use self::line_hunks::{LineHunk, NumberedLine, line_hunks, without_hunk};
use self::myers::Changes;
pub use self::shortened::{ShortenedDiff, shortened_diff};

use crate::encoding::Encoding;
use crate::endings::Endings;
use crate::truncate::{truncate_around, truncate_line};
use crate::visible::visible;

/// A unified diff and its line counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// The diff with its `---` and `+++` lines. Empty if nothing changed.
    pub text: String,
    /// Number of added lines.
    pub added: usize,
    /// Number of removed lines.
    pub removed: usize,
}

/// Number of unchanged lines around each change.
const CONTEXT: usize = 3;

/// Time limit for the search for the smallest difference of line lists. After that, a larger one that is
/// still correct is used.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

/// The unified diff from `old` to `new`, with the hunks that git would produce, for reading. It accepts any
/// encoding. Bytes that are not text are made visible, and lines are cut at `line_chars` characters. `name`
/// is shown for both sides; a missing side is `/dev/null`. `known` is the encoding of the file, if it was used
/// before.
pub fn unified_diff(
    name: &str,
    old: Option<&[u8]>,
    new: Option<&[u8]>,
    line_chars: usize,
    known: Option<Encoding>,
) -> Diff {
    renamed_diff((name, old), (name, new), line_chars, known)
}

/// Like [`unified_diff`], for a file whose name changed as well.
pub fn renamed_diff(
    (old_name, old): (&str, Option<&[u8]>),
    (new_name, new): (&str, Option<&[u8]>),
    line_chars: usize,
    known: Option<Encoding>,
) -> Diff {
    // As git does it: `patch -p1` then finds an absolute path from the root.
    let side = |letter: &str, name: &str| format!("{letter}/{}", name.trim_start_matches('/'));
    let from = old.map_or("/dev/null".into(), |_| side("a", old_name));
    let to = new.map_or("/dev/null".into(), |_| side("b", new_name));
    let encoding = old.or(new).map_or(Encoding::UTF_8, |bytes| Encoding::of_known(bytes, known));
    let new = decoded(new.unwrap_or_default(), encoding_after(encoding, new.unwrap_or_default()));
    let old = decoded(old.unwrap_or_default(), encoding);
    let sides = Sides::new(&old, &new, line_chars);
    let mut diff = Diff { text: String::new(), added: 0, removed: 0 };
    for hunk in hunks(&sides.replaced()) {
        if diff.text.is_empty() {
            let _ = write!(diff.text, "--- {from}\n+++ {to}\n");
        }
        sides.write_hunk(&mut diff, hunk);
    }
    diff
}

fn decoded(bytes: &[u8], encoding: Encoding) -> Cow<'_, [u8]> {
    encoding.decode(bytes).unwrap_or(Cow::Borrowed(bytes))
}

/// The encoding of a text that had another one before. Both sides are the same file, so the new side has the
/// encoding of the old one, unless it clearly changed.
fn encoding_after(before: Encoding, new: &[u8]) -> Encoding {
    let now = Encoding::of(new);
    let is_plain = || std::str::from_utf8(new).is_ok() && memchr::memchr(0, new).is_none();
    if now.has_bom() != before.has_bom() || now.is_utf8() && is_plain() { now } else { before }
}

/// The ranges of `new` lines, from 1, inclusive, that differ from `old`. Each line is given by a number that
/// represents its content. For lines that were only removed, the range is the line that follows.
pub fn changed_lines(old: &[u64], new: &[u64]) -> Vec<(u64, u64)> {
    let deadline = Some(Instant::now() + DIFF_TIMEOUT);
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline);
    let changed = ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    changed
        .map(|op| op.new_range())
        .map(|range| (range.start as u64 + 1, (range.end as u64).max(range.start as u64 + 1)))
        .collect()
}

/// Old lines, and the new lines that replace them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReplacedLines {
    old: Range<usize>,
    new: Range<usize>,
}

/// Groups changes whose context lines touch into one hunk.
fn hunks(changes: &[ReplacedLines]) -> impl Iterator<Item = &[ReplacedLines]> {
    changes.chunk_by(|one, next| next.old.start - one.old.end <= 2 * CONTEXT)
}

/// The lines of both sides. For a large text, most of the common lines at both ends are omitted.
struct Sides<'a> {
    old: Vec<&'a [u8]>,
    new: Vec<&'a [u8]>,
    /// Number of lines that are omitted at the beginning.
    skipped_lines: usize,
    /// Number of bytes that are omitted at the end.
    left_out_behind: usize,
    /// Number of lines at the beginning and at the end that no change may move to. Other lines are omitted
    /// beyond them, so they are needed as context.
    fixed: (usize, usize),
    terminator: u8,
    /// Whether a `\r` at a line end is hidden, because every line has one.
    hide_cr: bool,
    line_chars: usize,
}

impl<'a> Sides<'a> {
    fn new(old: &'a [u8], new: &'a [u8], line_chars: usize) -> Self {
        let (old, new) = without_common_bom(old, new);
        let endings = [Endings::of(old), Endings::of(new)];
        let ended_by_cr = |endings| matches!(endings, Endings::Cr | Endings::None);
        let terminator = if endings.contains(&Endings::Cr) && endings.into_iter().all(ended_by_cr) {
            b'\r'
        } else {
            b'\n'
        };
        let uniform = |endings| matches!(endings, Endings::CrLf | Endings::None);
        let (first, last) = if old.len().max(new.len()) > MAX_WHOLE_BYTES {
            common_ends(old, new, terminator)
        } else {
            (0, 0)
        };
        let middle = |side: &'a [u8]| {
            let middle = &side[first..side.len() - last];
            middle.split_inclusive(|&byte| byte == terminator).collect()
        };
        let fixed = |left_out: usize| if left_out > 0 { CONTEXT } else { 0 };
        Sides {
            old: middle(old),
            new: middle(new),
            skipped_lines: memchr::memchr_iter(terminator, &old[..first]).count(),
            left_out_behind: last,
            fixed: (fixed(first), fixed(last)),
            terminator,
            hide_cr: endings.into_iter().all(uniform),
            line_chars,
        }
    }

    /// The differences, in line order.
    fn replaced(&self) -> Vec<ReplacedLines> {
        let (first, last) = self.fixed;
        let old = &self.old[first..self.old.len() - last];
        let new = &self.new[first..self.new.len() - last];
        match (old.len(), new.len()) {
            (0, 0) => return Vec::new(),
            (0, _) | (_, 0) => {
                let range = |lines: &[&[u8]]| first..first + lines.len();
                return vec![ReplacedLines { old: range(old), new: range(new) }];
            }
            _ => {}
        }
        let mut numbers = HashMap::new();
        let mut number = |line: &&'a [u8]| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(*line).or_insert(next)
        };
        let old_numbers: Vec<u32> = old.iter().map(&mut number).collect();
        let new_numbers: Vec<u32> = new.iter().map(&mut number).collect();
        let mut changes = Changes::between(&old_numbers, &new_numbers);
        let indents = [old, new].map(|side| Indents::of(side.iter().copied()));
        changes.slide(&old_numbers, &new_numbers, &indents);
        let mut replaced: Vec<ReplacedLines> = Vec::new();
        let (mut at_old, mut at_new) = (0, 0);
        while at_old < old.len() || at_new < new.len() {
            let end_of = |changed: &[bool], from: usize| {
                from + changed[from..].iter().take_while(|changed| **changed).count()
            };
            let (old_end, new_end) =
                (end_of(&changes.removed, at_old), end_of(&changes.added, at_new));
            if old_end > at_old || new_end > at_new {
                replaced.push(ReplacedLines {
                    old: first + at_old..first + old_end,
                    new: first + at_new..first + new_end,
                });
            }
            // An unchanged line, which both sides have.
            (at_old, at_new) = (old_end + 1, new_end + 1);
        }
        replaced
    }

    fn write_hunk(&self, diff: &mut Diff, changes: &[ReplacedLines]) {
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
            return;
        };
        let lead = CONTEXT.min(first.old.start);
        let trail = CONTEXT.min(self.old.len() - last.old.end);
        let old = first.old.start - lead..last.old.end + trail;
        let new = first.new.start - lead..last.new.end + trail;
        let _ = writeln!(
            diff.text,
            "@@ -{} +{} @@",
            header_range(self.skipped_lines + old.start, old.len()),
            header_range(self.skipped_lines + new.start, new.len())
        );
        let mut shown_to = old.start;
        for change in changes {
            self.write_lines(diff, ' ', &self.old[shown_to..change.old.start]);
            self.write_change(diff, &self.old[change.old.clone()], &self.new[change.new.clone()]);
            diff.removed += change.old.len();
            diff.added += change.new.len();
            shown_to = change.old.end;
        }
        self.write_lines(diff, ' ', &self.old[shown_to..old.end]);
    }

    /// Writes removed and added lines. If each line has a counterpart, a long one shows the part that differs from it.
    fn write_change(&self, diff: &mut Diff, old: &[&[u8]], new: &[&[u8]]) {
        let is_paired = old.len() == new.len();
        for (sign, lines, others) in [('-', old, new), ('+', new, old)] {
            for (at, line) in lines.iter().enumerate() {
                let other = others.get(at).copied().filter(|_| is_paired);
                self.write_line(&mut diff.text, sign, line, other);
            }
        }
    }

    fn write_lines(&self, diff: &mut Diff, sign: char, lines: &[&[u8]]) {
        lines.iter().for_each(|line| self.write_line(&mut diff.text, sign, line, None));
    }

    /// A line without its line ending, as it is shown.
    fn body(&self, line: &[u8]) -> String {
        let body = line.strip_suffix(&[self.terminator]).unwrap_or(line);
        visible(if self.hide_cr { body.strip_suffix(b"\r").unwrap_or(body) } else { body })
    }

    fn write_line(&self, out: &mut String, sign: char, line: &[u8], other: Option<&[u8]>) {
        let ended = line.last() == Some(&self.terminator);
        let body = self.body(line);
        out.push(sign);
        match other.filter(|_| body.len() > self.line_chars) {
            Some(other) => {
                out.push_str(&truncate_around(&body, &self.body(other), self.line_chars));
            }
            None => out.push_str(&truncate_line(&body, self.line_chars)),
        }
        out.push('\n');
        if !ended {
            out.push_str("\\ No newline at end of file\n");
        }
    }
}

/// Strips a byte order mark that both sides have. It is not part of the first line.
fn without_common_bom<'a>(old: &'a [u8], new: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    match (old.strip_prefix(BOM), new.strip_prefix(BOM)) {
        (Some(old), Some(new)) => (old, new),
        _ => (old, new),
    }
}

/// `start,length` in the unified format: from 1, but the line before an empty range.
fn header_range(start: usize, length: usize) -> String {
    match length {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{length}", start + 1),
    }
}

/// In larger texts, common lines at both ends are omitted before lines are compared, since comparing them
/// would take longer than everything else. Changes can then move only within the lines that are kept around
/// them.
const MAX_WHOLE_BYTES: usize = 8 << 20;

/// Number of common lines that are kept around the differences of a large text.
const KEPT_LINES: usize = 1_000;

/// The number of bytes at the beginning and at the end that are common whole lines, without the lines kept
/// near the differences.
fn common_ends(old: &[u8], new: &[u8], terminator: u8) -> (usize, usize) {
    let first = common_prefix(old, new);
    let last = common_suffix(&old[first..], &new[first..]);
    // Back over the line that differs, and over the lines that are kept.
    let first =
        memchr::memrchr_iter(terminator, &old[..first]).nth(KEPT_LINES).map_or(0, |at| at + 1);
    let tail = &old[old.len() - last..];
    let last = memchr::memchr_iter(terminator, tail).nth(KEPT_LINES).map_or(0, |at| last - at - 1);
    (first, last)
}

/// Number of bytes compared at once.
const BLOCK_BYTES: usize = 4 << 10;

fn common_prefix(old: &[u8], new: &[u8]) -> usize {
    let blocks =
        old.chunks(BLOCK_BYTES).zip(new.chunks(BLOCK_BYTES)).take_while(|(old, new)| old == new);
    let same: usize = blocks.map(|(old, _)| old.len()).sum();
    same + old[same..].iter().zip(&new[same..]).take_while(|(old, new)| old == new).count()
}

fn common_suffix(old: &[u8], new: &[u8]) -> usize {
    let blocks =
        old.rchunks(BLOCK_BYTES).zip(new.rchunks(BLOCK_BYTES)).take_while(|(old, new)| old == new);
    let same: usize = blocks.map(|(old, _)| old.len()).sum();
    let (old, new) = (&old[..old.len() - same], &new[..new.len() - same]);
    same + old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_absolute_path_has_one_slash_in_the_header() {
        let diff = unified_diff("/tmp/w.txt", Some(b"1\n"), Some(b"2\n"), 100, None);
        assert!(diff.text.starts_with("--- a/tmp/w.txt\n+++ b/tmp/w.txt\n"), "{}", diff.text);
        let diff = renamed_diff(("/tmp/v", Some(b"1\n")), ("w", Some(b"2\n")), 80, None);
        assert!(diff.text.starts_with("--- a/tmp/v\n+++ b/w\n"), "{}", diff.text);
    }

    /// Applies a diff to the old side. Each line is one letter.
    fn apply(old: &str, diff: &str) -> String {
        let old: Vec<&str> = old.lines().collect();
        let (mut new, mut at) = (Vec::new(), 0);
        for line in diff.lines().skip(2) {
            if let Some(header) = line.strip_prefix("@@ -") {
                let (start, count) = header
                    .split(' ')
                    .next()
                    .unwrap()
                    .split_once(',')
                    .unwrap_or_else(|| (header.split(' ').next().unwrap(), "1"));
                let start: usize = start.parse().unwrap();
                let start = if count == "0" { start } else { start - 1 };
                new.extend(&old[at..start]);
                at = start;
                continue;
            }
            let (sign, text) = line.split_at(1);
            if sign != "+" {
                assert_eq!(old[at], text);
                at += 1;
            }
            if sign != "-" {
                new.push(text);
            }
        }
        new.extend(&old[at..]);
        new.iter().map(|line| format!("{line}\n")).collect()
    }

    proptest! {
        #[test]
        fn applying_the_diff_to_the_old_side_gives_the_new_side(
            lines in prop::collection::vec("[ab]\n", 0..30),
            from in 0usize..30, to in 0usize..30, put in prop::collection::vec("[ab]\n", 0..4),
        ) {
            let (from, to) = (from.min(lines.len()), to.min(lines.len()));
            let mut changed = lines.clone();
            changed.splice(from.min(to)..to, put);
            let (old, new) = (lines.concat(), changed.concat());
            let diff = unified_diff("n", Some(old.as_bytes()), Some(new.as_bytes()), 99, None);
            prop_assert_eq!(apply(&old, &diff.text), new);
        }
    }

    #[test]
    fn a_change_is_shown_with_three_context_lines() {
        let old = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = b"1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        let diff = unified_diff("n.txt", Some(old), Some(new), 100, None);
        assert_eq!(
            diff.text,
            "--- a/n.txt\n+++ b/n.txt\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
        assert_eq!((diff.added, diff.removed), (1, 1));
    }

    #[test]
    fn new_files_missing_newlines_and_long_lines_are_marked() {
        let diff = unified_diff("n", None, Some(b"abcdef"), 4, None);
        assert_eq!(
            diff.text,
            "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+abcd…[+2 characters]\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn a_long_line_shows_the_part_that_changed() {
        let line = |word: &str| format!("{}{word}{}\n", "v".repeat(5_000), "w".repeat(5_000));
        let diff = unified_diff(
            "n",
            Some(line("END").as_bytes()),
            Some(line("FINISH").as_bytes()),
            200,
            None,
        );
        assert!(diff.text.contains("vvEND") && diff.text.contains("vvFINISHww"), "{}", diff.text);
        assert!(diff.text.len() < 800, "{}", diff.text);
    }

    #[test]
    fn carriage_returns_are_shown_only_where_they_differ() {
        let same = unified_diff("n", Some(b"a\r\nb\r\n"), Some(b"a\r\nc\r\n"), 9, None);
        assert!(!same.text.contains("\\r"), "{}", same.text);
        let changed = unified_diff("n", Some(b"a\r\n"), Some(b"a\n"), 9, None);
        assert!(changed.text.contains("-a\\r\n+a\n"), "{}", changed.text);
    }

    #[test]
    fn a_text_that_changes_its_encoding_is_compared_by_characters() {
        let latin = b"caf\xe9\nna\xefve\nA\n";
        let utf8 = "café\nnaïve\nB\n".as_bytes();
        let utf16: Vec<u8> =
            "\u{feff}café\nnaïve\nB\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (old, new) in [(&latin[..], utf8), (&latin[..], &utf16)] {
            let diff = unified_diff("n", Some(old), Some(new), 99, None);
            assert_eq!((diff.added, diff.removed), (1, 1), "{}", diff.text);
        }
    }

    #[test]
    fn changed_lines_are_given_by_number() {
        assert_eq!(changed_lines(&[1, 2, 3, 4], &[1, 9, 9, 3, 4, 5]), [(2, 3), (6, 6)]);
        assert_eq!(changed_lines(&[1, 2, 3], &[1, 3]), [(2, 2)]);
        assert_eq!(changed_lines(&[1], &[1]), []);
    }

    #[test]
    fn the_last_hunk_has_its_context() {
        let old = b"@p\na\nb\n\n\n\n\n\n@p\nc\nd\n\n\n@p\ne\nf\n";
        let new = b"@p\nA\nb\n\n\n\n\n\n@p\nx\n\n\n@p\nc\nd\n\n\n@p\ne\nf\n";
        let diff = unified_diff("d.py", Some(old), Some(new), 100, None);
        assert!(diff.text.contains("@@ -1,11 +1,15 @@\n"), "{}", diff.text);
        assert!(diff.text.ends_with(" \n+@p\n+x\n+\n+\n @p\n c\n d\n"), "{}", diff.text);
    }

    #[test]
    fn a_large_text_has_the_same_hunks_with_its_context() {
        let block = "@p\nx\n\n\n".repeat(MAX_WHOLE_BYTES / 7);
        let old = format!("{block}a\n{block}");
        let new = format!("{block}b\n@p\nx\n\n\n{block}");
        let diff = unified_diff("n", Some(old.as_bytes()), Some(new.as_bytes()), 100, None);
        assert_eq!((diff.added, diff.removed), (5, 1));
        assert!(diff.text.ends_with("-a\n+b\n+@p\n+x\n+\n+\n @p\n x\n \n"), "{}", diff.text);
    }

    #[test]
    fn texts_that_share_only_repeated_lines_are_compared_within_bounds() {
        let side = |words: [&str; 3], step: usize| -> Vec<u8> {
            (0..60_000).flat_map(|at| words[at * step % 7 % 3].bytes().chain(*b"\n")).collect()
        };
        let (old, new) = (side(["a", "b", "c"], 3), side(["b", "c", "a"], 5));
        let diff = unified_diff("n", Some(&old), Some(&new), 100, None);
        let lines = |sign: char| diff.text.lines().skip(2).filter(|l| l.starts_with(sign)).count();
        assert_eq!((lines('+'), lines('-')), (diff.added, diff.removed));
    }

    #[test]
    fn an_unchanged_text_has_an_empty_diff() {
        assert_eq!(unified_diff("n", Some(b"a\n"), Some(b"a\n"), 9, None).text, "");
    }
}
