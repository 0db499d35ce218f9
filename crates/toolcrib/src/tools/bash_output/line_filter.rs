//! The lines of an output that a pattern matches, and those of which that is not known.

use toolcrib_search::{Deadline, LineReason, Pattern};
use toolcrib_text::truncate_line;

use crate::phrases::counted;

/// Lines are looked at together, since a pattern may run in another process.
const TOGETHER_BYTES: usize = 256 << 10;

/// So much is shown of a line that is not decided.
const SHOWN_CHARS: usize = 100;

/// Takes lines, and hands out those that match.
pub(super) struct Sieve<'a> {
    pattern: &'a Pattern,
    stop: Deadline<'a>,
    most: u64,
    /// Lines that are not looked at yet, each with its end.
    waiting: String,
    left: Left,
}

/// Lines of which it is not known whether they match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// The pattern backtracks too much on them.
    undecided: u64,
    /// Time was over before they were looked at.
    unseen: u64,
}

impl<'a> Sieve<'a> {
    /// For so many matches at most.
    pub(super) fn new(pattern: &'a Pattern, stop: Deadline<'a>, most: u64) -> Sieve<'a> {
        Sieve { pattern, stop, most, waiting: String::new(), left: Left::default() }
    }

    /// Takes a line.
    pub(super) fn line(&mut self, line: &str, take: &mut impl FnMut(&str)) {
        self.waiting.push_str(line);
        self.waiting.push('\n');
        if self.waiting.len() >= TOGETHER_BYTES {
            self.look(take);
        }
    }

    /// Looks at the last lines; answers what is not known.
    pub(super) fn finish(mut self, take: &mut impl FnMut(&str)) -> Left {
        self.look(take);
        self.left
    }

    fn look(&mut self, take: &mut impl FnMut(&str)) {
        let Sieve { pattern, stop, most, waiting, left } = self;
        let looked_to = pattern.choose_lines(waiting, *most, stop, |line, choice| match choice {
            LineReason::Matches => {
                *most = most.saturating_sub(1);
                take(&waiting[line]);
            }
            LineReason::Undecided => {
                left.undecided += 1;
                let line = truncate_line(&waiting[line], SHOWN_CHARS);
                take(&format!("[undecided: the pattern backtracks too much on this line] {line}"));
            }
        });
        left.unseen += waiting[looked_to..].lines().count() as u64;
        waiting.clear();
    }
}

impl Left {
    /// What to say of it.
    pub(super) fn notes(self) -> impl Iterator<Item = String> {
        let Left { undecided, unseen } = self;
        let undecided = (undecided > 0).then(|| {
            format!("undecided: {}; the pattern backtracks too much", counted(undecided, "line"))
        });
        let unseen =
            (unseen > 0).then(|| format!("out of time: {} not searched", counted(unseen, "line")));
        undecided.into_iter().chain(unseen)
    }

    /// How many lines that is.
    pub(super) fn count(self) -> u64 {
        self.undecided + self.unseen
    }
}
