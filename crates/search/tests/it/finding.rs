//! Compares the matching lines with another engine that matches line by line.

use std::borrow::Cow;
use std::fs;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use toolcrib_search::{
    ChunkDecoder, Deadline, Decoded, Decoder, Grep, InThisProcess, LineMatches, Listing,
    MatchOptions, Pattern, PatternOptions, Searched, ShownLine, grep,
};

use crate::tree::TestTree;

struct PlainDecoder;

impl Decoder for PlainDecoder {
    fn read<'b>(&self, bytes: &'b [u8]) -> Decoded<'b> {
        Decoded::Text(bytes.into(), None)
    }

    fn pieces(&self, _beginning: &[u8]) -> Option<Box<dyn ChunkDecoder>> {
        Some(Box::new(PlainDecoder))
    }
}

impl ChunkDecoder for PlainDecoder {
    fn encoding(&self) -> Option<&'static str> {
        None
    }

    fn feed<'b>(&mut self, bytes: &'b [u8], _is_last: bool) -> Cow<'b, [u8]> {
        bytes.into()
    }
}

/// The number of matches, and the lines that are shown.
fn find(text: &str, pattern: &str, multiline: bool, keep: MatchOptions) -> (u64, Vec<ShownLine>) {
    let hits = find_in(text.as_bytes(), pattern, multiline, keep, 1 << 20).0;
    (hits.count, hits.lines)
}

/// The matches in a file that is read whole if it has at most `max_bytes` bytes.
fn find_in(
    text: &[u8],
    pattern: &str,
    multiline: bool,
    keep: MatchOptions,
    max_bytes: u64,
) -> (LineMatches, Searched) {
    let tree_dir = TestTree::new();
    fs::write(tree_dir.path().join("f"), text).unwrap();
    let listing = Listing::of_file("f".as_ref());
    let wanted = PatternOptions { pattern, literal: false, ignore_case: false, multiline };
    let never = || false;
    let stop = Deadline::new(Instant::now() + Duration::from_secs(600), &never);
    let pattern = Pattern::new(wanted, &InThisProcess::shared(), &stop).unwrap();
    let search = Grep {
        tree: &tree_dir.tree,
        listing: &listing,
        pattern: &pattern,
        letters: &PlainDecoder,
        tables: None,
        max_bytes,
        named: true,
        keep,
        stop: &stop,
    };
    let files = listing.choose(|_| true, |_| true);
    let mut found = LineMatches::default();
    let stats = grep(&search, &files, |_, hits, _| {
        found = hits;
        true
    });
    (found, stats)
}

const ALL: MatchOptions =
    MatchOptions { skip: 0, most: u64::MAX, count_to: u64::MAX, before: 0, after: 0 };

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_matching_lines_equal_those_of_another_engine(
        text in "[abc \n]{0,60}",
        pattern in prop::sample::select(vec![
            "a", "ab", "a|b", "a.c", "^a", "c$", "^$", "a*", r"\bab", "[^a]", "a +b", "(a|bc)+", "^[ab]*$",
        ]),
        before in 0_u64..3,
        after in 0_u64..3,
    ) {
        let engine = fancy_regex::Regex::new(pattern).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let matching: Vec<usize> =
            (0..lines.len()).filter(|at| engine.is_match(lines[*at]).unwrap()).collect();
        let (count, shown) = find(&text, pattern, false, MatchOptions { before, after, ..ALL });
        prop_assert_eq!(count, matching.len() as u64);
        // With context: every line near a match, once, in order.
        let near = |at: &usize| matching.iter().any(|hit| {
            *at as u64 + before >= *hit as u64 && *at as u64 <= *hit as u64 + after
        });
        let expected: Vec<(u64, bool, String)> = (0..lines.len())
            .filter(near)
            .map(|at| (at as u64 + 1, matching.contains(&at), lines[at].to_owned()))
            .collect();
        let actual: Vec<(u64, bool, String)> = shown
            .into_iter()
            .map(|line| (line.number, line.hit.is_some(), String::from_utf8(line.text).unwrap()))
            .collect();
        prop_assert_eq!(actual, expected);
    }

    #[test]
    fn pages_together_equal_the_whole_result(text in "[ab\n]{0,80}", page in 1_u64..4) {
        let (count, whole) = find(&text, "a", false, ALL);
        let mut pages = Vec::new();
        for skip in (0..count).step_by(usize::try_from(page).unwrap()) {
            pages.extend(find(&text, "a", false, MatchOptions { skip, most: page, ..ALL }).1);
        }
        prop_assert_eq!(pages, whole);
    }

    #[test]
    fn matches_across_lines_are_counted_as_matches(text in "[ab\n]{0,60}") {
        let engine = fancy_regex::Regex::new("(?s)b.a").unwrap();
        let expected = engine.find_iter(&text).count() as u64;
        prop_assert_eq!(find(&text, "b.a", true, ALL).0, expected);
    }
}

#[test]
fn a_large_file_searched_in_windows_gives_the_same_result() {
    // Lines across window boundaries, one line longer than a window, and a last line without `\n`.
    let mut text: Vec<u8> = Vec::new();
    for number in 0..200_000_u32 {
        text.extend(format!("line {number} {}\n", "x".repeat((number % 40) as usize)).bytes());
    }
    text.extend(b"y".repeat(5 << 20));
    text.extend(b" line 7\nthe last line 199999");
    for pattern in ["line [0-9]*99 ", "line 199999", "(?<=y )line"] {
        for keep in [
            MatchOptions { before: 2, after: 3, ..ALL },
            MatchOptions { most: 10, count_to: 11, ..ALL },
            MatchOptions { skip: 1_000, most: 5, before: 1, after: 1, ..ALL },
            MatchOptions::count(1),
        ] {
            let whole = find_in(&text, pattern, false, keep, u64::MAX);
            assert_eq!(find_in(&text, pattern, false, keep, 0), whole, "{pattern} {keep:?}");
        }
    }
}

#[test]
fn a_line_too_long_for_memory_is_undecided_and_the_others_are_searched() {
    let text = [b"word\n", b"a".repeat(40 << 20).as_slice(), b" word\nno\nword\n"].concat();
    let (hits, stats) = find_in(&text, "word", false, ALL, 0);
    let numbers: Vec<u64> = hits.lines.iter().map(|line| line.number).collect();
    assert_eq!((numbers, hits.undecided.first), (vec![1, 4], vec![2]));
    assert_eq!((stats.searched, stats.undecided, stats.undecided_files), (1, 1, 1));
}

#[test]
fn exponential_patterns_finish() {
    let text = format!("{}!\n", "a".repeat(40)).repeat(100);
    assert_eq!(find(&text, "(a+)+$", false, ALL).0, 0);
    let (count, _) = find(&text, "(?=(a+)+b)a", false, ALL);
    assert_eq!(count, 0);
}
