//! git's commands that only look.
//!
//! A repository's own configuration can make some of them run programs (`core.fsmonitor`, `textconv`).
//! Tools do not write that configuration; who unpacks a stranger's repository should know it.

use super::{can_be_option, has_any};
use crate::command::Word;

/// A command of git that only looks, with what would make it do more.
struct Look {
    name: &'static str,
    /// The words behind it that it may have; empty, if it may have any.
    only: &'static [&'static str],
    never: &'static [&'static str],
}

/// What makes any command that shows changes write, run a program, or look outside.
const DIFFING: &[&str] =
    &["--output", "--ext-diff", "--textconv", "--no-index", "-O", "--show-signature", "--contents"];

const fn any(name: &'static str) -> Look {
    Look { name, only: &[], never: DIFFING }
}

const LOOKS: &[Look] = &[
    any("status"),
    any("log"),
    any("diff"),
    any("show"),
    any("blame"),
    any("annotate"),
    any("describe"),
    any("shortlog"),
    any("whatchanged"),
    any("rev-parse"),
    any("rev-list"),
    any("ls-files"),
    any("ls-tree"),
    any("name-rev"),
    any("merge-base"),
    any("show-ref"),
    any("for-each-ref"),
    any("diff-tree"),
    any("diff-index"),
    any("diff-files"),
    any("count-objects"),
    any("check-ignore"),
    any("cherry"),
    any("range-diff"),
    Look { name: "cat-file", only: &[], never: &["--textconv", "--filters", "--batch-command"] },
    Look {
        name: "grep",
        only: &[],
        never: &["-O", "--open-files-in-pager", "--ext-grep", "--no-index"],
    },
    Look {
        name: "branch",
        only: &[
            "-a",
            "-r",
            "-v",
            "-vv",
            "-av",
            "-avv",
            "--all",
            "--remotes",
            "--list",
            "-l",
            "--show-current",
            "--verbose",
            "--no-color",
        ],
        never: &[],
    },
    Look { name: "tag", only: &["-l", "--list", "-n"], never: &[] },
    Look {
        name: "remote",
        only: &["-v", "--verbose", "get-url", "origin", "upstream"],
        never: &[],
    },
    Look { name: "worktree", only: &["list", "--porcelain", "-v"], never: &[] },
    Look { name: "submodule", only: &["status", "--recursive"], never: &[] },
    Look { name: "version", only: &["--build-options"], never: &[] },
];

/// The paths that a command of git looks at, if it only looks.
pub(super) fn reads(arguments: &[Word]) -> Option<Vec<Word>> {
    let mut paths = Vec::new();
    let mut rest = arguments;
    let name = loop {
        let (word, behind) = rest.split_first()?;
        match word.known()? {
            "-C" => {
                let (directory, behind) = behind.split_first()?;
                paths.push(directory.clone());
                rest = behind;
            }
            "--no-pager" | "--no-optional-locks" | "-P" => rest = behind,
            text if text.starts_with('-') => return None,
            name => {
                rest = behind;
                break name;
            }
        }
    };
    match name {
        "stash" => return looks_at_stash(rest).then_some(paths),
        "reflog" => return rest.first().is_none_or(shows).then_some(paths),
        "config" => return looks_at_config(rest).then_some(paths),
        _ => {}
    }
    let look = LOOKS.iter().find(|look| look.name == name)?;
    if !look.only.is_empty() {
        // `git tag v1` makes one; with `-l`, other words are patterns.
        let lists = rest.iter().any(|word| matches!(word.known(), Some("-l" | "--list")));
        let fits = |word: &Word| match word.known() {
            Some(text) => look.only.contains(&text) || lists && !text.starts_with('-'),
            None => false,
        };
        return rest.iter().all(fits).then_some(paths);
    }
    // To check a signature another program is run.
    let checks_signature = |word: &Word| word.known().is_some_and(|text| text.contains("%G"));
    if has_any(rest, look.never) || rest.iter().any(checks_signature) {
        return None;
    }
    for word in rest.iter().filter(|word| !word.shown().starts_with('-')) {
        // `HEAD:path` is that path as it was.
        match word.known().and_then(|text| text.rsplit_once(':')) {
            Some((_, path)) => paths.push(Word::of(path)),
            None => paths.push(word.clone()),
        }
    }
    Some(paths)
}

fn shows(word: &Word) -> bool {
    word.known().is_some_and(|text| text == "show" || text.starts_with('-') || text == "HEAD")
}

fn looks_at_stash(rest: &[Word]) -> bool {
    let looks = rest.first().and_then(Word::known);
    matches!(looks, Some("list" | "show")) && !has_any(&rest[1..], DIFFING)
}

fn looks_at_config(rest: &[Word]) -> bool {
    let gets = rest.iter().any(|word| {
        matches!(
            word.known(),
            Some("--get" | "--get-all" | "--list" | "-l" | "--get-regexp" | "get" | "list")
        )
    });
    let plain = |word: &Word| match word.known() {
        Some(text) => {
            !text.starts_with('-')
                || matches!(
                    text,
                    "--get"
                        | "--get-all"
                        | "--list"
                        | "-l"
                        | "--get-regexp"
                        | "--local"
                        | "--name-only"
                        | "--show-origin"
                )
        }
        None => !can_be_option(word),
    };
    gets && rest.iter().all(plain)
}
