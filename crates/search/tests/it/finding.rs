//! Which lines match, against another engine that is asked line by line.

use std::fs;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use toolcrib_search::{
    Grep, Keep, Letters, Listing, Pattern, Reading, ShownLine, Stop, Wanted, grep,
};

use crate::tree::Grove;

struct Plain;

impl Letters for Plain {
    fn read<'b>(&self, bytes: &'b [u8]) -> Reading<'b> {
        Reading::Text(bytes.into(), None)
    }
}

/// How many hits, and the lines that are shown.
fn find(text: &str, pattern: &str, multiline: bool, keep: Keep) -> (u64, Vec<ShownLine>) {
    let grove = Grove::new();
    fs::write(grove.path().join("f"), text).unwrap();
    let listing = Listing::of_file("f".as_ref());
    let wanted = Wanted { pattern, literal: false, ignore_case: false, multiline };
    let pattern = Pattern::new(wanted).unwrap();
    let never = || false;
    let stop = Stop::new(Instant::now() + Duration::from_secs(60), &never);
    let search = Grep {
        tree: &grove.tree,
        listing: &listing,
        pattern: &pattern,
        letters: &Plain,
        tables: None,
        max_bytes: 1 << 20,
        keep,
        stop: &stop,
    };
    let files = listing.choose(|_| true, |_| true);
    let mut found = (0, Vec::new());
    grep(&search, &files, |_, hits, _| {
        found = (hits.count, hits.lines);
        true
    });
    found
}

const ALL: Keep = Keep { skip: 0, most: u64::MAX, count_to: u64::MAX, before: 0, after: 0 };

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_lines_are_those_that_match_one_by_one(
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
        let (count, shown) = find(&text, pattern, false, Keep { before, after, ..ALL });
        prop_assert_eq!(count, matching.len() as u64);
        // With context: every line that is near enough to one that matches, once, in order.
        let near = |at: &usize| matching.iter().any(|hit| {
            *at as u64 + before >= *hit as u64 && *at as u64 <= *hit as u64 + after
        });
        let expected: Vec<(u64, bool, String)> = (0..lines.len())
            .filter(near)
            .map(|at| (at as u64 + 1, matching.contains(&at), lines[at].to_owned()))
            .collect();
        let told: Vec<(u64, bool, String)> = shown
            .into_iter()
            .map(|line| (line.number, line.hit.is_some(), String::from_utf8(line.text).unwrap()))
            .collect();
        prop_assert_eq!(told, expected);
    }

    #[test]
    fn pages_together_are_the_whole(text in "[ab\n]{0,80}", page in 1_u64..4) {
        let (count, whole) = find(&text, "a", false, ALL);
        let mut pages = Vec::new();
        for skip in (0..count).step_by(usize::try_from(page).unwrap()) {
            pages.extend(find(&text, "a", false, Keep { skip, most: page, ..ALL }).1);
        }
        prop_assert_eq!(pages, whole);
    }

    #[test]
    fn matches_over_lines_are_counted_as_matches(text in "[ab\n]{0,60}") {
        let engine = fancy_regex::Regex::new("(?s)b.a").unwrap();
        let expected = engine.find_iter(&text).count() as u64;
        prop_assert_eq!(find(&text, "b.a", true, ALL).0, expected);
    }
}

#[test]
fn what_would_take_forever_does_not() {
    let text = format!("{}!\n", "a".repeat(40)).repeat(100);
    assert_eq!(find(&text, "(a+)+$", false, ALL).0, 0);
    let (count, _) = find(&text, "(?=(a+)+b)a", false, ALL);
    assert_eq!(count, 0);
}
