//! What changed between two versions of a file, as a unified diff.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use similar::{Algorithm, ChangeTag, DiffOp};

use crate::clip::clip_line;
use crate::encoding::Encoding;
use crate::endings::Endings;
use crate::visible::visible;

/// A unified diff and its sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// The diff with its `---` and `+++` lines; empty if nothing changed.
    pub text: String,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
}

/// Lines of unchanged text around each change.
const CONTEXT: usize = 3;

/// How long to look for the smallest diff; after that a larger one, still right, is taken.
const PATIENCE: Duration = Duration::from_millis(200);

/// The unified diff from `old` to `new`, for reading, in any encoding: what is not text is made visible, and lines are
/// cut at `line_chars` characters. `name` is shown for both sides; a missing side is `/dev/null`.
pub fn unified_diff(name: &str, old: Option<&[u8]>, new: Option<&[u8]>, line_chars: usize) -> Diff {
    let from = old.map_or("/dev/null".into(), |_| format!("a/{name}"));
    let to = new.map_or("/dev/null".into(), |_| format!("b/{name}"));
    // Both sides are one file, so what the first tells of its encoding holds for the second.
    let encoding = old.or(new).map_or(Encoding::UTF_8, Encoding::of);
    let letters = |bytes| encoding.decode(bytes).unwrap_or(Cow::Borrowed(bytes));
    let (old, new) = (letters(old.unwrap_or_default()), letters(new.unwrap_or_default()));
    let sides = Sides::new(&old, &new, line_chars);
    let deadline = Some(Instant::now() + PATIENCE);
    let ops =
        similar::capture_diff_slices_deadline(Algorithm::Myers, &sides.old, &sides.new, deadline);
    let mut diff = Diff { text: String::new(), added: 0, removed: 0 };
    for hunk in similar::group_diff_ops(ops, CONTEXT) {
        if diff.text.is_empty() {
            let _ = write!(diff.text, "--- {from}\n+++ {to}\n");
        }
        sides.write_hunk(&mut diff, &hunk);
    }
    diff
}

/// The lines of `new`, from 1, first and last, that are not as in `old`, each line given by a number
/// that stands for what it says. Where lines are only gone, the line that follows.
pub fn changed_lines(old: &[u64], new: &[u64]) -> Vec<(u64, u64)> {
    let deadline = Some(Instant::now() + PATIENCE);
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline);
    let changed = ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    changed
        .map(|op| op.new_range())
        .map(|range| (range.start as u64 + 1, (range.end as u64).max(range.start as u64 + 1)))
        .collect()
}

/// The lines of both sides, but for those at both ends that are the same and no context either.
struct Sides<'a> {
    old: Vec<&'a [u8]>,
    new: Vec<&'a [u8]>,
    /// How many lines are left out at the beginning.
    before: usize,
    terminator: u8,
    /// A `\r` at the end of a line is news only where not every line has one.
    hide_cr: bool,
    line_chars: usize,
}

impl<'a> Sides<'a> {
    fn new(old: &'a [u8], new: &'a [u8], line_chars: usize) -> Self {
        let (old, new) = without_common_bom(old, new);
        let endings = [Endings::of(old), Endings::of(new)];
        let ended_by_cr = |endings| matches!(endings, Endings::Cr | Endings::None);
        let terminator =
            match endings.contains(&Endings::Cr) && endings.into_iter().all(ended_by_cr) {
                true => b'\r',
                false => b'\n',
            };
        let uniform = |endings| matches!(endings, Endings::CrLf | Endings::None);
        let (first, last) = same_ends(old, new, terminator);
        let middle = |side: &'a [u8]| {
            let middle = &side[first..side.len() - last];
            middle.split_inclusive(|&byte| byte == terminator).collect()
        };
        Sides {
            old: middle(old),
            new: middle(new),
            before: memchr::memchr_iter(terminator, &old[..first]).count(),
            terminator,
            hide_cr: endings.into_iter().all(uniform),
            line_chars,
        }
    }

    fn write_hunk(&self, diff: &mut Diff, hunk: &[DiffOp]) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            return;
        };
        let old = first.old_range().start..last.old_range().end;
        let new = first.new_range().start..last.new_range().end;
        let _ = writeln!(
            diff.text,
            "@@ -{} +{} @@",
            header_range(self.before + old.start, old.len()),
            header_range(self.before + new.start, new.len())
        );
        for change in hunk.iter().flat_map(|op| op.iter_changes(&self.old, &self.new)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => {
                    diff.removed += 1;
                    '-'
                }
                ChangeTag::Insert => {
                    diff.added += 1;
                    '+'
                }
            };
            self.write_line(&mut diff.text, sign, change.value());
        }
    }

    fn write_line(&self, out: &mut String, sign: char, line: &[u8]) {
        let ended = line.last() == Some(&self.terminator);
        let mut body = line.strip_suffix(&[self.terminator]).unwrap_or(line);
        if self.hide_cr {
            body = body.strip_suffix(b"\r").unwrap_or(body);
        }
        out.push(sign);
        out.push_str(&clip_line(&visible(body), self.line_chars));
        out.push('\n');
        if !ended {
            out.push_str("\\ No newline at end of file\n");
        }
    }
}

/// A byte order mark that both sides have is no part of their first line.
fn without_common_bom<'a>(old: &'a [u8], new: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    match (old.strip_prefix(BOM), new.strip_prefix(BOM)) {
        (Some(old), Some(new)) => (old, new),
        _ => (old, new),
    }
}

/// `start,length` as the unified format has it: from 1, but 0 before the first line of nothing.
fn header_range(start: usize, length: usize) -> String {
    match length {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{length}", start + 1),
    }
}

/// How many bytes at the beginning and at the end are whole lines that both have, without those that
/// are context of what differs. In a large file a diff costs little more than this.
fn same_ends(old: &[u8], new: &[u8], terminator: u8) -> (usize, usize) {
    let first = same_prefix(old, new);
    let last = same_suffix(&old[first..], &new[first..]);
    // Back over the line that differs, and the context.
    let first = memchr::memrchr_iter(terminator, &old[..first]).nth(CONTEXT).map_or(0, |at| at + 1);
    let tail = &old[old.len() - last..];
    let last = memchr::memchr_iter(terminator, tail).nth(CONTEXT).map_or(0, |at| last - at - 1);
    (first, last)
}

/// So many bytes are compared at once.
const BLOCK: usize = 4 << 10;

fn same_prefix(old: &[u8], new: &[u8]) -> usize {
    let blocks = old.chunks(BLOCK).zip(new.chunks(BLOCK)).take_while(|(old, new)| old == new);
    let same: usize = blocks.map(|(old, _)| old.len()).sum();
    same + old[same..].iter().zip(&new[same..]).take_while(|(old, new)| old == new).count()
}

fn same_suffix(old: &[u8], new: &[u8]) -> usize {
    let blocks = old.rchunks(BLOCK).zip(new.rchunks(BLOCK)).take_while(|(old, new)| old == new);
    let same: usize = blocks.map(|(old, _)| old.len()).sum();
    let (old, new) = (&old[..old.len() - same], &new[..new.len() - same]);
    same + old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The new side, made of the old one and a diff between them. Each line is one letter.
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
        fn the_old_side_and_the_diff_make_the_new_one(
            lines in prop::collection::vec("[ab]\n", 0..30),
            from in 0usize..30, to in 0usize..30, put in prop::collection::vec("[ab]\n", 0..4),
        ) {
            let (from, to) = (from.min(lines.len()), to.min(lines.len()));
            let mut changed = lines.clone();
            changed.splice(from.min(to)..to, put);
            let (old, new) = (lines.concat(), changed.concat());
            let diff = unified_diff("n", Some(old.as_bytes()), Some(new.as_bytes()), 99);
            prop_assert_eq!(apply(&old, &diff.text), new);
        }
    }

    #[test]
    fn a_change_is_shown_with_three_lines_around_it() {
        let old = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = b"1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        let diff = unified_diff("n.txt", Some(old), Some(new), 100);
        assert_eq!(
            diff.text,
            "--- a/n.txt\n+++ b/n.txt\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
        assert_eq!((diff.added, diff.removed), (1, 1));
    }

    #[test]
    fn a_new_file_a_missing_last_newline_and_long_lines_are_said() {
        let diff = unified_diff("n", None, Some(b"abcdef"), 4);
        assert_eq!(
            diff.text,
            "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+abcd…[+2 characters]\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn carriage_returns_show_only_where_they_differ() {
        let same = unified_diff("n", Some(b"a\r\nb\r\n"), Some(b"a\r\nc\r\n"), 9);
        assert!(!same.text.contains("\\r"), "{}", same.text);
        let changed = unified_diff("n", Some(b"a\r\n"), Some(b"a\n"), 9);
        assert!(changed.text.contains("-a\\r\n+a\n"), "{}", changed.text);
    }

    #[test]
    fn changed_lines_are_told_by_number() {
        assert_eq!(changed_lines(&[1, 2, 3, 4], &[1, 9, 9, 3, 4, 5]), [(2, 3), (6, 6)]);
        assert_eq!(changed_lines(&[1, 2, 3], &[1, 3]), [(2, 2)]);
        assert_eq!(changed_lines(&[1], &[1]), []);
    }

    #[test]
    fn nothing_changed_is_nothing() {
        assert_eq!(unified_diff("n", Some(b"a\n"), Some(b"a\n"), 9).text, "");
    }
}
