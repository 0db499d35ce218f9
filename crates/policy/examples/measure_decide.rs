//! Measures the time of a decision in this process: `decide ROUNDS` prints a line of JSON for each kind of
//! access. `cargo xtask bench policy` makes a table of them.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement: it is told how often, and prints what it found"
)]

use std::hint::black_box;
use std::time::Instant;

use toolcrib_policy::{Access, Policy, Profile, Rules, SessionApprovals};

/// The number of rules of a user with many rules.
const RULES: usize = 40;

/// A part of a long script as agents write it: comments and text for people, with commands between.
const PART: &str = "# Look for what is left of the old names, file by file, before anything is changed.\n\
                    for f in src/*.rs; do grep -n 'fn main' \"$f\" | head -5; done\n\
                    echo 'The names above are still in use; those below are only in the documentation.'\n\
                    cat <<'END'\n\
                    A text of some length that goes nowhere but to the terminal, as people write them\n\
                    between two commands, with 'quotes' and $dollars in it that mean no_approvals there.\n\
                    END\n\
                    git log --oneline -5 -- src/lib.rs 2>/dev/null | sed -n '1,3p'\n";

fn main() {
    let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(100);
    let mut rules = String::new();
    for number in 0..RULES {
        rules += &format!(
            "[[rule]]\ndecision = \"allow\"\nkind = \"command\"\ncommands = [\"task-{number} **\"]\n\
             [[rule]]\ndecision = \"deny\"\nkind = \"read\"\npaths = [\"**/secret-{number}/*.key\"]\n"
        );
    }
    let rules = Rules::parse(&rules).unwrap_or_default();
    let places = (vec!["/w/ws".into()], Some("/home/me".into()));
    let policy =
        Policy::new(Profile::Workspace).rules(rules).locations(places.0, places.1).confined(true);
    let script = |kilobytes: usize| {
        let parts = (kilobytes * 1_000).div_ceil(PART.len());
        Access::Command(PART.repeat(parts))
    };
    for (what, access) in [
        ("a file to read", Access::Read("/w/ws/src/lib.rs".into())),
        ("a file to write", Access::Write("/w/ws/src/lib.rs".into())),
        ("git status", Access::Command("git status".into())),
        ("a search, counted", Access::Command("cd src && grep -rn x . 2>/dev/null | wc -l".into())),
        ("a script of 2 kB", script(2)),
        ("a script of 5 kB", script(5)),
        ("a script of 10 kB", script(10)),
        ("a script of 20 kB", script(20)),
    ] {
        measure(&policy, what, &[access], rounds);
    }
}

fn measure(policy: &Policy, what: &str, accesses: &[Access], rounds: usize) {
    let no_approvals = SessionApprovals::new();
    let mut decision = "";
    let mut times: Vec<f64> = (0..rounds.max(1))
        .map(|_| {
            let start = Instant::now();
            decision = black_box(policy.decide(black_box(accesses), &no_approvals)).decision.name();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!(
        "{{\"what\": \"{what}\", \"decision\": \"{decision}\", \"p50\": {p50:.1}, \"p99\": {p99:.1}}}"
    );
}
