//! Moves changes to the positions where a reader expects them.
//!
//! A run of added or removed lines can often be moved up or down without changing the result: if the line
//! before it equals its last line, or the line after it equals its first line. Like git, this moves each run
//! next to a change of the other text if one is in reach, and otherwise to the position that its indentation
//! suggests.

use super::indent::{Indents, Score};
use super::myers::Changes;

/// Limit of positions compared for one run.
const MAX_POSITIONS: usize = 100;

impl Changes {
    /// Moves every run of removed lines, then every run of added lines.
    pub(super) fn slide(&mut self, old: &[u32], new: &[u32], indents: &[Indents; 2]) {
        let [of_old, of_new] = indents;
        RunSlider {
            lines: old,
            indents: of_old,
            changed: &mut self.removed,
            other: &mut self.added,
        }
        .run();
        RunSlider {
            lines: new,
            indents: of_new,
            changed: &mut self.added,
            other: &mut self.removed,
        }
        .run();
    }
}

/// A run of changed lines, or an empty one between two unchanged lines.
#[derive(Clone, Copy)]
struct Run {
    start: usize,
    end: usize,
}

impl Run {
    fn first(changed: &[bool]) -> Run {
        Run { start: 0, end: end_of_run(changed, 0) }
    }

    fn is_empty(self) -> bool {
        self.start == self.end
    }

    fn len(self) -> usize {
        self.end - self.start
    }

    /// The run after the following unchanged line. `None` after the last.
    fn next(self, changed: &[bool]) -> Option<Run> {
        let start = self.end + 1;
        (self.end < changed.len()).then(|| Run { start, end: end_of_run(changed, start) })
    }

    fn previous(self, changed: &[bool]) -> Option<Run> {
        let end = self.start.checked_sub(1)?;
        Some(Run { start: start_of_run(changed, end), end })
    }
}

fn end_of_run(changed: &[bool], from: usize) -> usize {
    from + changed[from..].iter().take_while(|changed| **changed).count()
}

fn start_of_run(changed: &[bool], to: usize) -> usize {
    to - changed[..to].iter().rev().take_while(|changed| **changed).count()
}

/// The runs of one text, and the parallel runs of the other text, at the same unchanged lines.
struct RunSlider<'a> {
    lines: &'a [u32],
    indents: &'a Indents,
    changed: &'a mut [bool],
    other: &'a mut [bool],
}

impl RunSlider<'_> {
    fn run(mut self) {
        let mut here = Some((Run::first(self.changed), Run::first(self.other)));
        while let Some((run, other)) = here {
            let (run, other) =
                if run.is_empty() { (run, other) } else { self.slide_to_best(run, other) };
            here = run.next(self.changed).zip(other.next(self.other));
        }
    }

    /// Moves a run, merging with runs that it meets, to the best position.
    fn slide_to_best(&mut self, mut run: Run, mut other: Run) -> (Run, Run) {
        let (mut highest_end, mut meets_other);
        loop {
            let length = run.len();
            while self.move_up(&mut run, &mut other) {}
            highest_end = run.end;
            meets_other = !other.is_empty();
            while self.move_down(&mut run, &mut other) {
                meets_other |= !other.is_empty();
            }
            if run.len() == length {
                break;
            }
        }
        if run.end == highest_end {
            return (run, other);
        }
        if meets_other {
            while other.is_empty() && self.move_up(&mut run, &mut other) {}
            return (run, other);
        }
        let best = self.best_end(run, highest_end);
        while run.end > best && self.move_up(&mut run, &mut other) {}
        (run, other)
    }

    /// The end of the run at the position where its indentation fits best. Of equal positions, the lowest.
    fn best_end(&self, run: Run, highest_end: usize) -> usize {
        let length = run.len();
        let first = highest_end
            .max((run.end - length).saturating_sub(1))
            .max(run.end.saturating_sub(MAX_POSITIONS));
        let score =
            |end: usize| Score::of(self.indents, end) + Score::of(self.indents, end - length);
        let mut best = (first, score(first));
        for end in first + 1..=run.end {
            let score = score(end);
            if score.is_as_good_as(&best.1) {
                best = (end, score);
            }
        }
        best.0
    }

    fn move_up(&mut self, run: &mut Run, other: &mut Run) -> bool {
        let Some(before) = run.start.checked_sub(1) else { return false };
        if self.lines[before] != self.lines[run.end - 1] {
            return false;
        }
        let Some(above) = other.previous(self.other) else { return false };
        self.changed[before] = true;
        self.changed[run.end - 1] = false;
        *run = Run { start: start_of_run(self.changed, before), end: run.end - 1 };
        *other = above;
        true
    }

    fn move_down(&mut self, run: &mut Run, other: &mut Run) -> bool {
        if self.lines.get(run.end) != Some(&self.lines[run.start]) {
            return false;
        }
        let Some(below) = other.next(self.other) else { return false };
        self.changed[run.start] = false;
        self.changed[run.end] = true;
        *run = Run { start: run.start + 1, end: end_of_run(self.changed, run.end) };
        *other = below;
        true
    }
}
