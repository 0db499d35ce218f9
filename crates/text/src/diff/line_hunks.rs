//! The hunks of a diff as values, for programs that show or revert single ones.

use super::{CONTEXT, ReplacedLines, Sides, decoded, encoding_after, header_range, hunks};
use crate::encoding::Encoding;

/// A hunk of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineHunk {
    /// The header of the unified format, such as `@@ -1,3 +1,4 @@`.
    pub header: String,
    /// Its lines.
    pub lines: Vec<NumberedLine>,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedLine {
    /// ` `, `+` or `-`.
    pub sign: char,
    /// The number of the line before the change, from 1.
    pub old: Option<usize>,
    /// The number of the line after the change, from 1.
    pub new: Option<usize>,
    /// The text without the line ending, as it is. Bytes that are not text are replaced.
    pub text: String,
    /// Whether the text was truncated.
    pub is_cut: bool,
}

/// The hunks of [`super::unified_diff`], in the same order. Lines are cut at `line_chars` characters.
pub fn line_hunks(old: Option<&[u8]>, new: Option<&[u8]>, line_chars: usize) -> Vec<LineHunk> {
    let encoding = old.or(new).map_or(Encoding::UTF_8, |bytes| Encoding::of_known(bytes, None));
    let new = new.unwrap_or_default();
    let new = decoded(new, encoding_after(encoding, new));
    let old = decoded(old.unwrap_or_default(), encoding);
    let sides = Sides::new(&old, &new, line_chars);
    let replaced = sides.replaced();
    hunks(&replaced).filter_map(|changes| sides.line_hunk(changes)).collect()
}

/// `new` with one hunk as it is in `old`, in the encoding of `new`. `None` if there is no such hunk, or if the encoding
/// lacks a character of the hunk.
pub fn without_hunk(old: &[u8], new: &[u8], index: usize) -> Option<Vec<u8>> {
    let encoding = Encoding::of_known(old, None);
    let after = encoding_after(encoding, new);
    let (old_text, new_text) = (decoded(old, encoding), decoded(new, after));
    let text = without_lines(&old_text, &new_text, index)?;
    if *new_text == *new && *old_text == *old {
        return Some(text);
    }
    after.encode(std::str::from_utf8(&text).ok()?).ok()
}

fn without_lines(old: &[u8], new: &[u8], index: usize) -> Option<Vec<u8>> {
    let sides = Sides::new(old, new, usize::MAX);
    let replaced = sides.replaced();
    let reverted = hunks(&replaced).nth(index)?;
    let middle: usize = sides.new.iter().map(|line| line.len()).sum();
    let (before, after) = sides.left_out(new, middle);
    let mut text = before.to_vec();
    let mut at = 0;
    for ReplacedLines { old, new } in reverted {
        sides.new[at..new.start].iter().for_each(|line| text.extend_from_slice(line));
        sides.old[old.clone()].iter().for_each(|line| text.extend_from_slice(line));
        at = new.end;
    }
    sides.new[at..].iter().for_each(|line| text.extend_from_slice(line));
    text.extend_from_slice(after);
    Some(text)
}

impl Sides<'_> {
    /// The parts of `new` before and after its compared lines, which have `middle` bytes.
    fn left_out<'n>(&self, new: &'n [u8], middle: usize) -> (&'n [u8], &'n [u8]) {
        let start = new.len() - middle - self.left_out_behind;
        (&new[..start], &new[start + middle..])
    }

    fn line_hunk(&self, changes: &[ReplacedLines]) -> Option<LineHunk> {
        let (first, last) = (changes.first()?, changes.last()?);
        let lead = CONTEXT.min(first.old.start);
        let trail = CONTEXT.min(self.old.len() - last.old.end);
        let old = first.old.start - lead..last.old.end + trail;
        let new = first.new.start - lead..last.new.end + trail;
        let header = format!(
            "@@ -{} +{} @@",
            header_range(self.skipped_lines + old.start, old.len()),
            header_range(self.skipped_lines + new.start, new.len())
        );
        let mut lines = Vec::new();
        let (mut at_old, mut at_new) = (old.start, new.start);
        let number = |at: usize| Some(self.skipped_lines + at + 1);
        for change in changes {
            while at_old < change.old.start {
                lines.push(self.hunk_line(' ', (number(at_old), number(at_new)), self.old[at_old]));
                (at_old, at_new) = (at_old + 1, at_new + 1);
            }
            let removed = change.old.clone();
            lines.extend(removed.map(|at| self.hunk_line('-', (number(at), None), self.old[at])));
            let added = change.new.clone();
            lines.extend(added.map(|at| self.hunk_line('+', (None, number(at)), self.new[at])));
            (at_old, at_new) = (change.old.end, change.new.end);
        }
        while at_old < old.end {
            lines.push(self.hunk_line(' ', (number(at_old), number(at_new)), self.old[at_old]));
            (at_old, at_new) = (at_old + 1, at_new + 1);
        }
        Some(LineHunk { header, lines })
    }

    fn hunk_line(
        &self,
        sign: char,
        (old, new): (Option<usize>, Option<usize>),
        line: &[u8],
    ) -> NumberedLine {
        let body = line.strip_suffix(&[self.terminator]).unwrap_or(line);
        let body = if self.hide_cr { body.strip_suffix(b"\r").unwrap_or(body) } else { body };
        // A character has at most four bytes, so that a long line is not decoded as a whole.
        let most = self.line_chars.saturating_mul(4);
        let text = String::from_utf8_lossy(&body[..body.len().min(most)]);
        let cut = text.char_indices().nth(self.line_chars).map(|(at, _)| at);
        let is_cut = cut.is_some() || body.len() > most;
        let text = cut.map_or(&*text, |at| &text[..at]).to_owned();
        NumberedLine { sign, old, new, text, is_cut }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::unified_diff;
    use super::*;

    fn shown(hunks: &[LineHunk]) -> String {
        let line = |line: &NumberedLine| format!("{}{}\n", line.sign, line.text);
        let hunk = |hunk: &LineHunk| {
            format!("{}\n{}", hunk.header, hunk.lines.iter().map(line).collect::<String>())
        };
        hunks.iter().map(hunk).collect()
    }

    #[test]
    fn lines_have_their_numbers_and_texts_stay_raw() {
        let hunks = line_hunks(Some(b"a\nb\x1b[31m\nc\n"), Some(b"a\n<img>\nc\nd\n"), 4);
        assert_eq!(shown(&hunks), "@@ -1,3 +1,4 @@\n a\n-b\x1b[3\n+<img\n c\n+d\n");
        let numbers: Vec<_> = hunks[0].lines.iter().map(|line| (line.old, line.new)).collect();
        let both = |old, new| (Some(old), Some(new));
        let one = |new| (None, Some(new));
        assert_eq!(numbers, [both(1, 1), (Some(2), None), one(2), both(3, 3), one(4)]);
        assert!(hunks[0].lines[1].is_cut && hunks[0].lines[2].is_cut && !hunks[0].lines[0].is_cut);
        assert_eq!(shown(&line_hunks(None, Some(b"x\n"), 9)), "@@ -0,0 +1 @@\n+x\n");
        assert_eq!(line_hunks(Some(b"x\n"), Some(b"x\n"), 9), []);
    }

    #[test]
    fn a_hunk_is_reverted_alone() {
        let old: String = (0..40).map(|number| format!("{number}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n").replace("\n30\n", "\n30\nmore\n");
        let (old, new) = (old.as_bytes(), new.as_bytes());
        let first = String::from_utf8(without_hunk(old, new, 0).unwrap()).unwrap();
        assert!(first.contains("\n5\n") && first.contains("\nmore\n"));
        let second = String::from_utf8(without_hunk(old, new, 1).unwrap()).unwrap();
        assert!(second.contains("\nfive\n") && !second.contains("\nmore\n"));
        assert_eq!(without_hunk(old, new, 2), None);
    }

    #[test]
    fn a_hunk_of_another_encoding_is_reverted_in_that_encoding() {
        let old: String = (0..40).map(|number| format!("ä{number}\n")).collect();
        let new = old.replace("ä5\n", "\u{a0a}five\n").replace("ä30\n", "ä30\nmore 😀\n");
        let first = new.replace("\u{a0a}five\n", "ä5\n");
        for name in ["utf-16le", "utf-16be"] {
            let encode = |text: &str| Encoding::named(name).unwrap().encode(text).unwrap();
            assert_eq!(without_hunk(&encode(&old), &encode(&new), 0), Some(encode(&first)));
            assert_eq!(without_hunk(&encode(&old), &encode(&new), 2), None);
        }
        let (old, new) = (b"caf\xe9 is one line\nb\n", b"caf\xe9 is one line\nc\n");
        assert_eq!(without_hunk(old, new, 0).as_deref(), Some(&old[..]));
    }

    proptest! {
        /// The hunks are those of the unified diff, and reverting all of them gives the old text.
        #[test]
        fn hunks_are_those_of_the_diff_and_reverting_all_restores(
            old in "([a-c]{0,2}\r?\n){0,40}[a-c]{0,2}", new in "([a-c]{0,2}\r?\n){0,40}[a-c]{0,2}",
        ) {
            let hunks = line_hunks(Some(old.as_bytes()), Some(new.as_bytes()), 100);
            let diff = unified_diff("x", Some(old.as_bytes()), Some(new.as_bytes()), 100, None);
            let headers = diff.text.lines().filter(|line| line.starts_with("@@ "));
            let own: Vec<&str> = hunks.iter().map(|hunk| hunk.header.as_str()).collect();
            prop_assert_eq!(headers.collect::<Vec<_>>(), own);
            let mut text = new.into_bytes();
            for index in (0..hunks.len()).rev() {
                text = without_hunk(old.as_bytes(), &text, index).unwrap();
            }
            prop_assert_eq!(String::from_utf8(text).unwrap(), old);
        }
    }
}
