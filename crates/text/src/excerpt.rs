//! Shortens a long output to its beginning, the lines around its first errors, and its end.
//!
//! Errors are rarely in the last lines and never in the first. A reader who sees only those runs the command
//! again. The excerpt is fed line by line and holds only the lines that may be shown.

use std::collections::VecDeque;
use std::fmt::Write as _;

use crate::error_lines::reports_error;
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

/// Numbered lines within a limit.
#[derive(Debug, Default)]
struct LineBuffer {
    kept: VecDeque<(u64, String)>,
    chars: usize,
    max_chars: usize,
    max_lines: usize,
}

impl Excerpt {
    /// An empty excerpt.
    pub fn new(options: ExcerptOptions) -> Excerpt {
        let ExcerptOptions { whole_chars, chars, line_chars, head_lines, tail_lines } = options;
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
        self.lines += 1;
        let kept = (self.lines, truncate_middle(line, missing, self.line_chars));
        self.has_cut_lines |= missing.is_some() || kept.1.len() != line.len();
        // After one line did not fit at the beginning, none is added there.
        if self.lines == self.head.kept.len() as u64 + 1 && self.head.has_room_for(&kept) {
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

    /// Counts lines that were not read.
    pub fn skip(&mut self, lines: u64) {
        self.lines += lines;
        self.due_after_error = 0;
    }

    /// Finishes the excerpt.
    pub fn finish(mut self) -> ExcerptShown {
        let all = self.head.kept.len() + self.tail.kept.len();
        if (all as u64) < self.lines {
            self.tail.max_chars = self.tail_chars;
            self.tail.shrink();
        }
        let tail_from = self.tail.kept.front().map_or(u64::MAX, |(number, _)| *number);
        self.errors.kept.retain(|(number, _)| *number < tail_from);
        let parts = [self.head, self.errors, self.tail];
        let (mut text, mut shown, mut last) = (String::new(), 0, 0);
        for (number, line) in parts.into_iter().flat_map(|part| part.kept) {
            write_gap(&mut text, number - last - 1);
            text.push_str(&line);
            text.push('\n');
            shown += 1;
            last = number;
        }
        write_gap(&mut text, self.lines - last);
        let (lines, left_out) = (self.lines, self.lines - shown);
        ExcerptShown { text, lines, left_out, has_cut_lines: self.has_cut_lines }
    }

    fn collect_errors(&mut self, kept: &(u64, String)) {
        if reports_error(&kept.1) {
            let known = self.errors.kept.back().map_or(0, |(number, _)| *number);
            let before = self.tail.kept.iter().rev().take(LINES_BEFORE_ERROR).rev();
            let before: Vec<_> = before.filter(|(number, _)| *number > known).cloned().collect();
            for line in before.into_iter().chain([kept.clone()]) {
                self.keep_error(line);
            }
            self.due_after_error = LINES_AFTER_ERROR;
        } else if self.due_after_error > 0 {
            self.due_after_error -= 1;
            self.keep_error(kept.clone());
        }
    }

    fn keep_error(&mut self, line: (u64, String)) {
        if self.errors.has_room_for(&line) {
            self.errors.push(line);
        } else {
            // The first errors matter. A line that does not fit ends the collection.
            self.errors.max_chars = 0;
        }
    }
}

impl LineBuffer {
    fn has_room_for(&self, line: &(u64, String)) -> bool {
        self.kept.len() < self.max_lines && self.chars + chars(&line.1) <= self.max_chars
    }

    fn push(&mut self, line: (u64, String)) {
        self.chars += chars(&line.1);
        self.kept.push_back(line);
    }

    /// Drops the first lines until the rest fits.
    fn shrink(&mut self) {
        while self.kept.len() > self.max_lines || self.chars > self.max_chars {
            let Some((_, line)) = self.kept.pop_front() else { break };
            self.chars -= chars(&line);
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
            lines in prop::collection::vec("[a-z ]{0,70}|error [a-z]{0,9}", 0..80),
            head in prop::option::of(0usize..9), tail in prop::option::of(0usize..9),
        ) {
            let options = ExcerptOptions { head_lines: head, tail_lines: tail, ..OPTIONS };
            let shown = excerpt(options, lines.clone());
            let notes = |line: &&str| line.ends_with(" left out]");
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
