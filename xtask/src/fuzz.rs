//! `cargo xtask fuzz`: what must hold for any input, tried on a great many that are odd.
//!
//! The targets are in the crate `fuzz`, which runs as a process of its own: one that is ended by a stack
//! that overflows, or never answers, is a finding like any other. Inputs are made here, from the seeds in
//! `fuzz/seeds`, and are the same for the same `--seed`. Where a nightly compiler and cargo-fuzz are
//! there, libFuzzer goes deeper with the same targets: CONTRIBUTING.md says how.

mod mutate;
mod report;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Result, Usage};
use crate::{nearest, product, workspace};
use trial::Trial;

/// When to stop with a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Elapsed(Duration),
    Executions(u64),
}

/// What the command line says.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    target: Option<String>,
    time: Duration,
    seed: u64,
}

const DEFAULT_TIME: Duration = Duration::from_secs(60);

const DEFAULT_SEED: u64 = 1;

/// For CI: by number and not by time, so that every machine tries the same.
const SMOKE_EXECUTIONS: u64 = 2_000;

/// Those of which each execution starts a process or writes files, and how many are enough for CI.
const SLOW: &[(&str, u64)] =
    &[("backtrack", 300), ("index", 100), ("journal", 600), ("pdf", 150), ("splice", 600)];

/// The task.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = options(arguments)?;
    let mut targets = targets()?;
    if let Some(name) = &options.target {
        if !targets.contains(name) {
            return Err(nearest::unknown("target", name, targets.iter().map(String::as_str)).into());
        }
        targets.retain(|target| target == name);
    }
    let program = product::build_fuzzer()?;
    try_all(&targets, &program, options.seed, |_| Until::Elapsed(options.time))
}

/// A little of every target, the same each time.
pub(crate) fn smoke() -> Result<()> {
    let program = product::build_fuzzer()?;
    try_all(&targets()?, &program, DEFAULT_SEED, |target| {
        let slow = SLOW.iter().find(|(name, _)| *name == target);
        Until::Executions(slow.map_or(SMOKE_EXECUTIONS, |(_, executions)| *executions))
    })
}

fn try_all(
    targets: &[String],
    program: &Path,
    seed: u64,
    until: impl Fn(&str) -> Until,
) -> Result<()> {
    let mut found = 0;
    for target in targets {
        let trial = Trial::new(target, seeds_directory().join(target), program)?;
        let tried = trial.run(seed, until(target))?;
        report::print(target, seed, &tried)?;
        found += usize::from(tried.finding.is_some());
    }
    if found == 0 { Ok(()) } else { Err(format!("findings in {found} targets: see above").into()) }
}

/// There is a directory of seeds for each.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(seeds_directory())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn seeds_directory() -> PathBuf {
    workspace::root().join("fuzz/seeds")
}

fn options(words: &[String]) -> Result<Options> {
    let mut options = Options { target: None, time: DEFAULT_TIME, seed: DEFAULT_SEED };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => options.time = Duration::from_secs(number(word, words.next())?),
            "--seed" => options.seed = number(word, words.next())?,
            name if !name.starts_with('-') && options.target.is_none() => {
                options.target = Some(name.to_owned());
            }
            _ => {
                let text = format!("`{word}`: one target, --seconds N and --seed S are known");
                return Err(Usage(text).into());
            }
        }
    }
    Ok(options)
}

fn number(option: &str, word: Option<&String>) -> Result<u64> {
    let word = word.map_or("nothing", String::as_str);
    word.parse().map_err(|_| Usage(format!("{option} wants a number, not `{word}`")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Option<Options> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        options(&words).ok()
    }

    #[test]
    fn a_target_and_options_come_in_any_order() {
        let usual = Options { target: None, time: DEFAULT_TIME, seed: DEFAULT_SEED };
        assert_eq!(parsed(&[]), Some(usual));
        let target = Some("pdf".to_owned());
        let given = Options { target, time: Duration::from_secs(5), seed: 7 };
        assert_eq!(parsed(&["--seed", "7", "pdf", "--seconds", "5"]), Some(given));
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [&["--seconds"][..], &["--seed", "x"], &["--rounds", "1"], &["pdf", "decode"]] {
            assert_eq!(parsed(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn every_slow_target_is_one() {
        let targets = targets().unwrap();
        assert!(SLOW.iter().all(|(name, _)| targets.iter().any(|target| target == name)));
    }
}
