//! The lines that two texts do not share: Myers' algorithm in linear space, with git's default heuristics.
//!
//! Three heuristics decide which of several equally short results is found. Lines that the other text lacks are
//! removed before the search. Lines that are very frequent in it are removed as well, if most lines around them
//! are missing from it. An expensive search takes a good split instead of the best one. A test compares the
//! result with git's.

use std::ops::Range;

/// For each line of both texts, whether it is only in that text.
pub(super) struct Changes {
    pub(super) removed: Vec<bool>,
    pub(super) added: Vec<bool>,
}

/// Limit of search steps, about a quarter of a second. After that, everything not yet compared counts as
/// changed.
const MAX_STEPS: u64 = 60_000_000;

/// A line may be removed if the other text has it this often, or as often as the square root of its length.
const MAX_FREQUENT: usize = 1_024;

/// Number of lines around a frequent one that decide whether it is removed.
const FREQUENT_WINDOW: usize = 100;

/// A search is never given up below this cost.
const MIN_MAX_COST: isize = 256;

/// From this cost on, a split after a long run of equal lines is good enough.
const GOOD_ENOUGH_COST: isize = 256;

/// A longer run of equal lines is a long run.
const LONG_RUN: isize = 20;

/// Marks a diagonal that the backward search has not reached. Half of the range, so that a diagonal can be
/// added.
const UNREACHABLE: isize = isize::MAX / 2;

/// A split is good enough if its distance from the start of the search is this many times the cost.
const GOOD_ENOUGH_FACTOR: isize = 4;

impl Changes {
    /// Compares two texts, given as line numbers. Equal lines have equal numbers.
    pub(super) fn between(old: &[u32], new: &[u32]) -> Changes {
        let mut changes =
            Changes { removed: vec![false; old.len()], added: vec![false; new.len()] };
        let prefix = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let (rest_old, rest_new) = (&old[prefix..], &new[prefix..]);
        let ends = rest_old.iter().rev().zip(rest_new.iter().rev());
        let suffix = ends.take_while(|(old, new)| old == new).count();
        let inner = |len: usize| prefix..len - suffix;
        let (in_old, in_new) = (occurrences(old), occurrences(new));
        let old_side = Side::select(old, inner(old.len()), &in_new, &mut changes.removed);
        let new_side = Side::select(new, inner(new.len()), &in_old, &mut changes.added);
        let whole =
            Part { old: 0..old_side.lines.len(), new: 0..new_side.lines.len(), minimal: false };
        Search::new(&old_side, &new_side, &mut changes).run(whole);
        changes
    }
}

/// The number of occurrences of each line.
fn occurrences(lines: &[u32]) -> Vec<usize> {
    let highest = lines.iter().max().map_or(0, |line| *line as usize + 1);
    let mut counts = vec![0; highest];
    lines.iter().for_each(|line| counts[*line as usize] += 1);
    counts
}

/// The lines of a text that are searched.
struct Side {
    lines: Vec<u32>,
    /// The position of each of them in the text.
    positions: Vec<usize>,
}

/// How often the other text has a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frequency {
    Never,
    Sometimes,
    Often,
}

impl Side {
    /// Removes the lines that have no match, or only accidental ones, and marks them as changed.
    fn select(text: &[u32], inner: Range<usize>, in_other: &[usize], changed: &mut [bool]) -> Side {
        let often = power_near_root(text.len()).min(MAX_FREQUENT);
        let frequency = |line: &u32| match in_other.get(*line as usize).copied().unwrap_or(0) {
            0 => Frequency::Never,
            count if count >= often => Frequency::Often,
            _ => Frequency::Sometimes,
        };
        let frequencies: Vec<Frequency> = text[inner.clone()].iter().map(frequency).collect();
        let mut side = Side { lines: Vec::new(), positions: Vec::new() };
        for (at, frequency) in frequencies.iter().enumerate() {
            let position = inner.start + at;
            let is_searched = match frequency {
                Frequency::Never => false,
                Frequency::Sometimes => true,
                Frequency::Often => !is_among_unmatched(&frequencies, at),
            };
            if is_searched {
                side.lines.push(text[position]);
                side.positions.push(position);
            } else {
                changed[position] = true;
            }
        }
        side
    }
}

/// Whether most lines around a frequent one, up to the next ordinary line on each side, have no match.
fn is_among_unmatched(frequencies: &[Frequency], at: usize) -> bool {
    let count = |lines: &mut dyn Iterator<Item = &Frequency>| {
        // The frequent line itself is counted on both sides.
        let (mut never, mut often) = (0, 1);
        for frequency in lines.take(FREQUENT_WINDOW) {
            match frequency {
                Frequency::Never => never += 1,
                Frequency::Often => often += 1,
                Frequency::Sometimes => break,
            }
        }
        (never, often)
    };
    let (never_before, often_before) = count(&mut frequencies[..at].iter().rev());
    if never_before == 0 {
        return false;
    }
    let (never_after, often_after) = count(&mut frequencies[at + 1..].iter());
    let (never, often) = (never_before + never_after, often_before + often_after);
    never_after > 0 && often * 3 < never
}

/// The power of two nearest above the square root of a number.
fn power_near_root(number: usize) -> usize {
    let digits = usize::BITS - number.leading_zeros();
    1 << digits.div_ceil(2)
}

/// A part of both sides that is still to be compared.
struct Part {
    old: Range<usize>,
    new: Range<usize>,
    /// Requires the best split.
    minimal: bool,
}

/// The split of a part, and whether each half requires the best splits.
struct Split {
    old: usize,
    new: usize,
    minimal_before: bool,
    minimal_after: bool,
}

/// The furthest position that a search reached on each diagonal. A diagonal is the old position minus the new
/// one.
struct Frontier {
    reached: Vec<isize>,
    /// The index of diagonal 0.
    zero: isize,
    from: isize,
    to: isize,
}

impl Frontier {
    fn new(old: usize, new: usize) -> Frontier {
        let zero = new.cast_signed() + 1;
        Frontier { reached: vec![0; old + new + 3], zero, from: 0, to: 0 }
    }

    fn begin(&mut self, diagonal: isize, position: isize) {
        (self.from, self.to) = (diagonal, diagonal);
        self.set(diagonal, position);
    }

    fn get(&self, diagonal: isize) -> isize {
        self.reached[(diagonal + self.zero).cast_unsigned()]
    }

    fn set(&mut self, diagonal: isize, position: isize) {
        self.reached[(diagonal + self.zero).cast_unsigned()] = position;
    }

    /// Extends the range by one diagonal on each side, or shrinks it at a boundary. `beyond` marks unreached
    /// diagonals.
    fn widen(&mut self, least: isize, most: isize, beyond: isize) {
        if self.from > least {
            self.from -= 1;
            self.set(self.from - 1, beyond);
        } else {
            self.from += 1;
        }
        if self.to < most {
            self.to += 1;
            self.set(self.to + 1, beyond);
        } else {
            self.to -= 1;
        }
    }

    fn contains(&self, diagonal: isize) -> bool {
        (self.from..=self.to).contains(&diagonal)
    }

    /// Its diagonals in descending order. Every second one has the current cost.
    fn diagonals(&self) -> impl Iterator<Item = isize> + use<> {
        let (from, to) = (self.from, self.to);
        (0..).map(move |step| to - 2 * step).take_while(move |diagonal| *diagonal >= from)
    }
}

struct Search<'a> {
    old: &'a Side,
    new: &'a Side,
    changes: &'a mut Changes,
    forward: Frontier,
    backward: Frontier,
    max_cost: isize,
    steps: u64,
}

impl<'a> Search<'a> {
    fn new(old: &'a Side, new: &'a Side, changes: &'a mut Changes) -> Search<'a> {
        let (olds, news) = (old.lines.len(), new.lines.len());
        let root = power_near_root(olds + news + 3);
        Search {
            old,
            new,
            changes,
            forward: Frontier::new(olds, news),
            backward: Frontier::new(olds, news),
            max_cost: root.cast_signed().max(MIN_MAX_COST),
            steps: 0,
        }
    }

    fn run(mut self, whole: Part) {
        let mut parts = vec![whole];
        while let Some(mut part) = parts.pop() {
            self.strip_equal_ends(&mut part);
            let split =
                if part.old.is_empty() || part.new.is_empty() { None } else { self.split(&part) };
            let Some(split) = split else {
                self.mark(&part);
                continue;
            };
            let Part { old, new, .. } = part;
            parts.push(Part {
                old: split.old..old.end,
                new: split.new..new.end,
                minimal: split.minimal_after,
            });
            parts.push(Part {
                old: old.start..split.old,
                new: new.start..split.new,
                minimal: split.minimal_before,
            });
        }
    }

    fn mark(&mut self, part: &Part) {
        self.old.positions[part.old.clone()].iter().for_each(|at| self.changes.removed[*at] = true);
        self.new.positions[part.new.clone()].iter().for_each(|at| self.changes.added[*at] = true);
    }

    fn strip_equal_ends(&self, part: &mut Part) {
        let (old, new) = (&self.old.lines[part.old.clone()], &self.new.lines[part.new.clone()]);
        let first = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let (old, new) = (&old[first..], &new[first..]);
        let last = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new);
        let last = last.count();
        part.old = part.old.start + first..part.old.end - last;
        part.new = part.new.start + first..part.new.end - last;
    }

    /// The position where two searches meet, one from each end of the part. `None` if no steps are left.
    fn split(&mut self, part: &Part) -> Option<Split> {
        let ends = Ends::of(part);
        self.forward.begin(ends.first_diagonal(), ends.old_from);
        self.backward.begin(ends.last_diagonal(), ends.old_to);
        for cost in 1.. {
            let forward = self.step_forward(&ends);
            let backward = match forward.met {
                Some(_) => Step::default(),
                None => self.step_backward(&ends),
            };
            if let Some((old, new)) = forward.met.or(backward.met) {
                return Some(split_at(old, new, true, true));
            }
            if self.steps > MAX_STEPS {
                return None;
            }
            if part.minimal {
                continue;
            }
            if cost > GOOD_ENOUGH_COST && (forward.long_run || backward.long_run) {
                if let Some((old, new)) = self.good_forward(&ends, cost) {
                    return Some(split_at(old, new, true, false));
                }
                if let Some((old, new)) = self.good_backward(&ends, cost) {
                    return Some(split_at(old, new, false, true));
                }
            }
            if cost >= self.max_cost {
                return Some(self.furthest(&ends));
            }
        }
        None
    }

    fn step_forward(&mut self, ends: &Ends) -> Step {
        let mut step = Step::default();
        self.forward.widen(ends.least_diagonal(), ends.most_diagonal(), -1);
        for diagonal in self.forward.diagonals() {
            let (left, right) = (self.forward.get(diagonal - 1), self.forward.get(diagonal + 1));
            let begin = if left >= right { left + 1 } else { right };
            let (mut old, mut new) = (begin, begin - diagonal);
            while old < ends.old_to && new < ends.new_to && self.same(old, new) {
                (old, new) = (old + 1, new + 1);
            }
            self.count(old - begin);
            step.long_run |= old - begin > LONG_RUN;
            self.forward.set(diagonal, old);
            if ends.is_odd()
                && self.backward.contains(diagonal)
                && self.backward.get(diagonal) <= old
            {
                step.met = Some((old, new));
                break;
            }
        }
        step
    }

    fn step_backward(&mut self, ends: &Ends) -> Step {
        let mut step = Step::default();
        self.backward.widen(ends.least_diagonal(), ends.most_diagonal(), UNREACHABLE);
        for diagonal in self.backward.diagonals() {
            let (left, right) = (self.backward.get(diagonal - 1), self.backward.get(diagonal + 1));
            let begin = if left < right { left } else { right - 1 };
            let (mut old, mut new) = (begin, begin - diagonal);
            while old > ends.old_from && new > ends.new_from && self.same(old - 1, new - 1) {
                (old, new) = (old - 1, new - 1);
            }
            self.count(begin - old);
            step.long_run |= begin - old > LONG_RUN;
            self.backward.set(diagonal, old);
            if !ends.is_odd()
                && self.forward.contains(diagonal)
                && old <= self.forward.get(diagonal)
            {
                step.met = Some((old, new));
                break;
            }
        }
        step
    }

    /// The position furthest from the beginning, if it is far enough and a long run of equal lines precedes
    /// it.
    fn good_forward(&self, ends: &Ends, cost: isize) -> Option<(isize, isize)> {
        let (mut best, mut found) = (GOOD_ENOUGH_FACTOR * cost, None);
        for diagonal in self.forward.diagonals() {
            let old = self.forward.get(diagonal);
            let new = old - diagonal;
            let aside = (diagonal - ends.first_diagonal()).abs();
            let progress = (old - ends.old_from) + (new - ends.new_from) - aside;
            let inside = (ends.old_from + LONG_RUN..ends.old_to).contains(&old)
                && (ends.new_from + LONG_RUN..ends.new_to).contains(&new);
            if progress > best
                && inside
                && (1..=LONG_RUN).all(|back| self.same(old - back, new - back))
            {
                (best, found) = (progress, Some((old, new)));
            }
        }
        found
    }

    /// The position furthest from the end, if it is far enough and a long run of equal lines follows it.
    fn good_backward(&self, ends: &Ends, cost: isize) -> Option<(isize, isize)> {
        let (mut best, mut found) = (GOOD_ENOUGH_FACTOR * cost, None);
        for diagonal in self.backward.diagonals() {
            let old = self.backward.get(diagonal);
            let new = old - diagonal;
            let aside = (diagonal - ends.last_diagonal()).abs();
            let progress = (ends.old_to - old) + (ends.new_to - new) - aside;
            let inside = (ends.old_from + 1..=ends.old_to - LONG_RUN).contains(&old)
                && (ends.new_from + 1..=ends.new_to - LONG_RUN).contains(&new);
            if progress > best && inside && (0..LONG_RUN).all(|on| self.same(old + on, new + on)) {
                (best, found) = (progress, Some((old, new)));
            }
        }
        found
    }

    /// The furthest position that one of the searches has reached.
    fn furthest(&self, ends: &Ends) -> Split {
        let (mut ahead, mut ahead_old) = (-1, -1);
        for diagonal in self.forward.diagonals() {
            let old = self.forward.get(diagonal).min(ends.old_to).min(ends.new_to + diagonal);
            if old + old - diagonal > ahead {
                (ahead, ahead_old) = (old + old - diagonal, old);
            }
        }
        let (mut back, mut back_old) = (isize::MAX, isize::MAX);
        for diagonal in self.backward.diagonals() {
            let old = self.backward.get(diagonal).max(ends.old_from).max(ends.new_from + diagonal);
            if old + old - diagonal < back {
                (back, back_old) = (old + old - diagonal, old);
            }
        }
        if (ends.old_to + ends.new_to) - back < ahead - (ends.old_from + ends.new_from) {
            split_at(ahead_old, ahead - ahead_old, true, false)
        } else {
            split_at(back_old, back - back_old, false, true)
        }
    }

    fn same(&self, old: isize, new: isize) -> bool {
        self.old.lines[old.cast_unsigned()] == self.new.lines[new.cast_unsigned()]
    }

    fn count(&mut self, equal: isize) {
        self.steps += 1 + equal.cast_unsigned() as u64;
    }
}

/// The result of one search step.
#[derive(Default)]
struct Step {
    met: Option<(isize, isize)>,
    long_run: bool,
}

/// The ends of a part as signed positions.
struct Ends {
    old_from: isize,
    old_to: isize,
    new_from: isize,
    new_to: isize,
}

impl Ends {
    fn of(part: &Part) -> Ends {
        Ends {
            old_from: part.old.start.cast_signed(),
            old_to: part.old.end.cast_signed(),
            new_from: part.new.start.cast_signed(),
            new_to: part.new.end.cast_signed(),
        }
    }

    fn first_diagonal(&self) -> isize {
        self.old_from - self.new_from
    }

    fn last_diagonal(&self) -> isize {
        self.old_to - self.new_to
    }

    fn least_diagonal(&self) -> isize {
        self.old_from - self.new_to
    }

    fn most_diagonal(&self) -> isize {
        self.old_to - self.new_from
    }

    /// Whether the two searches meet in a forward step.
    fn is_odd(&self) -> bool {
        (self.first_diagonal() - self.last_diagonal()) % 2 != 0
    }
}

fn split_at(old: isize, new: isize, minimal_before: bool, minimal_after: bool) -> Split {
    Split { old: old.cast_unsigned(), new: new.cast_unsigned(), minimal_before, minimal_after }
}
