//! `cargo xtask torture`: stress tests under conditions that ordinary tests do not create: races, faults,
//! crashes, full disks. Each kind ends with a report and fails if data was lost, torn or leaked. Everything
//! happens in temporary directories.

mod diff;
mod exec;
mod fs;
mod index;
mod patch;
mod policy;
mod report;
mod sandbox;
mod search;

use std::path::PathBuf;

use crate::error::{Result, Usage};
use crate::{nearest, product};

struct Kind {
    name: &'static str,
    what: &'static str,
    run: fn(&[String], Effort) -> Result<()>,
}

const KINDS: &[Kind] = &[
    Kind {
        name: "fs",
        what: "files: racers, injected faults, kills, a full disk, two editors of one file",
        run: fs::run,
    },
    Kind {
        name: "patch",
        what: "ApplyPatch on commits of [REPOSITORY…] or of a generated one, compared with git and GNU patch",
        run: patch::run,
    },
    Kind { name: "diff", what: "diffs of random edits, compared with git's", run: diff::run },
    Kind {
        name: "exec",
        what: "commands: daemons and every way to end them, large and slow output, thousands of commands",
        run: exec::run,
    },
    Kind {
        name: "policy",
        what: "scripts under strace: an allowed script runs only analyzed commands",
        run: policy::run,
    },
    Kind {
        name: "sandbox",
        what: "escape attempts at levels 4, 3 and 2, as root and as nobody, with canaries outside",
        run: sandbox::run,
    },
    Kind {
        name: "search",
        what: "Glob and Grep compared with ripgrep and fd, on [DIRECTORY…] and on a changing tree",
        run: search::run,
    },
    Kind {
        name: "index",
        what: "searches with an index compared with searches without: patterns, changes, lost events, kills",
        run: index::run,
    },
];

/// The extent of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Effort {
    /// Whether to run only a sample that takes a minute, for CI.
    smoke: bool,
    /// The number of rounds; `None` for the default.
    rounds: Option<usize>,
}

impl Effort {
    /// Builds the program to test.
    fn build(self) -> Result<PathBuf> {
        if self.smoke { product::build_debug() } else { product::build_release() }
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let Some((name, rest)) = arguments.split_first() else {
        for kind in KINDS {
            println!("  {:<14}{}", kind.name, kind.what);
        }
        return Ok(());
    };
    let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
        return Err(nearest::unknown("torture", name, KINDS.iter().map(|kind| kind.name)).into());
    };
    let (parts, effort) = options(rest)?;
    (kind.run)(&parts, effort)
}

/// Runs a sample of all kinds.
pub(crate) fn smoke() -> Result<()> {
    let effort = Effort { smoke: true, rounds: None };
    KINDS.iter().try_for_each(|kind| (kind.run)(&[], effort))
}

/// Parses the names of parts and the options.
fn options(words: &[String]) -> Result<(Vec<String>, Effort)> {
    let mut effort = Effort { smoke: false, rounds: None };
    let mut parts = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--smoke" => effort.smoke = true,
            "--rounds" => effort.rounds = Some(count(words.next())?),
            option if option.starts_with('-') => {
                let text = format!("`{option}`: only --smoke and --rounds N are known");
                return Err(Usage(text).into());
            }
            part => parts.push(part.to_owned()),
        }
    }
    Ok((parts, effort))
}

fn count(word: Option<&String>) -> Result<usize> {
    match word.map(|word| word.parse()) {
        Some(Ok(count)) if count > 0 => Ok(count),
        _ => {
            let word = word.map_or("nothing", String::as_str);
            Err(Usage(format!("--rounds needs a number above 0, not `{word}`")).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Option<(Vec<String>, Effort)> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        options(&words).ok()
    }

    #[test]
    fn parses_parts_and_options_in_any_order() {
        let all = Effort { smoke: false, rounds: None };
        assert_eq!(parsed(&[]), Some((vec![], all)));
        let effort = Effort { smoke: true, rounds: Some(7) };
        let parts = vec!["racers".to_owned(), "kills".to_owned()];
        assert_eq!(parsed(&["racers", "--rounds", "7", "kills", "--smoke"]), Some((parts, effort)));
    }

    #[test]
    fn rejects_invalid_options() {
        for bad in [&["--rounds"][..], &["--rounds", "0"], &["--rounds", "x"], &["--quick"]] {
            assert_eq!(parsed(bad), None, "{bad:?}");
        }
    }
}
