//! What stands for a wanted text, rewritten to say the new one. What the two have in common keeps the
//! file's bytes; what is new takes the file's indentation and line endings.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::fold::plain;
use super::indent::{Reindent, begins_behind_indent, blanks_before, indent_of, least_step};
use super::{Equivalent, Wanted};

/// How long to look for what the two texts have in common; after that, what was found by then.
const PATIENCE: Duration = Duration::from_millis(100);

impl Equivalent {
    /// The bytes to put in place of its range, so that the file says `new` there instead of `wanted`.
    /// Lines that come in end with `ending`, unless they take the place of another. Nothing, if the
    /// file's style does not tell how a line of `new` would be indented.
    pub fn rewrite(
        &self,
        text: &[u8],
        wanted: &Wanted,
        new: &Wanted,
        ending: &str,
    ) -> Option<Vec<u8>> {
        let reindent = match self.rung.indents() {
            true => Some(Reindent::between(text, &wanted.lines, &self.lines)?),
            false => None,
        };
        Rewriter { place: self, text, wanted, new, reindent, ending }.rewrite()
    }
}

struct Rewriter<'a> {
    place: &'a Equivalent,
    text: &'a [u8],
    wanted: &'a Wanted,
    new: &'a Wanted,
    reindent: Option<Reindent>,
    ending: &'a str,
}

impl Rewriter<'_> {
    fn rewrite(&self) -> Option<Vec<u8>> {
        let (old, new) = (&self.wanted.lines, &self.new.lines);
        let mid_line =
            self.reindent.is_some() && begins_behind_indent(self.text, &self.place.lines);
        let deadline = Some(Instant::now() + PATIENCE);
        let mut lines: Vec<(Vec<u8>, Option<&[u8]>)> = Vec::new();
        for op in capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline) {
            match op {
                // What began behind the file's indentation has none of its own to take elsewhere.
                DiffOp::Equal { old_index: 0, new_index: 1.., .. } if mid_line => return None,
                DiffOp::Equal { old_index, len, .. } => {
                    for at in old_index..old_index + len {
                        lines.push((self.text[self.line(at)].to_vec(), self.tail(at)));
                    }
                }
                DiffOp::Insert { new_index, new_len, .. } => {
                    for line in &new[new_index..new_index + new_len] {
                        lines.push((
                            self.indented(line, lines.is_empty() && mid_line)?.into_bytes(),
                            None,
                        ));
                    }
                }
                DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                    for (k, line) in new[new_index..new_index + new_len].iter().enumerate() {
                        let indented = self.indented(line, lines.is_empty() && mid_line)?;
                        let at = old_index + k;
                        lines.push(match k < old_len {
                            true => (self.changed(at, indented), self.tail(at).map(line_end)),
                            false => (indented.into_bytes(), None),
                        });
                    }
                }
                DiffOp::Delete { .. } => {}
            }
        }
        let mut bytes = Vec::new();
        let last = lines.len().checked_sub(1)?;
        for (at, (line, end)) in lines.into_iter().enumerate() {
            bytes.extend(line);
            if at < last {
                bytes.extend(end.unwrap_or(self.ending.as_bytes()));
            }
        }
        Some(bytes)
    }

    fn line(&self, at: usize) -> Range<usize> {
        self.place.lines[at].clone()
    }

    /// What stands between a line and the next: blanks that did not count, and the line's end.
    fn tail(&self, at: usize) -> Option<&[u8]> {
        let next = self.place.lines.get(at + 1)?;
        self.text.get(self.place.lines[at].end..next.start)
    }

    /// The new line in the file's indentation, or as it is if it stands behind that.
    fn indented(&self, line: &str, as_it_is: bool) -> Option<String> {
        match &self.reindent {
            Some(reindent) if !as_it_is => reindent.apply(line, least_step(&self.new.lines)),
            _ => Some(line.to_owned()),
        }
    }

    /// A new line, already indented, in the place of an old one.
    fn changed(&self, at: usize, line: String) -> Vec<u8> {
        if !self.place.rung.folds() {
            return line.into_bytes();
        }
        let (file, wanted) = (&self.text[self.line(at)], self.wanted.lines[at].as_str());
        if self.reindent.is_none() {
            return keep_typography(file, wanted, &line);
        }
        let (indent, rest) = line.split_at(indent_of(&line).len());
        let own = &file[blanks_before(file)..];
        let rest = keep_typography(own, &wanted[indent_of(wanted).len()..], rest);
        [indent.as_bytes(), &rest].concat()
    }
}

/// `new`, with the file's own characters where it has those of `wanted`. `file` says what `wanted`
/// does, character by character, but for typography and blanks at its end.
fn keep_typography(file: &[u8], wanted: &str, new: &str) -> Vec<u8> {
    let own: Vec<char> = String::from_utf8_lossy(file).chars().collect();
    let mut chars: Vec<char> = new.chars().collect();
    let old: Vec<char> = wanted.chars().map(plain).collect();
    let folded: Vec<char> = chars.iter().copied().map(plain).collect();
    let deadline = Some(Instant::now() + PATIENCE);
    for op in capture_diff_slices_deadline(Algorithm::Myers, &old, &folded, deadline) {
        let DiffOp::Equal { old_index, new_index, len } = op else { continue };
        for (c, own) in
            chars[new_index..][..len].iter_mut().zip(own.get(old_index..).unwrap_or(&[]))
        {
            // A typographic character in the new text is meant.
            if plain(*c) == *c {
                *c = *own;
            }
        }
    }
    chars.into_iter().collect::<String>().into_bytes()
}

/// Only the line's end of what stands between two lines.
fn line_end(tail: &[u8]) -> &[u8] {
    &tail[blanks_before(tail)..]
}
