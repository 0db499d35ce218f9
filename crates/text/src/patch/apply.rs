//! Applies a patch to a file. Unchanged lines keep their bytes. Added lines take the style of their position.

use std::borrow::Cow;
use std::ops::Range;

use super::file_lines::FileLines;
use super::hunk::{Hunk, HunkLine, Sign};
use super::mismatch::{Misfit, Why};
use super::position::{Fit, HunkPosition, place};
use crate::endings::{EndingFinder, Endings};
use crate::equivalent::{MatchLevel, Reindent, indent_step};

const BOM: &str = "\u{feff}";

/// A file with all hunks applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The new content.
    pub text: Vec<u8>,
    /// The result of each hunk, in the order of the patch.
    pub hunks: Vec<HunkFate>,
}

/// The result of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkFate {
    /// The line of the original file, from 1, at which it was found.
    pub line: u64,
    /// The distance from the line in its header, in lines. Negative if it was found before that line.
    pub offset: i64,
    /// The ignored differences, if it did not match exactly.
    pub rung: Option<MatchLevel>,
    /// Whether its change was already in the file.
    pub already: bool,
}

impl Hunk<'_> {
    /// Applies all hunks to a file, or none. All hunks are located in the original file, so none sees the
    /// changes of another.
    pub fn apply_all(hunks: &[Hunk<'_>], text: &[u8]) -> Result<Applied, Misfit> {
        let names_bom =
            || hunks.iter().any(|hunk| hunk.lines.iter().any(|line| line.text.starts_with(BOM)));
        // The byte order mark is not shown to readers, so patches do not contain it.
        match text.strip_prefix(BOM.as_bytes()) {
            Some(letters) if !names_bom() => {
                let mut applied = apply_lines(hunks, letters)?;
                applied.text.splice(0..0, BOM.bytes());
                Ok(applied)
            }
            _ => apply_lines(hunks, text),
        }
    }
}

fn apply_lines(hunks: &[Hunk<'_>], text: &[u8]) -> Result<Applied, Misfit> {
    let endings = Endings::of(text);
    let mut lines = hunks.iter().flat_map(|hunk| &hunk.lines);
    let has_cr = lines.any(|line| line.text.contains('\r'));
    // A line with an inner `\r` is one line for git and several for other programs.
    let terminator = if has_cr { b'\n' } else { endings.terminator() };
    let file = FileLines::new(text, terminator, endings == Endings::CrLf && !has_cr);
    let placed = place(&file, hunks)?;
    let mut order: Vec<usize> = (0..hunks.len()).collect();
    // An insertion before removed lines comes before their replacement.
    order.sort_by_key(|&at| {
        let Range { start, end } = changed_lines(&hunks[at]);
        let removed = hunks[at].lines[start..end].iter().any(|line| line.sign != Sign::Add);
        (placed[at].start + start, removed)
    });
    let mut splice =
        Splice { file: &file, finder: EndingFinder::new(text), output: Vec::new(), kept_to: 0 };
    for at in order.into_iter().filter(|&at| !placed[at].already) {
        splice.hunk(&hunks[at], placed[at]).map_err(|why| Misfit { hunk: at, why })?;
    }
    let now = splice.finish();
    let results = hunks.iter().zip(&placed).map(|(hunk, placed)| HunkFate::of(hunk, *placed));
    Ok(Applied { text: now, hunks: results.collect() })
}

impl HunkFate {
    fn of(hunk: &Hunk<'_>, placed: HunkPosition) -> HunkFate {
        let line = placed.start as u64 + 1;
        let offset = hunk.before.map_or(0, |before| {
            (placed.start as i64).saturating_sub(i64::try_from(before).unwrap_or(i64::MAX))
        });
        let level = match placed.fit {
            Fit::Exact => None,
            Fit::Equivalent(level) => Some(level),
        };
        HunkFate { line, offset, rung: level, already: placed.already }
    }
}

/// The range of lines of a hunk from the first changed one to the last.
fn changed_lines(hunk: &Hunk<'_>) -> Range<usize> {
    let changes = |line: &HunkLine<'_>| line.sign != Sign::Keep;
    let first = hunk.lines.iter().position(changes).unwrap_or(hunk.lines.len());
    first..hunk.lines.iter().rposition(changes).map_or(first, |last| last + 1)
}

/// Builds the new file from front to back.
struct Splice<'f, 'a> {
    file: &'f FileLines<'a>,
    finder: EndingFinder<'a>,
    output: Vec<u8>,
    /// Number of lines of the file that are already copied or removed.
    kept_to: usize,
}

impl Splice<'_, '_> {
    fn hunk(&mut self, hunk: &Hunk<'_>, placed: HunkPosition) -> Result<(), Why> {
        let style = Style::of(self.file, hunk, placed)?;
        let changing = changed_lines(hunk);
        let lead = changing.start;
        let mut at = placed.start + lead;
        self.keep_to(at);
        let mut ending = match at.checked_sub(1).and_then(|before| self.file.ending(before)) {
            _ if style.literal => style.terminator,
            Some(ending) if lead > 0 => ending,
            _ => self.finder.at(self.file.start(at)).as_bytes(),
        };
        // Removed lines. Each added line replaces the next of them.
        let mut gone = at..at;
        // Trailing context is left to the next hunk, which may change it.
        for line in &hunk.lines[changing] {
            if line.sign == Sign::Add {
                let content = style.adapt(self.file, line.text, gone.next())?;
                self.end_line(ending);
                self.output.extend_from_slice(&content);
                self.output.extend_from_slice(ending);
                continue;
            }
            ending = self.file.ending(at).filter(|_| !style.literal).unwrap_or(ending);
            at += 1;
            if line.sign == Sign::Keep {
                self.keep_to(at);
                gone = at..at;
            } else {
                self.kept_to = at;
                gone.end = at;
            }
        }
        self.end_of_file(hunk, at, ending);
        Ok(())
    }

    /// Copies the lines of the file up to this one.
    fn keep_to(&mut self, line: usize) {
        let kept = self.file.start(self.kept_to.min(line))..self.file.start(line);
        self.output.extend_from_slice(&self.file.text[kept]);
        self.kept_to = line;
    }

    /// Terminates the last line, which may lack a newline in the file.
    fn end_line(&mut self, ending: &[u8]) {
        if self.output.last().is_some_and(|last| *last != self.file.terminator) {
            self.output.extend_from_slice(ending);
        }
    }

    /// A line added at the end of the file is terminated as the hunk says or, by default, like the previous
    /// last line. An unchanged line keeps its ending, or the lack of one.
    fn end_of_file(&mut self, hunk: &Hunk<'_>, at: usize, ending: &[u8]) {
        let last = hunk.lines.iter().rfind(|line| line.sign != Sign::Remove);
        if at < self.file.len() || last.is_none_or(|line| line.sign == Sign::Keep) {
            return;
        }
        let says = hunk.old_unended || hunk.new_unended;
        if hunk.new_unended || !says && !self.file.is_ended() {
            let line = self.output.strip_suffix(ending).unwrap_or(&self.output).len();
            self.output.truncate(line);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.keep_to(self.file.len());
        self.output
    }
}

/// How added lines are written.
struct Style<'h> {
    /// Unchanged, since the hunk matched exactly.
    literal: bool,
    terminator: &'static [u8],
    start: usize,
    old: Vec<&'h str>,
    level: Option<MatchLevel>,
    /// With the indentation step of the new lines.
    reindent: Option<(Reindent, usize)>,
}

impl<'h> Style<'h> {
    fn of(file: &FileLines<'_>, hunk: &Hunk<'h>, placed: HunkPosition) -> Result<Style<'h>, Why> {
        let old: Vec<&str> = hunk.old_lines().collect();
        let has_cr = hunk.lines.iter().any(|line| line.text.contains('\r'));
        let level = match placed.fit {
            Fit::Exact => None,
            Fit::Equivalent(level) => Some(level),
        };
        let reindent = match level.filter(|level| level.ignores_indentation()) {
            None => None,
            Some(_) => {
                let ranges = file.ranges(placed.start, old.len());
                let reindent = Reindent::between(file.text, &old, &ranges);
                let reindent = reindent.ok_or(no_indentation(placed.start))?;
                let new: Vec<&str> = hunk.new_lines().collect();
                Some((reindent, indent_step(&new)))
            }
        };
        let found = !old.is_empty() || has_cr;
        Ok(Style {
            literal: level.is_none() && !file.hides_cr && found,
            terminator: if file.terminator == b'\r' { b"\r" } else { b"\n" },
            start: placed.start,
            old,
            level,
            reindent,
        })
    }

    /// Adapts an added line, which replaces the file's line `replaced` if there is one.
    fn adapt<'l>(
        &self,
        file: &FileLines<'_>,
        line: &'l str,
        replaced: Option<usize>,
    ) -> Result<Cow<'l, [u8]>, Why> {
        let Some(level) = self.level else { return Ok(line.as_bytes().into()) };
        let line = line.strip_suffix('\r').unwrap_or(line);
        let line: Cow<'l, str> = match &self.reindent {
            Some((reindent, step)) => {
                reindent.apply(line, *step).ok_or(no_indentation(self.start))?.into()
            }
            None => line.into(),
        };
        let old = replaced.and_then(|at| Some((at, *self.old.get(at - self.start)?)));
        match old.filter(|_| level.folds_typography()) {
            Some((at, old)) => {
                let plain_in_file = level.chars_plain_in_file(file.line(at), old);
                Ok(level.rewrite_line(file.line(at), old, &line, &plain_in_file).into())
            }
            None => Ok(into_bytes(line)),
        }
    }
}

fn no_indentation(start: usize) -> Why {
    Why::NoIndentation { line: start as u64 + 1 }
}

fn into_bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => text.as_bytes().into(),
        Cow::Owned(text) => text.into_bytes().into(),
    }
}
