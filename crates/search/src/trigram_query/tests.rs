//! Checks queries against full scans, with patterns and texts that match often: every matching text must be
//! accepted.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::backtrack::InThisProcess;
use crate::deadline::Deadline;
use crate::line_matches::{MatchOptions, find};
use crate::pattern::{Pattern, PatternError, PatternOptions};
use crate::trigram;

/// The trigrams of a text, with the line end that an index appends.
struct TextTrigrams(BTreeSet<Trigram>);

impl TextTrigrams {
    fn of(text: &[u8]) -> TextTrigrams {
        let mut grams = BTreeSet::new();
        trigram::for_each_trigram(&[text, b"\n"].concat(), |gram| {
            grams.insert(gram);
        });
        TextTrigrams(grams)
    }

    fn accepts(&self, query: &TrigramQuery) -> bool {
        match query {
            TrigramQuery::All => true,
            TrigramQuery::Gram(gram) => self.0.contains(gram),
            TrigramQuery::Pair(pair) => self.0.range(pair << 7..(pair + 1) << 7).next().is_some(),
            TrigramQuery::And(queries) => queries.iter().all(|query| self.accepts(query)),
            TrigramQuery::Or(queries) => queries.iter().any(|query| self.accepts(query)),
        }
    }
}

fn compiled(pattern: &str, ignore_case: bool, multiline: bool) -> Option<Pattern> {
    compile(PatternOptions { pattern, literal: false, ignore_case, multiline }).ok()
}

fn compile(options: PatternOptions<'_>) -> Result<Pattern, PatternError> {
    let never = || false;
    let stop = Deadline::new(Instant::now() + Duration::from_secs(60), &never);
    Pattern::new(options, &InThisProcess::shared(), &stop)
}

fn matches(pattern: &Pattern, text: &[u8]) -> bool {
    let never = || false;
    let stop = Deadline::new(Instant::now() + Duration::from_secs(60), &never);
    find(pattern, text, MatchOptions::count(1), &stop).count > 0
}

/// Characters with case variants, some beyond ASCII and with another length in UTF-8, and line ends.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "c", "A", "B", "k", "K", "\u{212a}", "s", "S", "\u{17f}", "é", "É", "ß", "漢",
        "1", "_", " ", "\t", "\n", "\r\n", "(", "ab", "sk", "abc", "bcd", "cab", "ask",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Patterns of any shape.
pub(crate) fn any_pattern() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "b",
        "c",
        "k",
        "s",
        "S",
        "K",
        "é",
        "ß",
        "漢",
        "1",
        "_",
        " ",
        r"\(",
        "abc",
        "bcd",
        "sk",
        "ask",
        "abcab",
        r"\n",
        ".",
        r"\w",
        r"\s",
        r"\d",
        r"\W",
        r"\S",
        "[abc]",
        "[a-z]",
        "[^a]",
        "[ks]",
        "[A-Za-z_]",
        "[é漢a]",
        "^",
        "$",
        r"\b",
        r"\B",
        r"\A",
        r"\z",
        "(?-u:\\xc3)",
        "[ab][cd]",
        "(?i)k",
        "(?i:as)",
        "",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(5, 40, 5, |inner| {
        let many = prop::collection::vec(inner.clone(), 1..5);
        prop_oneof![
            4 => many.clone().prop_map(|parts| parts.concat()),
            2 => many.prop_map(|parts| format!("(?:{})", parts.join("|"))),
            3 => (inner.clone(), prop::sample::select(vec![
                "?", "*", "+", "{2}", "{1,3}", "{3,}", "{0}", "??", "+?", "{9}", "{0,2}",
            ])).prop_map(|(part, times)| format!("(?:{part}){times}")),
            1 => inner.prop_map(|part| format!("({part})")),
        ]
    })
}

proptest! {
    #[test]
    fn a_matching_text_is_accepted_by_the_query(
        pattern in any_pattern(),
        ignore_case: bool,
        multiline: bool,
        word: bool,
        texts in prop::collection::vec(any_text(), 1..12),
    ) {
        let pattern = if word { format!(r"\b(?:{pattern})\b") } else { pattern };
        let Some(compiled) = compiled(&pattern, ignore_case, multiline) else { return Ok(()) };
        for text in texts {
            let accepted = TextTrigrams::of(text.as_bytes()).accepts(&compiled.trigram_query);
            let found = matches(&compiled, text.as_bytes());
            prop_assert!(accepted || !found, "{pattern:?} -> {:?} {text:?}", compiled.trigram_query);
        }
    }

    #[test]
    fn a_substring_of_a_text_is_accepted_by_its_query(
        text in any_text(),
        from in 0_usize..40,
        length in 1_usize..9,
        ignore_case: bool,
    ) {
        let piece: String = text.chars().skip(from).take(length).collect();
        let options = PatternOptions { pattern: &piece, literal: true, ignore_case, multiline: true };
        let compiled = compile(options).unwrap();
        prop_assert!(TextTrigrams::of(text.as_bytes()).accepts(&compiled.trigram_query), "{:?}", compiled.trigram_query);
    }
}

#[test]
fn selective_patterns_have_selective_queries() {
    let query =
        |pattern: &str, ignore_case| compiled(pattern, ignore_case, false).unwrap().trigram_query;
    let gram = |text: &[u8; 3]| TrigramQuery::Gram(trigram::trigram(*text));
    assert_eq!(query("abc", false), gram(b"abc"));
    assert_eq!(query("abcd", false), TrigramQuery::And(vec![gram(b"abc"), gram(b"bcd")]));
    assert_eq!(query("abc|bcd", false), TrigramQuery::Or(vec![gram(b"abc"), gram(b"bcd")]));
    assert_eq!(query("a.*bcd", false), gram(b"bcd"));
    assert_eq!(query("ab", false), TrigramQuery::Pair(trigram::trigram([0, b'a', b'b'])));
    assert!(!query("pm_resume", true).is_all() && !query("[A-Z]+_RESUME", false).is_all());
    assert!(!query(r"=\s*~0", false).is_all() && !query(r"\bword\b", false).is_all());
    for all in ["a", "a*", ".", r"\w{5}\s+\w{5}", "[A-Z]{3}", "(?:abc)?", "abc|.", "^$"] {
        assert!(query(all, false).is_all(), "{all}: {:?}", query(all, false));
    }
}

#[test]
fn a_text_without_required_trigrams_is_rejected() {
    let rejects = |pattern: &str, text: &str| {
        !TextTrigrams::of(text.as_bytes())
            .accepts(&compiled(pattern, false, false).unwrap().trigram_query)
    };
    assert!(rejects("PM_RESUME", "pm_resume PM_RESUM") && rejects("[A-Z]+_RESUME", "a_RESUME"));
    assert!(rejects("abc|bcd", "ab cd") && rejects(r"=\s*~0", "= 0"));
}

#[test]
fn the_query_of_a_large_pattern_is_small() {
    fn size(query: &TrigramQuery) -> usize {
        match query {
            TrigramQuery::And(queries) | TrigramQuery::Or(queries) => {
                1 + queries.iter().map(size).sum::<usize>()
            }
            _ => 1,
        }
    }
    let alternatives = (0..2_000).map(|at| format!("word{at}")).collect::<Vec<_>>().join("|");
    let classes = "[abcdefgh]".repeat(400);
    let nested = format!("{}abc{}", "(?:".repeat(60), "{8})".repeat(60));
    for (pattern, ignore_case) in [
        ("long text ".repeat(2_000), true),
        (alternatives, false),
        (classes, false),
        (nested, false),
    ] {
        if let Some(compiled) = compiled(&pattern, ignore_case, false) {
            assert!(size(&compiled.trigram_query) < 30_000, "{}", &pattern[..20]);
        }
    }
}
