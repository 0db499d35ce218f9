//! Rewrites a match to the new text. Common parts keep the bytes of the file. New parts take the file's
//! indentation and line endings.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::indent::{Reindent, indent_of, indent_step, leading_whitespace, starts_after_indent};
use super::required_literal::WHITESPACE;
use super::typography::plain;
use super::{Equivalent, MatchLevel, SoughtText};

/// Time limit for finding common parts. After that, the parts found so far are used.
const DIFF_TIMEOUT: Duration = Duration::from_millis(100);

impl Equivalent {
    /// The bytes to replace its range with, so that the file contains `new` there instead of `wanted`.
    /// Inserted lines end with `ending`, unless they replace another line. `None` if the style of the file
    /// does not determine the indentation of a new line.
    pub fn rewrite(
        &self,
        text: &[u8],
        wanted: &SoughtText,
        new: &SoughtText,
        ending: &str,
    ) -> Option<Vec<u8>> {
        let reindent = if self.difference.level.ignores_indentation() {
            Some(Reindent::between(text, &wanted.lines, &self.lines)?)
        } else {
            None
        };
        let lines = wanted.lines.iter().zip(&self.lines);
        let plain_in_file = lines
            .flat_map(|(wanted, line)| {
                self.difference.level.chars_plain_in_file(&text[line.clone()], wanted)
            })
            .collect();
        Rewriter { place: self, text, wanted, new, reindent, ending, plain_in_file }.rewrite()
    }
}

struct Rewriter<'a> {
    place: &'a Equivalent,
    text: &'a [u8],
    wanted: &'a SoughtText,
    new: &'a SoughtText,
    reindent: Option<Reindent>,
    ending: &'a str,
    /// Typographic characters that the caller writes and the file does not.
    plain_in_file: Vec<char>,
}

impl Rewriter<'_> {
    fn rewrite(&self) -> Option<Vec<u8>> {
        let (old, new) = (&self.wanted.lines, &self.new.lines);
        let mid_line = self.reindent.is_some() && starts_after_indent(self.text, &self.place.lines);
        let deadline = Some(Instant::now() + DIFF_TIMEOUT);
        let mut lines: Vec<(Vec<u8>, Option<&[u8]>)> = Vec::new();
        for op in capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline) {
            match op {
                // A line that began after the file's indentation has no indentation of its own elsewhere.
                DiffOp::Equal { old_index: 0, new_index: 1.., .. } if mid_line => return None,
                DiffOp::Equal { old_index, len, .. } => {
                    for at in old_index..old_index + len {
                        lines.push((self.text[self.line(at)].to_vec(), self.tail(at)));
                    }
                }
                DiffOp::Insert { new_index, new_len, .. } => {
                    for line in &new[new_index..new_index + new_len] {
                        lines.push((
                            self.inserted(self.indented(line, lines.is_empty() && mid_line)?),
                            None,
                        ));
                    }
                }
                DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                    for (k, line) in new[new_index..new_index + new_len].iter().enumerate() {
                        let indented = self.indented(line, lines.is_empty() && mid_line)?;
                        let at = old_index + k;
                        lines.push(if k < old_len {
                            (self.changed(at, indented), self.tail(at).map(line_end))
                        } else {
                            (self.inserted(indented), None)
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

    /// The bytes between a line and the next: ignored trailing whitespace and the line ending.
    fn tail(&self, at: usize) -> Option<&[u8]> {
        let next = self.place.lines.get(at + 1)?;
        self.text.get(self.place.lines[at].end..next.start)
    }

    /// The new line with the file's indentation, or unchanged if `as_it_is`.
    fn indented(&self, line: &str, as_it_is: bool) -> Option<String> {
        match &self.reindent {
            Some(reindent) if !as_it_is => reindent.apply(line, indent_step(&self.new.lines)),
            _ => Some(line.to_owned()),
        }
    }

    /// A line that replaces no other.
    fn inserted(&self, line: String) -> Vec<u8> {
        line.chars().map(|c| adapt_char(c, &self.plain_in_file)).collect::<String>().into_bytes()
    }

    /// A new line, already indented, that replaces an old one.
    fn changed(&self, at: usize, line: String) -> Vec<u8> {
        let level = self.place.difference.level;
        if level.folds_typography() {
            let (file, wanted) = (&self.text[self.line(at)], &self.wanted.lines[at]);
            level.rewrite_line(file, wanted, &line, &self.plain_in_file)
        } else {
            line.into_bytes()
        }
    }
}

impl MatchLevel {
    /// The typographic characters of a sought line for which the file has plain ones.
    pub(crate) fn chars_plain_in_file(self, file: &[u8], wanted: &str) -> Vec<char> {
        let own = String::from_utf8_lossy(file);
        let (wanted, own) = if self.ignores_indentation() {
            (wanted.trim_start_matches(WHITESPACE), own.trim_start_matches(WHITESPACE))
        } else {
            (wanted, &own[..])
        };
        let pairs = wanted.chars().zip(own.chars());
        let differ = pairs.filter(|(c, own)| plain(*c) != *c && plain(*c) == *own);
        differ.map(|(c, _)| c).collect()
    }

    /// A new line, already indented, that replaces the file's line matching `wanted`. Where both agree, it
    /// keeps the file's characters. `plain_in_file` are the characters that the file writes plainly.
    pub(crate) fn rewrite_line(
        self,
        file: &[u8],
        wanted: &str,
        line: &str,
        plain_in_file: &[char],
    ) -> Vec<u8> {
        if !self.ignores_indentation() {
            return keep_typography(file, wanted, line, plain_in_file);
        }
        let (indent, rest) = line.split_at(indent_of(line).len());
        let own = &file[leading_whitespace(file)..];
        let wanted = &wanted[indent_of(wanted).len()..];
        let rest = keep_typography(own, wanted, rest, plain_in_file);
        [indent.as_bytes(), &rest].concat()
    }
}

/// `new`, with the characters of the file where it agrees with `wanted`. `file` equals `wanted` character by
/// character, except for typography and trailing whitespace.
fn keep_typography(file: &[u8], wanted: &str, new: &str, plain_in_file: &[char]) -> Vec<u8> {
    let own: Vec<char> = String::from_utf8_lossy(file).chars().collect();
    let old: Vec<char> = wanted.chars().map(plain).collect();
    let folded: Vec<char> = new.chars().map(plain).collect();
    let mut chars: Vec<char> = new.chars().map(|c| adapt_char(c, plain_in_file)).collect();
    let deadline = Some(Instant::now() + DIFF_TIMEOUT);
    for op in capture_diff_slices_deadline(Algorithm::Myers, &old, &folded, deadline) {
        let DiffOp::Equal { old_index, new_index, len } = op else { continue };
        let own = own.get(old_index..).unwrap_or(&[]);
        chars[new_index..][..len].iter_mut().zip(own).for_each(|(c, own)| *c = *own);
    }
    chars.into_iter().collect::<String>().into_bytes()
}

/// A character of the new text, made plain if the file writes it plainly.
fn adapt_char(c: char, plain_in_file: &[char]) -> char {
    if plain_in_file.contains(&c) { plain(c) } else { c }
}

/// Strips the whitespace before a line ending.
fn line_end(tail: &[u8]) -> &[u8] {
    &tail[leading_whitespace(tail)..]
}
