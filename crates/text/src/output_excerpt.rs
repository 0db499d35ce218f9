//! Shortens a long output to its beginning, the lines around its first errors, and its end.
//!
//! Errors are rarely in the last lines and never in the first. A reader who sees only those runs the command
//! again. The excerpt is fed line by line and holds only the lines that may be shown.

use std::collections::VecDeque;
use std::fmt::Write as _;

use crate::error_lines::reports_error;
use crate::repeated_lines::{Folded, Folder, Similarity};
use crate::truncate::truncate_middle;

/// Number of lines shown before an error.
const LINES_BEFORE_ERROR: usize = 2;
/// Number of lines shown after an error.
const LINES_AFTER_ERROR: usize = 4;

/// The size of an excerpt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExcerptOptions {
    /// An output of at most this many characters is shown whole.
    pub whole_chars: usize,
    /// Characters of the excerpt of a longer output, without the notes about left-out lines.
    pub chars: usize,
    /// Characters of one line.
    pub line_chars: usize,
    /// Number of lines at the beginning, if the caller sets it.
    pub head_lines: Option<usize>,
    /// Number of lines at the end, if the caller sets it.
    pub tail_lines: Option<usize>,
    /// Whether runs of repeated lines are folded. The lines that the caller sets are not.
    pub folds: bool,
}

/// Collects the lines of an excerpt.
#[derive(Debug)]
pub struct Excerpt {
    line_chars: usize,
    head: LineBuffer,
    tail: LineBuffer,
    errors: LineBuffer,
    /// Characters of the end, once some lines must be omitted.
    tail_chars: usize,
    /// Characters of an output that is shown whole, unless the caller has chosen the lines.
    whole_chars: Option<usize>,
    folder: Option<Folder>,
    /// Number of lines still to be kept after an error.
    due_after_error: usize,
    lines: u64,
    has_cut_lines: bool,
}

/// A finished excerpt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcerptShown {
    /// The lines, with notes where some are omitted.
    pub text: String,
    /// Total number of lines.
    pub lines: u64,
    /// Number of omitted lines.
    pub left_out: u64,
    /// Whether a shown line is not whole.
    pub has_cut_lines: bool,
}

/// A line, or the note in place of a folded run.
#[derive(Debug, Clone)]
struct Kept {
    /// Number of the line. Of a run, that of its last line.
    number: u64,
    text: String,
    /// Number of lines that the note replaces. Zero for a line.
    folded: u64,
}

/// Lines within a limit.
#[derive(Debug, Default)]
struct LineBuffer {
    kept: VecDeque<Kept>,
    chars: usize,
    max_chars: usize,
    max_lines: usize,
}

impl Excerpt {
    /// An empty excerpt.
    pub fn new(options: ExcerptOptions) -> Excerpt {
        let ExcerptOptions { whole_chars, chars, line_chars, head_lines, tail_lines, folds } =
            options;
        let chosen = head_lines.is_some() || tail_lines.is_some();
        let part = |max_chars: usize, lines: Option<usize>| {
            let max_lines = if chosen { lines.unwrap_or(0) } else { usize::MAX };
            LineBuffer { max_chars, max_lines, ..LineBuffer::default() }
        };
        let whole_chars = whole_chars.max(chars);
        let (head_chars, end_chars) = match (head_lines, tail_lines) {
            (None, None) => (chars / 4, whole_chars),
            (Some(_), None) => (chars, 0),
            (None, Some(_)) => (0, chars),
            (Some(_), Some(_)) => (chars / 2, chars / 2),
        };
        Excerpt {
            line_chars,
            head: part(head_chars, head_lines),
            tail: part(end_chars, tail_lines),
            errors: part(if chosen { 0 } else { chars / 4 }, None),
            tail_chars: if chosen { end_chars } else { chars / 2 },
            whole_chars: (!chosen).then_some(whole_chars),
            folder: (folds && !chosen).then(Folder::default),
            due_after_error: 0,
            lines: 0,
            has_cut_lines: false,
        }
    }

    /// Adds the next line, without its line ending.
    pub fn line(&mut self, line: &str) {
        self.cut_line(line, None);
    }

    /// Adds the next line, which lacks characters: `missing` is their position and number.
    pub fn cut_line(&mut self, line: &str, missing: Option<(usize, u64)>) {
        let text = truncate_middle(line, missing, self.line_chars);
        let is_cut = missing.is_some() || text.len() != line.len();
        self.has_cut_lines |= is_cut;
        // Cut lines may differ where they are not shown.
        if is_cut {
            self.end_run();
            self.keep(text, 0);
            return;
        }
        match self.folder.take() {
            Some(mut folder) => {
                folder.line(&text, |folded| self.keep_folded(folded));
                self.folder = Some(folder);
            }
            None => self.keep(text, 0),
        }
    }

    /// Counts lines that were not read.
    pub fn skip(&mut self, lines: u64) {
        self.end_run();
        self.lines += lines;
        self.due_after_error = 0;
    }

    /// Finishes the excerpt.
    pub fn finish(mut self) -> ExcerptShown {
        self.end_run();
        let kept = self.head.kept.iter().chain(&self.tail.kept);
        if kept.map(Kept::lines).sum::<u64>() < self.lines {
            self.tail.max_chars = self.tail_chars;
            self.tail.shrink();
        }
        let tail_from = self.tail.kept.front().map_or(u64::MAX, |kept| kept.number);
        self.errors.kept.retain(|kept| kept.number < tail_from);
        let parts = [self.head, self.errors, self.tail];
        let (mut text, mut shown, mut last) = (String::new(), 0, 0);
        for kept in parts.into_iter().flat_map(|part| part.kept) {
            write_gap(&mut text, kept.number - kept.lines() - last);
            text.push_str(&kept.text);
            text.push('\n');
            shown += u64::from(kept.folded == 0);
            last = kept.number;
        }
        write_gap(&mut text, self.lines - last);
        let (lines, left_out) = (self.lines, self.lines - shown);
        ExcerptShown { text, lines, left_out, has_cut_lines: self.has_cut_lines }
    }

    fn end_run(&mut self) {
        if let Some(mut folder) = self.folder.take() {
            folder.end_run(|folded| self.keep_folded(folded));
            self.folder = Some(folder);
        }
    }

    fn keep_folded(&mut self, folded: Folded) {
        match folded {
            Folded::Line(line) => self.keep(line, 0),
            Folded::Run(lines, similarity) => {
                let similarity = match similarity {
                    Similarity::Equal => "equal",
                    Similarity::ExceptPath(_) => "similar",
                };
                let noun = if lines == 1 { "line" } else { "lines" };
                self.keep(format!("[{lines} {similarity} {noun} omitted]"), lines);
            }
        }
    }

    /// Keeps a line, or the note in place of `folded` lines, while it may be shown.
    fn keep(&mut self, text: String, folded: u64) {
        let before = self.lines;
        self.lines += folded.max(1);
        let kept = Kept { number: self.lines, text, folded };
        // After one line did not fit at the beginning, none is added there.
        let is_next = self.head.kept.back().map_or(0, |kept| kept.number) == before;
        if is_next && self.head.has_room_for(&kept) {
            self.head.push(kept);
            return;
        }
        if self.errors.max_chars > 0 {
            self.collect_errors(&kept);
        }
        // The end may use what the beginning left.
        if let Some(whole_chars) = self.whole_chars {
            self.tail.max_chars = whole_chars - self.head.chars;
        }
        self.tail.push(kept);
        self.tail.shrink();
    }

    fn collect_errors(&mut self, kept: &Kept) {
        if reports_error(&kept.text) {
            let known = self.errors.kept.back().map_or(0, |kept| kept.number);
            let before = self.tail.kept.iter().rev().take(LINES_BEFORE_ERROR).rev();
            let before: Vec<_> = before.filter(|kept| kept.number > known).cloned().collect();
            for line in before.into_iter().chain([kept.clone()]) {
                self.keep_error(line);
            }
            self.due_after_error = LINES_AFTER_ERROR;
        } else if self.due_after_error > 0 {
            self.due_after_error -= 1;
            self.keep_error(kept.clone());
        }
    }

    fn keep_error(&mut self, line: Kept) {
        if self.errors.has_room_for(&line) {
            self.errors.push(line);
        } else {
            // The first errors matter. A line that does not fit ends the collection.
            self.errors.max_chars = 0;
        }
    }
}

impl Kept {
    /// Number of lines of the output that it represents.
    fn lines(&self) -> u64 {
        self.folded.max(1)
    }
}

impl LineBuffer {
    fn has_room_for(&self, line: &Kept) -> bool {
        self.kept.len() < self.max_lines && self.chars + chars(&line.text) <= self.max_chars
    }

    fn push(&mut self, line: Kept) {
        self.chars += chars(&line.text);
        self.kept.push_back(line);
    }

    /// Drops the first lines until the rest fits.
    fn shrink(&mut self) {
        while self.kept.len() > self.max_lines || self.chars > self.max_chars {
            let Some(line) = self.kept.pop_front() else { break };
            self.chars -= chars(&line.text);
        }
    }
}

fn chars(line: &str) -> usize {
    line.chars().count() + 1
}

fn write_gap(text: &mut String, lines: u64) {
    let _ = match lines {
        0 => Ok(()),
        1 => writeln!(text, "[1 line omitted]"),
        lines => writeln!(text, "[{lines} lines omitted]"),
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OPTIONS: ExcerptOptions = ExcerptOptions {
        whole_chars: 400,
        chars: 400,
        line_chars: 50,
        head_lines: None,
        tail_lines: None,
        folds: false,
    };

    fn excerpt(options: ExcerptOptions, lines: impl IntoIterator<Item = String>) -> ExcerptShown {
        let mut excerpt = Excerpt::new(options);
        lines.into_iter().for_each(|line| excerpt.line(&line));
        excerpt.finish()
    }

    #[test]
    fn an_output_that_fits_is_shown_whole() {
        let lines = (0..40).map(|_| "123456789".to_owned());
        let shown = excerpt(OPTIONS, lines);
        assert_eq!((shown.text.as_str(), shown.left_out), ("123456789\n".repeat(40).as_str(), 0));
    }

    #[test]
    fn an_output_that_does_not_fit_is_cut_to_less_than_one_that_fits() {
        let lines = |count| (0..count).map(|_| "123456789".to_owned());
        let options = ExcerptOptions { chars: 100, ..OPTIONS };
        assert_eq!(excerpt(options, lines(40)).left_out, 0);
        let cut = excerpt(options, lines(41));
        let kept = cut.text.lines().filter(|line| *line == "123456789").count();
        assert!(kept <= 10 && kept as u64 + cut.left_out == 41, "{}", cut.text);
    }

    #[test]
    fn the_first_errors_are_shown_with_context() {
        let line = |number: u32| match number {
            50_001 => "test a ... FAILED".to_owned(),
            80_000 => "0 errors here".to_owned(),
            number => format!("line {number}"),
        };
        let shown = excerpt(OPTIONS, (1..=100_000).map(line));
        let expected =
            "line 50000\ntest a ... FAILED\nline 50002\nline 50003\nline 50004\nline 50005\n";
        assert!(shown.text.contains(expected), "{}", shown.text);
        assert!(shown.text.starts_with("line 1\n") && shown.text.ends_with("line 100000\n"));
        assert!(!shown.text.contains("0 errors"));
        assert!(shown.text.contains("lines omitted]\nline 49999\n"), "{}", shown.text);
    }

    #[test]
    fn the_caller_can_choose_the_number_of_lines() {
        let lines = || (1..=9).map(|number| number.to_string());
        let options = ExcerptOptions { head_lines: Some(2), ..OPTIONS };
        assert_eq!(excerpt(options, lines()).text, "1\n2\n[7 lines omitted]\n");
        let options = ExcerptOptions { tail_lines: Some(1), ..OPTIONS };
        assert_eq!(excerpt(options, lines()).text, "[8 lines omitted]\n9\n");
        let options = ExcerptOptions { head_lines: Some(1), tail_lines: Some(8), ..OPTIONS };
        assert_eq!(excerpt(options, lines()).left_out, 0);
    }

    #[test]
    fn runs_of_equal_lines_are_folded() {
        let options = ExcerptOptions { folds: true, ..OPTIONS };
        let lines = ["first"].into_iter().chain(std::iter::repeat_n("the same", 20_000));
        let shown = excerpt(options, lines.chain(["last"]).map(str::to_owned));
        let same = "the same\n".repeat(3);
        assert_eq!(shown.text, format!("first\n{same}[19997 equal lines omitted]\nlast\n"));
        assert_eq!((shown.lines, shown.left_out), (20_002, 19_997));
    }

    #[test]
    fn cut_lines_are_not_folded() {
        let options = ExcerptOptions { folds: true, ..OPTIONS };
        let long = |number| format!("{}{number}{}", "x".repeat(60), "y".repeat(60));
        let shown = excerpt(options, (0..100).map(long));
        assert!(!shown.text.contains("equal"), "{}", shown.text);
    }

    #[test]
    fn skipped_lines_are_counted() {
        let mut excerpt = Excerpt::new(OPTIONS);
        excerpt.line("first");
        excerpt.skip(7);
        excerpt.line("last");
        let shown = excerpt.finish();
        assert_eq!(shown.text, "first\n[7 lines omitted]\nlast\n");
        assert_eq!((shown.lines, shown.left_out), (9, 7));
    }

    proptest! {
        #[test]
        fn the_limit_holds_and_every_line_is_shown_or_counted(
            runs in prop::collection::vec(("[a-z ]{0,70}|error [a-z]{0,9}|x{40}", prop_oneof![6 => 1usize..3, 1 => 1usize..90]), 0..60),
            head in prop::option::of(0usize..9), tail in prop::option::of(0usize..9),
            folds in any::<bool>(),
        ) {
            let lines: Vec<String> = runs.into_iter()
                .flat_map(|(line, count)| std::iter::repeat_n(line, count)).collect();
            let options = ExcerptOptions { head_lines: head, tail_lines: tail, folds, ..OPTIONS };
            let shown = excerpt(options, lines.clone());
            let notes = |line: &&str| line.ends_with(" omitted]");
            let (noted, kept): (Vec<&str>, Vec<&str>) = shown.text.lines().partition(notes);
            prop_assert_eq!(shown.lines, lines.len() as u64);
            prop_assert_eq!(kept.len() as u64 + shown.left_out, shown.lines);
            let counted: u64 = noted.iter()
                .map(|note| note[1..].split(' ').next().unwrap().parse::<u64>().unwrap()).sum();
            prop_assert_eq!(counted, shown.left_out);
            prop_assert!(kept.iter().map(|line| chars(line)).sum::<usize>() <= OPTIONS.chars);
        }
    }
}
