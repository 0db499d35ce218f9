//! What the hunks around one tell of its place.

use std::ops::Range;

/// The nearest of several places counts only if the next is so many times as far.
const CLEARLY_NEARER: usize = 4;

/// What the hunks around one tell of its place.
pub(super) struct Around {
    /// It changes lines from here to there.
    pub(super) from: usize,
    pub(super) to: usize,
    /// How far they are from where their headers say, the one before and the one after.
    pub(super) moved: Vec<isize>,
}

impl Around {
    pub(super) fn has(&self, changed: Range<usize>) -> bool {
        self.from <= changed.start && changed.end <= self.to
    }

    /// Where a hunk would be that has moved as far as those around it.
    pub(super) fn predicted(&self, before: Option<usize>) -> Vec<usize> {
        let Some(before) = before else { return Vec::new() };
        let mut predicted: Vec<usize> =
            self.moved.iter().filter_map(|&by| before.checked_add_signed(by)).collect();
        predicted.dedup();
        if self.moved.is_empty() { vec![before] } else { predicted }
    }
}

/// The place that is so much nearer than the others that these cannot be meant.
pub(super) fn clearly_nearest(starts: &[usize], predicted: &[usize]) -> Option<usize> {
    let distance = |start: usize| predicted.iter().map(|&hit| hit.abs_diff(start)).min();
    let mut by_distance: Vec<(usize, usize)> =
        starts.iter().filter_map(|&start| Some((distance(start)?, start))).collect();
    by_distance.sort_unstable();
    match by_distance[..] {
        [(nearest, start), (next, _), ..] => {
            (nearest.saturating_mul(CLEARLY_NEARER) <= next).then_some(start)
        }
        _ => None,
    }
}
