//! Finds runs of lines in a file, by numbers that represent the content of lines.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Fit;
use crate::patch::file_lines::FileLines;

/// The number of a line that no hunk contains.
const NOT_IN_HUNKS: u32 = u32::MAX;

/// Limit of line comparisons for all hunks of a file. Hostile input that exceeds it is rejected.
const MAX_COMPARED: usize = 50_000_000;

/// The remaining comparisons.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Budget(MAX_COMPARED)
    }
}

impl Budget {
    /// Consumes comparisons. `None` if not enough are left.
    pub(super) fn take(&mut self, comparisons: usize) -> Option<()> {
        self.0 = self.0.checked_sub(comparisons)?;
        Some(())
    }
}

/// The lines of a file and of its hunks as numbers. Equal lines have equal numbers, for one kind of
/// comparison.
pub(super) struct LineIndex {
    /// By the significant part of a line.
    numbers: HashMap<Vec<u8>, u32>,
    /// The number of each line of the file.
    file: Vec<u32>,
    /// The positions of each number in the file.
    positions: Vec<Vec<u32>>,
}

impl LineIndex {
    /// Indexes a file for these lines of its hunks.
    pub(super) fn new<'h>(
        file: &FileLines<'_>,
        lines: impl Iterator<Item = &'h str>,
        fit: Fit,
    ) -> LineIndex {
        let mut numbers: HashMap<Cow<'_, [u8]>, u32> = HashMap::new();
        for line in lines {
            let next = u32::try_from(numbers.len()).unwrap_or(NOT_IN_HUNKS);
            numbers.entry(fit.key(line.as_bytes())).or_insert(next);
        }
        let mut positions: Vec<Vec<u32>> = vec![Vec::new(); numbers.len()];
        let number_of = |line: &[u8]| numbers.get(&fit.key(line)).copied().unwrap_or(NOT_IN_HUNKS);
        let file: Vec<u32> = file.lines().map(number_of).collect();
        for (at, &number) in (0..).zip(&file) {
            if let Some(positions) = positions.get_mut(number as usize) {
                positions.push(at);
            }
        }
        let numbers = numbers.into_iter().map(|(key, number)| (key.into_owned(), number));
        LineIndex { numbers: numbers.collect(), file, positions }
    }

    /// The positions at which these lines are consecutive, in ascending order. `None` if the search costs too
    /// much.
    pub(super) fn find(&self, lines: &[&str], fit: Fit, budget: &mut Budget) -> Option<Vec<usize>> {
        let number = |line: &&str| self.numbers.get(fit.key(line.as_bytes()).as_ref()).copied();
        let Some(numbers) = lines.iter().map(number).collect::<Option<Vec<u32>>>() else {
            return Some(Vec::new());
        };
        let positions =
            |number: u32| self.positions.get(number as usize).map_or(&[][..], Vec::as_slice);
        // The line that is rarest in the file leads to the others.
        let rarest = numbers.iter().enumerate().min_by_key(|(_, number)| positions(**number).len());
        let Some((offset, &rarest)) = rarest else { return Some(Vec::new()) };
        let mut found = Vec::new();
        for &position in positions(rarest) {
            let Some(start) = (position as usize).checked_sub(offset) else { continue };
            let Some(file_lines) = self.file.get(start..start + numbers.len()) else { continue };
            let same = file_lines.iter().zip(&numbers).take_while(|(one, other)| one == other);
            let same = same.count();
            budget.take(same + 1)?;
            if same == numbers.len() {
                found.push(start);
            }
        }
        Some(found)
    }
}
