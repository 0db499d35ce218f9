//! Measures reports of new syntax errors on valid files: `cargo run --example new_error_rates FILE…`, or with the
//! names of the files on standard input.
//!
//! A false alarm is a report for a change that leads to the file as it is: lines were removed at a random place before.
//! A found error is a report for a change that removes one bracket.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program for measurements: it reads any file, and prints"
)]

use toolcrib_syntax::{Language, new_errors};

/// Changes of each kind for each file.
const CHANGES: u64 = 5;

fn main() {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        files = std::io::stdin().lines().map_while(Result::ok).collect();
    }
    let (mut random, mut changes, mut alarms, mut broken, mut found) = (1_u64, 0, 0, 0, 0);
    let mut next = |below: usize| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap_or(0) % below.max(1)
    };
    for file in &files {
        let Ok(text) = std::fs::read(file) else { continue };
        let name = file.rsplit('/').next().unwrap_or(file);
        let Some(language) = Language::of_file(name, &text) else { continue };
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let brackets: Vec<usize> =
            (0..text.len()).filter(|at| b"(){}[]".contains(&text[*at])).collect();
        for _ in 0..CHANGES {
            let from = next(lines.len());
            let to = (from + 1 + next(20)).min(lines.len());
            let before = [&lines[..from.min(to)], &lines[to..]].concat().concat();
            changes += 1;
            let errors = new_errors(language, Some(&before), &text, &|| false);
            if errors.is_ok_and(|errors| !errors.is_empty()) {
                println!("{file}: false alarm, lines {}-{to}", from + 1);
                alarms += 1;
            }
            let Some(at) = brackets.get(next(brackets.len())) else { continue };
            let mut after = text.clone();
            after.remove(*at);
            broken += 1;
            let errors = new_errors(language, Some(&text), &after, &|| false);
            found += u64::from(errors.is_ok_and(|errors| !errors.is_empty()));
        }
    }
    println!(
        "{} files: {alarms} false alarms in {changes} changes; {found} of {broken} removed brackets found",
        files.len()
    );
}
