//! Filters lines of output by a pattern, and counts the undecided ones.

use toolcrib_search::{Deadline, LineReason, Pattern};
use toolcrib_text::truncate_line;

use crate::phrases::counted;

/// Lines are matched in batches, because a pattern may run in another process.
const BATCH_BYTES: usize = 256 << 10;

/// Characters shown of an undecided line.
const SHOWN_CHARS: usize = 100;

/// Passes on the lines that match.
pub(super) struct LineFilter<'a> {
    pattern: &'a Pattern,
    stop: Deadline<'a>,
    max_matches: u64,
    /// Lines of the current batch, each with its newline.
    batch: String,
    undecided_lines: UndecidedLines,
}

/// Numbers of lines for which the match is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UndecidedLines {
    /// The pattern backtracks too much on them.
    undecided: u64,
    /// The deadline passed before they were examined.
    unsearched: u64,
}

impl<'a> LineFilter<'a> {
    /// Stops after `max_matches`.
    pub(super) fn new(
        pattern: &'a Pattern,
        stop: Deadline<'a>,
        max_matches: u64,
    ) -> LineFilter<'a> {
        LineFilter {
            pattern,
            stop,
            max_matches,
            batch: String::new(),
            undecided_lines: UndecidedLines::default(),
        }
    }

    /// Adds a line.
    pub(super) fn line(&mut self, line: &str, take: &mut impl FnMut(&str)) {
        self.batch.push_str(line);
        self.batch.push('\n');
        if self.batch.len() >= BATCH_BYTES {
            self.match_batch(take);
        }
    }

    /// Matches the last batch. Returns the numbers of undecided lines.
    pub(super) fn finish(mut self, take: &mut impl FnMut(&str)) -> UndecidedLines {
        self.match_batch(take);
        self.undecided_lines
    }

    fn match_batch(&mut self, take: &mut impl FnMut(&str)) {
        let LineFilter { pattern, stop, max_matches, batch, undecided_lines } = self;
        let searched_to =
            pattern.choose_lines(batch, *max_matches, stop, |line, choice| match choice {
                LineReason::Matches => {
                    *max_matches = max_matches.saturating_sub(1);
                    take(&batch[line]);
                }
                LineReason::Undecided => {
                    undecided_lines.undecided += 1;
                    let line = truncate_line(&batch[line], SHOWN_CHARS);
                    take(&format!(
                        "[undecided: the pattern backtracks too much on this line] {line}"
                    ));
                }
            });
        undecided_lines.unsearched += batch[searched_to..].lines().count() as u64;
        batch.clear();
    }
}

impl UndecidedLines {
    pub(super) fn notes(self) -> impl Iterator<Item = String> {
        let UndecidedLines { undecided, unsearched } = self;
        let undecided = (undecided > 0).then(|| {
            format!("undecided: {}; the pattern backtracks too much", counted(undecided, "line"))
        });
        let unsearched = (unsearched > 0)
            .then(|| format!("out of time: {} not searched", counted(unsearched, "line")));
        undecided.into_iter().chain(unsearched)
    }

    pub(super) fn count(self) -> u64 {
        self.undecided + self.unsearched
    }
}
