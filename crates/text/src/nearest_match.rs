//! Finds the text that is most similar to a text that was not found, for error messages.

use std::collections::HashMap;

use crate::equivalent::{SoughtText, find_equivalents};
use crate::line_window::{each_line, split_lines};

/// The result of searching for a similar block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Likeness<'a> {
    /// The most similar block.
    Block(NearestMatch<'a>),
    /// No block is similar enough.
    Nothing,
    /// No equal line was found. The file is too large to be searched for similar lines.
    NoLine,
}

/// The block of a file that is most similar to the sought text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestMatch<'a> {
    /// The first line of the block, from 1.
    pub first_line: u64,
    /// The lines of the block as they are in the file.
    pub lines: Vec<&'a [u8]>,
    /// The first line that [`find_equivalents`] does not match: its number, the expected line, and the actual
    /// one (`None` if the file ends before it).
    pub differs: (u64, &'a [u8], Option<&'a [u8]>),
}

/// Number of sought lines that are compared. More would only cost time.
const COMPARED_LINES: usize = 16;

/// Limit of line comparisons, a fraction of a second.
const MAX_PAIRS: usize = 2_000_000;

/// Minimum average similarity of the lines. Showing a less similar block would mislead.
const MIN_SIMILARITY: f64 = 0.5;

/// Limit of byte comparisons in the search for misspelled text, a fraction of a second.
const MAX_BYTE_PAIRS: usize = 40_000_000;

/// Lengths of a line, in bytes, that is searched for misspelled. A shorter one is similar to text in every file.
const MISSPELLED_BYTES: std::ops::RangeInclusive<usize> = 8..=200;

/// One edit is accepted for this many bytes.
const BYTES_PER_EDIT: usize = 4;

/// A line that occurs more often says little about the position of a block.
const MAX_LINE_OCCURRENCES: usize = 200;

/// Finds the block of `text` that is most similar to `wanted`, for display. Whitespace at both ends of a line
/// is ignored. The memory use does not grow with the text.
pub fn nearest_block<'a>(text: &'a [u8], wanted: &'a [u8], terminator: u8) -> Likeness<'a> {
    let wanted = split_lines(wanted, terminator);
    let compared = &wanted[..wanted.len().min(COMPARED_LINES)];
    let lines = memchr::memchr_iter(terminator, text).count() + 1;
    let is_small = lines.saturating_mul(compared.len()) <= MAX_PAIRS;
    let start = if is_small {
        let file = split_lines(text, terminator);
        most_similar(&file, compared).or_else(|| fewest_edits(&file, compared))
    } else {
        most_equal_lines(each_line(text, terminator), &wanted)
    };
    let block = |start: usize| {
        let block: Vec<&[u8]> =
            each_line(text, terminator).skip(start).take(wanted.len()).collect();
        let at = first_mismatch(&block, &wanted, terminator)
            .or_else(|| (0..wanted.len()).find(|&at| block.get(at) != wanted.get(at)))?;
        let differs = ((start + at) as u64 + 1, wanted[at], block.get(at).copied());
        Some(NearestMatch { first_line: start as u64 + 1, lines: block, differs })
    };
    match start.and_then(block) {
        Some(nearest) => Likeness::Block(nearest),
        None if is_small => Likeness::Nothing,
        None => Likeness::NoLine,
    }
}

/// The first line of a block up to which it has no equivalent of the sought lines. `None` if it has one.
fn first_mismatch(block: &[&[u8]], wanted: &[&[u8]], terminator: u8) -> Option<usize> {
    let matches = |lines: usize| {
        let sought = wanted[..lines].join(&b'\n');
        let Ok(sought) = std::str::from_utf8(&sought) else { return false };
        let Some(block) = block.get(..lines) else { return false };
        let is_blank = || block.iter().all(|line| line.trim_ascii().is_empty());
        !find_equivalents(&block.join(&terminator), terminator, &SoughtText::new(sought)).is_empty()
            || sought.trim().is_empty() && is_blank()
    };
    // If the first lines match, fewer of them match, too.
    let (mut matched, mut unmatched) = (0, wanted.len() + 1);
    while matched + 1 < unmatched {
        let middle = usize::midpoint(matched, unmatched);
        if matches(middle) { matched = middle } else { unmatched = middle }
    }
    (matched < wanted.len()).then_some(matched)
}

/// The start of the block whose lines are most similar to `wanted`. The first of equals.
fn most_similar(file: &[&[u8]], wanted: &[&[u8]]) -> Option<usize> {
    let mut best = (0.0, None);
    for start in 0..file.len() {
        let pairs = file[start..].iter().zip(wanted);
        let score: f64 = pairs.map(|(have, want)| similarity(have, want)).sum();
        if score > best.0 && score >= MIN_SIMILARITY * wanted.len() as f64 {
            best = (score, Some(start));
        }
    }
    best.1
}

/// The share of the longer line that both have in common at their ends, from 0 to 1. Cruder than an edit
/// distance, but linear, and right for the usual case of one different word.
fn similarity(have: &[u8], want: &[u8]) -> f64 {
    let (have, want) = (have.trim_ascii(), want.trim_ascii());
    let longer = have.len().max(want.len());
    if longer == 0 {
        return 1.0;
    }
    let prefix = have.iter().zip(want).take_while(|(a, b)| a == b).count();
    let (have, want) = (&have[prefix..], &want[prefix..]);
    let suffix = have.iter().rev().zip(want.iter().rev()).take_while(|(a, b)| a == b).count();
    (prefix + suffix) as f64 / longer as f64
}

/// The start of the block around the text with the fewest edits to the longest sought line. It may be a part of a line.
fn fewest_edits(file: &[&[u8]], wanted: &[&[u8]]) -> Option<usize> {
    let lines = wanted.iter().map(|line| line.trim_ascii()).enumerate();
    let (offset, longest) = lines.max_by_key(|(at, line)| (line.len(), std::cmp::Reverse(*at)))?;
    let bytes: usize = file.iter().map(|line| line.len()).sum();
    if !MISSPELLED_BYTES.contains(&longest.len())
        || bytes.saturating_mul(longest.len()) > MAX_BYTE_PAIRS
    {
        return None;
    }
    let nearest = file.iter().enumerate().map(|(at, line)| (edits_to_part(line, longest), at));
    let (edits, at) = nearest.min()?;
    (edits <= longest.len() / BYTES_PER_EDIT).then(|| at.checked_sub(offset)).flatten()
}

/// The fewest edits that turn a part of `line` into `sought`: inserted, removed and replaced bytes.
fn edits_to_part(line: &[u8], sought: &[u8]) -> usize {
    // For each beginning of `sought`, the fewest edits to a part of the line that ends at the current byte.
    let mut edits: Vec<usize> = (0..=sought.len()).collect();
    let mut fewest = sought.len();
    for byte in line {
        let mut diagonal = 0;
        for (at, want) in sought.iter().enumerate() {
            let replaced = diagonal + usize::from(want != byte);
            diagonal = edits[at + 1];
            edits[at + 1] = replaced.min(diagonal + 1).min(edits[at] + 1);
        }
        fewest = fewest.min(edits[sought.len()]);
    }
    fewest
}

/// For large files: each line that equals a sought one votes for the corresponding start of the block.
/// Linear, but does not find similar lines.
fn most_equal_lines<'a>(
    file: impl Iterator<Item = &'a [u8]>,
    wanted: &[&'a [u8]],
) -> Option<usize> {
    let inked = wanted.iter().map(|line| line.trim_ascii()).filter(|line| !line.is_empty());
    let mut positions: HashMap<&[u8], Vec<usize>> = inked.map(|line| (line, Vec::new())).collect();
    for (at, line) in file.enumerate() {
        let line = line.trim_ascii();
        // More frequent lines are not counted. Blank lines are not looked up.
        if !line.is_empty()
            && let Some(positions) = positions.get_mut(line)
            && positions.len() <= MAX_LINE_OCCURRENCES
        {
            positions.push(at);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (offset, line) in wanted.iter().enumerate() {
        let at_lines =
            positions.get(line.trim_ascii()).filter(|at| at.len() <= MAX_LINE_OCCURRENCES);
        for start in at_lines.into_iter().flatten().filter_map(|at| at.checked_sub(offset)) {
            *votes.entry(start).or_default() += 1;
        }
    }
    // Of equals, the first in the file.
    votes
        .into_iter()
        .max_by_key(|&(start, votes)| (votes, std::cmp::Reverse(start)))
        .map(|(s, _)| s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block<'a>(text: &'a [u8], wanted: &'a [u8]) -> NearestMatch<'a> {
        match nearest_block(text, wanted, b'\n') {
            Likeness::Block(nearest) => nearest,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_block_with_most_equal_lines_wins_and_the_first_difference_is_reported() {
        let text = b"fn f() {\n    1\n}\n\nfn g() {\n    2\n    3\n}\n";
        let nearest = block(text, b"fn g() {\n    2\n    4\n}\n");
        assert_eq!(nearest.first_line, 5);
        assert_eq!(nearest.lines.len(), 4);
        assert_eq!(nearest.differs, (7, b"    4".as_slice(), Some(b"    3".as_slice())));
    }

    #[test]
    fn tolerated_differences_are_not_reported() {
        let nearest = block(b"a = 0\nx = 1   \ny = 2\n", b"x = 1\ny = 3\n");
        assert_eq!(nearest.differs, (3, b"y = 3".as_slice(), Some(b"y = 2".as_slice())));
        let nearest = block(b"  if a:\n      b()\n  c = \"d\"\n", b"if a:\n    b()\nc = 'd'\n");
        assert_eq!(nearest.differs.0, 3, "uniform indentation");
        let nearest = block(b"if a:\n      b()\n  c = 1\n", b"if a:\n  b()\n  c = 2\n");
        assert_eq!(nearest.differs.0, 3, "{nearest:?}");
        let nearest = block(b"let x = first(1);\nsecond(2);\n", b"x = first(1);\nsecond(3)");
        assert_eq!(nearest.differs.0, 2, "the end of a line");
    }

    #[test]
    fn indentation_is_a_difference() {
        let nearest = block(b"\tx = 1\n", b"    x = 1");
        assert_eq!(nearest.differs, (1, b"    x = 1".as_slice(), Some(b"\tx = 1".as_slice())));
    }

    #[test]
    fn a_block_without_an_equal_line_is_found_by_similarity() {
        let text = b"def f(x):\n    return x+1\n\ndef g(x):\n    return x+1\n";
        let nearest = block(text, b"def f(y):\n    return y+1");
        assert_eq!(nearest.first_line, 1);
        assert_eq!(nearest.differs.0, 1);
    }

    #[test]
    fn a_misspelled_part_of_a_line_is_found() {
        let text =
            b"# API\n\n.. autofunction:: version_option\n.. autofunction:: max_width_option\n";
        let sought = b"autofunction:: max_width_optoin";
        assert_eq!(block(text, sought).first_line, 4);
        let sought = b"autofunction:: version_option\n.. autofunktion:: max_widht_option and\n";
        assert_eq!(block(text, sought).first_line, 3);
        assert_eq!(nearest_block(text, b"autocorrelation of values", b'\n'), Likeness::Nothing);
    }

    #[test]
    fn edits_are_counted() {
        for (line, sought, expected) in [
            ("see the option there", "option", 0),
            ("see the opton there", "option", 1),
            ("see the optoin there", "option", 2),
            ("", "option", 6),
        ] {
            assert_eq!(edits_to_part(line.as_bytes(), sought.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn both_search_methods_find_the_same_block() {
        let file: Vec<String> = (0..500).map(|n| format!("line {n} of {}", n * 7)).collect();
        let file: Vec<&[u8]> = file.iter().map(|line| line.as_bytes()).collect();
        let mut wanted = file[300..310].to_vec();
        wanted[4] = b"something else";
        assert_eq!(most_similar(&file, &wanted), Some(300));
        assert_eq!(most_equal_lines(file.into_iter(), &wanted), Some(300));
    }

    #[test]
    fn dissimilar_text_is_not_reported() {
        assert_eq!(nearest_block(b"a\nb\n", b"cccc\ndddd\n", b'\n'), Likeness::Nothing);
        assert_eq!(nearest_block(b"", b"c", b'\n'), Likeness::Nothing);
    }

    #[test]
    fn in_a_large_text_only_equal_lines_are_found() {
        let text = [&b"\n".repeat(MAX_PAIRS)[..], b"one\ntwo\n"].concat();
        assert_eq!(nearest_block(&text, b"onE", b'\n'), Likeness::NoLine);
        assert_eq!(block(&text, b"one\ntwO").first_line, MAX_PAIRS as u64 + 1);
    }
}
