//! `cargo xtask fuzz`: runs the fuzz targets on many mutated inputs.
//!
//! The targets are in the crate `fuzz`, which runs in its own process: a stack overflow or a hang is a
//! finding like any other. Inputs are generated here from the seeds in `fuzz/seeds` and are the same for the
//! same `--seed`. With a nightly compiler and cargo-fuzz, libFuzzer runs the same targets and reaches more
//! code: see CONTRIBUTING.md.

mod mutate;
mod report;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Result, Usage};
use crate::{nearest, product, workspace};
use trial::Trial;

/// When to stop testing a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Elapsed(Duration),
    Executions(u64),
}

/// The command line options.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    target: Option<String>,
    time: Duration,
    seed: u64,
}

const DEFAULT_TIME: Duration = Duration::from_secs(60);

const DEFAULT_SEED: u64 = 1;

/// For CI: a number rather than a time, so that every machine runs the same inputs.
const SMOKE_EXECUTIONS: u64 = 2_000;

/// Targets whose executions start a process or write files, with their number of executions in CI.
const SLOW: &[(&str, u64)] =
    &[("backtrack", 300), ("index", 100), ("journal", 600), ("pdf", 150), ("splice", 600)];

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
    run_targets(&targets, &program, options.seed, |_| Limit::Elapsed(options.time))
}

/// Runs every target on a few inputs, which are the same each time.
pub(crate) fn smoke() -> Result<()> {
    let program = product::build_fuzzer()?;
    run_targets(&targets()?, &program, DEFAULT_SEED, |target| {
        let slow = SLOW.iter().find(|(name, _)| *name == target);
        Limit::Executions(slow.map_or(SMOKE_EXECUTIONS, |(_, executions)| *executions))
    })
}

fn run_targets(
    targets: &[String],
    program: &Path,
    seed: u64,
    limit: impl Fn(&str) -> Limit,
) -> Result<()> {
    let mut found = 0;
    for target in targets {
        let trial = Trial::new(target, seeds_directory().join(target), program)?;
        let tried = trial.run(seed, limit(target))?;
        report::print(target, seed, &tried)?;
        found += usize::from(tried.finding.is_some());
    }
    if found == 0 { Ok(()) } else { Err(format!("findings in {found} targets: see above").into()) }
}

/// The names of the targets, which are those of the seed directories.
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
    word.parse().map_err(|_| Usage(format!("{option} needs a number, not `{word}`")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Option<Options> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        options(&words).ok()
    }

    #[test]
    fn parses_target_and_options_in_any_order() {
        let usual = Options { target: None, time: DEFAULT_TIME, seed: DEFAULT_SEED };
        assert_eq!(parsed(&[]), Some(usual));
        let target = Some("pdf".to_owned());
        let given = Options { target, time: Duration::from_secs(5), seed: 7 };
        assert_eq!(parsed(&["--seed", "7", "pdf", "--seconds", "5"]), Some(given));
    }

    #[test]
    fn rejects_invalid_options() {
        for bad in [&["--seconds"][..], &["--seed", "x"], &["--rounds", "1"], &["pdf", "decode"]] {
            assert_eq!(parsed(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn slow_targets_exist() {
        let targets = targets().unwrap();
        assert!(SLOW.iter().all(|(name, _)| targets.iter().any(|target| target == name)));
    }
}
