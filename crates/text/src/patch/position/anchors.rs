//! The lines named by `@@`, which precede a hunk.

use super::line_index::Budget;
use crate::equivalent::MatchLevel;
use crate::patch::file_lines::FileLines;

/// The possible positions of the last anchor, each anchor after the previous one. The inner `Err` has the
/// first anchor that does not occur. `None` if the search costs too much.
pub(super) fn find<'h>(
    file: &FileLines<'_>,
    anchors: &[&'h str],
    budget: &mut Budget,
) -> Option<Result<Vec<usize>, &'h str>> {
    let mut positions: Option<Vec<usize>> = None;
    for &anchor in anchors {
        budget.take(file.len())?;
        let matching = matching_lines(file, anchor);
        let behind = match positions {
            None => matching,
            Some(before) => {
                let next = |position: usize| {
                    matching.get(matching.partition_point(|&line| line <= position)).copied()
                };
                let mut behind: Vec<usize> = before.into_iter().filter_map(next).collect();
                behind.dedup();
                behind
            }
        };
        if behind.is_empty() {
            return Some(Err(anchor));
        }
        positions = Some(behind);
    }
    Some(Ok(positions.unwrap_or_default()))
}

/// The lines that equal an anchor, ignoring whitespace around it and typography. If there is none, the lines
/// that begin with it, since models write only the beginning; then the lines that contain it.
fn matching_lines(file: &FileLines<'_>, anchor: &str) -> Vec<usize> {
    let level = MatchLevel::IndentationAndTypography;
    let anchor = level.key(anchor.as_bytes());
    let lines = |matches: fn(&[u8], &[u8]) -> bool| -> Vec<usize> {
        let all = file.lines().enumerate();
        all.filter(|(_, line)| matches(&level.key(line), &anchor)).map(|(at, _)| at).collect()
    };
    let whole = lines(|line, anchor| line == anchor);
    if !whole.is_empty() {
        return whole;
    }
    let beginning = lines(|line, anchor| line.starts_with(anchor));
    if !beginning.is_empty() {
        return beginning;
    }
    lines(|line, anchor| memchr::memmem::find(line, anchor).is_some())
}
