//! `cargo xtask torture`: the product under conditions that tests do not make: races, faults, crashes,
//! full disks. Each kind ends with a report, and fails if anything was lost, torn or told that must not
//! be. Everything happens in temporary directories.

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
        what: "ApplyPatch on commits of [REPOSITORY…] or of one made for it, beside git and GNU patch",
        run: patch::run,
    },
    Kind { name: "diff", what: "diffs of random edits beside git's", run: diff::run },
    Kind {
        name: "exec",
        what: "commands: daemons and every way to end them, floods, drips, thousands of them",
        run: exec::run,
    },
    Kind {
        name: "policy",
        what: "scripts of every sort under strace: what is allowed by itself runs what was seen in it",
        run: policy::run,
    },
    Kind {
        name: "sandbox",
        what: "ways out of the sandbox at levels 4 and 2, as root and as nobody, with canaries outside",
        run: sandbox::run,
    },
    Kind {
        name: "search",
        what: "Glob and Grep beside ripgrep and fd, over [DIRECTORY…] and over a tree that changes",
        run: search::run,
    },
    Kind {
        name: "index",
        what: "searches with an index beside searches without: patterns, changes, lost notices, kills",
        run: index::run,
    },
];

/// How much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Effort {
    /// A sample that takes a minute, for CI.
    smoke: bool,
    /// Rounds of each race, where another number is wanted than the usual one.
    rounds: Option<usize>,
}

impl Effort {
    /// The program to torture.
    fn build(self) -> Result<PathBuf> {
        if self.smoke { product::build_debug() } else { product::build_release() }
    }
}

/// The task.
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

/// All kinds, each only a little.
pub(crate) fn smoke() -> Result<()> {
    let effort = Effort { smoke: true, rounds: None };
    KINDS.iter().try_for_each(|kind| (kind.run)(&[], effort))
}

/// The parts that are named, and how much of them.
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
            Err(Usage(format!("--rounds wants a number above 0, not `{word}`")).into())
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
    fn parts_and_options_come_in_any_order() {
        let all = Effort { smoke: false, rounds: None };
        assert_eq!(parsed(&[]), Some((vec![], all)));
        let effort = Effort { smoke: true, rounds: Some(7) };
        let parts = vec!["racers".to_owned(), "kills".to_owned()];
        assert_eq!(parsed(&["racers", "--rounds", "7", "kills", "--smoke"]), Some((parts, effort)));
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [&["--rounds"][..], &["--rounds", "0"], &["--rounds", "x"], &["--quick"]] {
            assert_eq!(parsed(bad), None, "{bad:?}");
        }
    }
}
