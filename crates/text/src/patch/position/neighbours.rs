//! Position hints from neighbouring hunks.

use std::ops::Range;

/// The nearest of several positions is chosen only if the next one is this many times as far.
const NEARER_FACTOR: usize = 4;

/// Position hints from neighbouring hunks.
pub(super) struct Neighbours {
    /// It changes lines within this range.
    pub(super) from: usize,
    pub(super) to: usize,
    /// The offsets of the previous and the next hunk from the lines in their headers.
    pub(super) moved: Vec<isize>,
}

impl Neighbours {
    pub(super) fn contains(&self, changed: Range<usize>) -> bool {
        self.from <= changed.start && changed.end <= self.to
    }

    /// The positions of a hunk that has moved as far as its neighbours.
    pub(super) fn predicted(&self, before: Option<usize>) -> Vec<usize> {
        let Some(before) = before else { return Vec::new() };
        let mut predicted: Vec<usize> =
            self.moved.iter().filter_map(|&by| before.checked_add_signed(by)).collect();
        predicted.dedup();
        if self.moved.is_empty() { vec![before] } else { predicted }
    }
}

/// The position that is much nearer than all others.
pub(super) fn clearly_nearest(starts: &[usize], predicted: &[usize]) -> Option<usize> {
    let distance = |start: usize| predicted.iter().map(|&hit| hit.abs_diff(start)).min();
    let mut by_distance: Vec<(usize, usize)> =
        starts.iter().filter_map(|&start| Some((distance(start)?, start))).collect();
    by_distance.sort_unstable();
    match by_distance[..] {
        [(nearest, start), (next, _), ..] => {
            (nearest.saturating_mul(NEARER_FACTOR) <= next).then_some(start)
        }
        _ => None,
    }
}
