//! `cargo xtask ci`: all checks that a change must pass, the cheapest first.
//!
//! No step asserts on time, because a slow machine is not an error.

use std::time::{Duration, Instant};

use crate::error::Result;
use crate::{
    bench, book, clients, deny, dist, docs, formats, fuzz, layering, nearest, notebooks, packages,
    process, tidy, torture,
};

struct Step {
    name: &'static str,
    what: &'static str,
    run: fn() -> Result<()>,
}

const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "the code is formatted by rustfmt",
        run: || cargo(&["fmt", "--all", "--check"]),
    },
    Step { name: "tidy", what: "the house rules hold", run: tidy::check },
    Step { name: "layering", what: "no crate has a forbidden dependency", run: layering::check },
    Step {
        name: "deny",
        what: "dependencies have a permissive licence, a known source and one version",
        run: deny::check,
    },
    Step {
        name: "dist",
        what: "a release could be made: versions, changelog, metadata, packages, workflow",
        run: dist::check,
    },
    Step {
        name: "clippy",
        what: "no warnings, including tests and examples",
        run: || {
            cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
        },
    },
    Step { name: "test", what: "the tests pass", run: test },
    Step {
        name: "doctest",
        what: "the examples in doc comments run",
        run: || cargo(&["test", "--workspace", "--doc", "--locked"]),
    },
    Step { name: "doc", what: "rustdoc has no warnings", run: doc },
    Step {
        name: "examples",
        what: "the embedding example runs",
        run: || cargo(&["run", "--quiet", "--locked", "-p", "toolcrib", "--example", "embed"]),
    },
    Step { name: "docs", what: "the generated pages of docs/ are current", run: docs::check },
    Step { name: "book", what: "mdBook builds docs/", run: book::build },
    Step {
        name: "formats",
        what: "the APIs' client libraries accept our tool definitions",
        run: formats::check,
    },
    Step {
        name: "notebooks",
        what: "Jupyter's library accepts edited notebooks",
        run: notebooks::check,
    },
    Step {
        name: "clients",
        what: "third-party MCP clients work with both protocol eras, and the conformance suite passes",
        run: clients::check,
    },
    Step {
        name: "fuzz-smoke",
        what: "the fuzz targets pass on some thousands of fixed inputs",
        run: fuzz::smoke,
    },
    Step {
        name: "torture-smoke",
        what: "a sample of every race, fault and crash: no file is torn, lost or leaked",
        run: torture::smoke,
    },
    Step {
        name: "bench-smoke",
        what: "the benchmarks run with right results; times do not matter",
        run: bench::smoke,
    },
];

/// Runs all steps, or the named ones. Stops at the first failure.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if arguments == ["--list"] {
        for step in STEPS {
            println!("  {:<14}{}", step.name, step.what);
        }
        return Ok(());
    }
    let steps = chosen(arguments)?;
    let mut durations = Vec::new();
    for step in &steps {
        println!("── {}", step.name);
        let started = Instant::now();
        let outcome = (step.run)();
        durations.push(started.elapsed());
        println!("   {}\n", seconds(started.elapsed()));
        if let Err(error) = outcome {
            print_summary(&steps, &durations, false);
            let name = step.name;
            return Err(format!(
                "{error}\nci stopped at step `{name}`; to run it alone: cargo xtask ci {name}"
            )
            .into());
        }
    }
    print_summary(&steps, &durations, true);
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<&'static Step>> {
    if names.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    let all_names = || STEPS.iter().map(|step| step.name);
    names
        .iter()
        .map(|name| {
            let step = STEPS.iter().find(|step| step.name == name);
            step.ok_or_else(|| nearest::unknown("step", name, all_names()).into())
        })
        .collect()
}

/// Prints one line per step. `durations` ends at the step that failed.
fn print_summary(steps: &[&Step], durations: &[Duration], succeeded: bool) {
    for (at, step) in steps.iter().enumerate() {
        let failed = !succeeded && at + 1 == durations.len();
        let (outcome, time) = match durations.get(at) {
            None => ("not run", String::new()),
            Some(time) if failed => ("FAILED", seconds(*time)),
            Some(time) => ("ok", seconds(*time)),
        };
        println!("  {:<14}{outcome:<9}{time:>9}", step.name);
    }
    println!("  {:<14}{:<9}{:>9}", "in all", "", seconds(durations.iter().sum()));
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

fn cargo(words: &[&str]) -> Result<()> {
    process::run(&mut process::cargo(words))
}

/// Uses nextest if it is installed: it is faster and runs each test in its own process.
fn test() -> Result<()> {
    // Without these programs the tests pass but skip the parts that need them.
    for package in [packages::BUBBLEWRAP, packages::PYTEST] {
        if let Err(why) = package.obtain() {
            println!("   {why}");
        }
    }
    if process::probe(&mut process::cargo(&["nextest", "--version"])).is_some() {
        cargo(&["nextest", "run", "--workspace", "--locked"])
    } else {
        cargo(&["test", "--workspace", "--locked", "--all-targets"])
    }
}

fn doc() -> Result<()> {
    let words = ["doc", "--workspace", "--no-deps", "--locked", "--document-private-items"];
    process::run(process::cargo(&words).env("RUSTDOCFLAGS", "-D warnings"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Result<Vec<&'static str>> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        Ok(chosen(&words)?.iter().map(|step| step.name).collect())
    }

    #[test]
    fn without_names_all_steps_run() {
        assert_eq!(names(&[]).unwrap().len(), STEPS.len());
    }

    #[test]
    fn named_steps_run_in_the_given_order() {
        assert_eq!(names(&["test", "fmt"]).unwrap(), ["test", "fmt"]);
    }

    #[test]
    fn an_unknown_step_gets_a_suggestion() {
        let error = names(&["clipy"]).unwrap_err().to_string();
        assert_eq!(error, "no step `clipy`; did you mean clippy?");
    }

    #[test]
    fn step_names_are_unique() {
        let mut names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
    }
}
