//! `torture index`: a search with an index has the same result as one without.
//!
//! The comparison needs the library, which this program does not link. So it runs the library's own tests with
//! many patterns and changes, except in a smoke run, since CI runs these tests anyway. Then it compares the program with ripgrep, killing it while it builds its index and
//! starting it again.

mod mounts;
mod restarts;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

use super::Effort;
use super::report::{Report, Row};

/// The number of patterns, and of changes of a tree.
const PATTERNS: usize = 100_000;
const STEPS: usize = 1_000_000;

/// The library tests to run, each with its package and the unit of its size.
const TESTS: [(&str, &[&str], Counted); 6] = [
    (
        "query: every matching text satisfies its trigram query",
        &["toolcrib-search", "--lib", "trigram_query::"],
        Counted::Patterns,
    ),
    (
        "index: same results as without one",
        &["toolcrib-search", "--test=it", "indexed::"],
        Counted::Patterns,
    ),
    (
        "model: a tree that changes between searches",
        &["toolcrib-search", "--test=it", "model::"],
        Counted::Steps,
    ),
    (
        "structure: definitions of a tree that changes between questions",
        &["toolcrib", "--test=it", "structure_model::"],
        Counted::Steps,
    ),
    (
        "parallel: each session sees its own changes",
        &["toolcrib-search", "--test=it", "parallel::"],
        Counted::Steps,
    ),
    (
        "watches: lost, used up, moved",
        &["toolcrib-search", "--test=it", "watched::"],
        Counted::Steps,
    ),
];

#[derive(Clone, Copy)]
enum Counted {
    Patterns,
    Steps,
}

pub(super) fn run(parts: &[String], effort: Effort) -> Result<()> {
    let mut report = Report::default();
    let patterns = effort.rounds.unwrap_or(PATTERNS);
    let steps = effort.rounds.unwrap_or(STEPS);
    let wanted = |what: &str| parts.is_empty() || parts.iter().any(|part| what.starts_with(part));
    let tests = if effort.smoke { &[][..] } else { &TESTS[..] };
    for (what, words, counted) in tests.iter().filter(|(what, ..)| wanted(what)) {
        let mut command = process::cargo(&["test", "--quiet", "--locked", "--release"]);
        command.arg("-p").args(*words);
        command.env("PROPTEST_CASES", patterns.to_string());
        command.env("TOOLCRIB_STEPS", steps.to_string());
        let mut row = Row::new("library", *what);
        match process::run(&mut command) {
            Ok(()) => match counted {
                Counted::Patterns => row.tally.add_many("patterns", patterns as u64),
                Counted::Steps => row.tally.add_many("changes", steps as u64),
            },
            Err(error) => row.violate(error.to_string(), process::describe(&command)),
        }
        report.add(row);
    }
    if wanted("mounts") {
        mounts::run(&effort.build()?, &mut report)?;
    }
    if wanted("restarts") {
        let peers = effort.peers()?;
        restarts::run(&effort.build()?, &peers, effort, &mut report)?;
    }
    report.finish("index")
}
