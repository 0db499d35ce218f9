//! Read-only git commands, by an allow-list of their options.
//!
//! Git accepts abbreviated options, options after operands, and options as values of other options. Here a
//! word that begins with `-` must be a listed option at every position, so its interpretation by git does
//! not matter.
//!
//! The repository's configuration can make some of these commands run programs (`core.fsmonitor`,
//! `textconv`). Tools do not write that configuration.

mod options;

use super::can_be_option;
use crate::command::Word;
use options::{ANY_DIFF, ANY_LOG, BLAME, GREP, LIST_OPTIONS, SUBCOMMANDS, Subcommand};

/// The paths that a git command reads. `None` if it may do more than read.
pub(super) fn reads(arguments: &[Word]) -> Option<Vec<Word>> {
    let mut paths = Vec::new();
    let mut rest = arguments;
    let name = loop {
        let (word, after) = rest.split_first()?;
        match word.known()? {
            "-C" => {
                let (directory, after) = after.split_first()?;
                if can_be_option(directory) {
                    return None;
                }
                paths.push(directory.clone());
                rest = after;
            }
            "--no-pager" | "--no-optional-locks" | "-P" => rest = after,
            text if text.starts_with('-') => return None,
            name => {
                rest = after;
                break name;
            }
        }
    };
    let known: Option<Vec<&str>> = rest.iter().map(Word::known).collect();
    let is_read_only_subcommand = match name {
        "config" => config_is_read_only(&known?),
        "remote" => remote_is_read_only(&known?),
        "worktree" => is_subcommand(&known?, "list", &["--porcelain", "-v", "-z"]),
        "submodule" => is_subcommand(&known?, "status", &["--recursive", "--cached"]),
        "version" => known?.iter().all(|word| *word == "--build-options"),
        "branch" | "tag" => listing_is_read_only(name, &known?),
        _ => {
            paths.extend(paths_read(name, rest)?);
            true
        }
    };
    is_read_only_subcommand.then_some(paths)
}

/// The paths that a subcommand with options and operands reads. `None` if it may do more than read.
fn paths_read(name: &str, rest: &[Word]) -> Option<Vec<Word>> {
    let (subcommand, rest) = match (name, rest.first().and_then(Word::known)) {
        ("stash", Some("list")) => (&ANY_LOG, &rest[1..]),
        ("stash", Some("show")) => (&ANY_DIFF, &rest[1..]),
        ("stash", _) => return None,
        ("reflog", Some("show")) => (&ANY_LOG, &rest[1..]),
        // After options, git takes the first operand as the action.
        ("reflog", _) if rest.iter().any(is_operand) => return None,
        ("reflog", _) => (&ANY_LOG, rest),
        ("blame" | "annotate", _) => (&BLAME, rest),
        ("grep", _) => (&GREP, rest),
        _ => (SUBCOMMANDS.iter().find(|subcommand| subcommand.name == name)?, rest),
    };
    let mut paths = Vec::new();
    let mut only_operands = false;
    let mut may_take_value = false;
    for word in rest {
        match word.known() {
            // After an option that takes a value, `--` would be that value.
            Some("--") => only_operands = !may_take_value,
            Some(text) if is_option(text) => {
                if !subcommand.has(text) {
                    return None;
                }
                may_take_value = subcommand.takes_value(text);
            }
            // `HEAD:path` is an earlier version of that path.
            Some(text) => {
                paths.push(Word::of(text.rsplit_once(':').map_or(text, |(_, path)| path)));
                may_take_value = false;
            }
            None if !only_operands && can_be_option(word) => return None,
            None => {
                paths.push(word.clone());
                may_take_value = false;
            }
        }
    }
    Some(paths)
}

fn is_option(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-')
}

fn is_operand(word: &Word) -> bool {
    !word.known().is_some_and(is_option)
}

impl Subcommand {
    fn has(&self, text: &str) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.strip_prefix("--") {
            Some(long) => {
                let (name, value) = long.split_once('=').unwrap_or((long, ""));
                let is_listed = self.long.iter().any(|names| names.contains(&name))
                    || self.with_value.iter().any(|names| names.contains(&name));
                // Without `=`, the next word would be the value.
                let is_format = matches!(name, "format" | "sort");
                is_listed && !runs_signature_check(value) && (long.contains('=') || !is_format)
            }
            None => {
                let letters = &text[1..];
                let has_value = letters
                    .chars()
                    .next()
                    .is_some_and(|letter| self.letters_with_value.contains(letter));
                has_value
                    || letters.chars().all(|letter| self.letters.contains(letter))
                    || self.takes_number && is_number(letters)
            }
        }
    }

    /// Whether the next word may be the value of this option.
    fn takes_value(&self, text: &str) -> bool {
        match text.strip_prefix("--") {
            Some(long) => self.with_value.iter().any(|names| names.contains(&long)),
            None => text.len() == 2 && text[1..].contains(|c| self.letters_with_value.contains(c)),
        }
    }
}

/// Whether a format or sort key makes git run a program to verify signatures.
fn runs_signature_check(value: &str) -> bool {
    value.contains("%G") || value.contains("signature")
}

/// Whether the words are this subcommand with only these options.
fn is_subcommand(words: &[&str], command: &str, options: &[&str]) -> bool {
    words.split_first().is_some_and(|(first, rest)| {
        *first == command && rest.iter().all(|word| options.contains(word))
    })
}

/// `git remote -v`, `git remote get-url origin`.
fn remote_is_read_only(words: &[&str]) -> bool {
    match words {
        [] | ["-v" | "--verbose"] => true,
        ["get-url", name] | ["get-url", "--all" | "--push", name] => !is_option(name),
        _ => false,
    }
}

/// `git branch -a`, `git tag -l 'v*'`. Without a list option, an operand would create a branch or tag.
fn listing_is_read_only(command: &str, words: &[&str]) -> bool {
    let is_list_option = |word: &&str| match word.split('=').next() {
        // In old versions `git branch -l new` creates a branch.
        Some("-l") => command == "tag",
        Some("--list" | "--contains" | "--no-contains" | "--points-at") => true,
        Some("--merged" | "--no-merged") => true,
        _ => false,
    };
    let lists = words.iter().any(is_list_option);
    words.iter().all(|word| match word.split_once('=') {
        _ if is_list_option(word) => true,
        _ if !is_option(word) => lists,
        Some(("--color" | "--column", _)) => true,
        Some(("--format" | "--sort", value)) => !runs_signature_check(value),
        _ => LIST_OPTIONS.contains(word),
    })
}

/// The action comes first: every word after a key would be part of a new value.
fn config_is_read_only(words: &[&str]) -> bool {
    const MODIFIERS: &[&str] = &[
        "--local",
        "--global",
        "--system",
        "--worktree",
        "--name-only",
        "--show-origin",
        "--show-scope",
        "--null",
        "-z",
        "--includes",
        "--all",
        "--regexp",
        "--bool",
        "--int",
        "--path",
    ];
    let is_modifier = |word: &&&str| MODIFIERS.contains(*word);
    let before = words.iter().take_while(is_modifier).count();
    let (operands, least, most) = match words[before..].split_first() {
        Some((&("--get" | "--get-all" | "--get-regexp"), rest)) => (rest, 1, 2),
        Some((&("--list" | "-l"), rest)) => (rest, 0, 0),
        Some((&"get", rest)) if before == 0 => (rest, 1, 1),
        Some((&"list", rest)) if before == 0 => (rest, 0, 0),
        _ => return false,
    };
    let operands = &operands[operands.iter().take_while(is_modifier).count()..];
    (least..=most).contains(&operands.len()) && !operands.iter().any(|word| is_option(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read_only(line: &str) -> bool {
        reads(&line.split(' ').map(Word::of).collect::<Vec<_>>()).is_some()
    }

    #[test]
    fn recognizes_read_only_commands_by_their_options() {
        for line in [
            "status -sb",
            "log --oneline -20 -- src",
            "log -p -S x --since=2.weeks",
            "log --format=%h --graph --all",
            "diff --cached --stat HEAD~1",
            "show HEAD:src/lib.rs",
            "blame -L 1,10 a.rs",
            "grep -rn x -- src",
            "branch -avv",
            "branch --list x",
            "branch --merged main",
            "tag -l v*",
            "tag",
            "remote get-url origin",
            "config --get user.name",
            "config --local --list",
            "config list --show-origin",
            "config get --all remote.origin.fetch",
            "reflog",
            "reflog show HEAD",
            "reflog -5",
            "stash list",
            "stash show -p stash@{0}",
            "-C src --no-pager rev-parse --abbrev-ref HEAD",
            "ls-files -o --exclude-standard",
            "for-each-ref --format=%(refname)",
            "worktree list --porcelain",
        ] {
            assert!(is_read_only(line), "{line}");
        }
        for line in [
            "config core.fsmonitor ./e list",
            "config core.fsmonitor ./e get",
            "config core.fsmonitor ./e --get",
            "config core.fsmonitor ./e --list",
            "config --local core.fsmonitor ./e",
            "config --get core.fsmonitor ./e x",
            "config --list core.fsmonitor ./e",
            "config --bool core.bare true",
            "config --get --replace-all core.fsmonitor ./e",
            "config -f x --list",
            "config --local list",
            "-C proj.git config core.fsmonitor ./e list",
            "-c core.fsmonitor=./e status",
            "log --author -- --output=x",
            "log -- --output=x",
            "log --outp=x",
            "diff --output x",
            "diff --ext-diff",
            "diff --no-index a b",
            "diff -Ofile",
            "log -pO/x",
            "show --textconv",
            "log --format=%G?",
            "for-each-ref --format=%(signature)",
            "for-each-ref --format %(signature)",
            "for-each-ref --sort=signature:grade",
            "for-each-ref --sort signature",
            "log -DO/etc/passwd",
            "branch --format=%(signature:grade)",
            "log --show-signature",
            "grep -O./e x",
            "grep -nO./e x",
            "grep --open-files-in-pager=./e x",
            "branch new",
            "branch -l new",
            "branch -v new",
            "branch -D x",
            "branch -m --list x",
            "tag v1",
            "tag -d v1",
            "tag -l -d v1",
            "reflog expire",
            "reflog -q delete HEAD@{0}",
            "reflog --all expire",
            "stash",
            "stash drop",
            "remote add x y",
            "remote update",
            "remote show origin",
            "worktree add x",
            "submodule foreach id",
            "rev-list --disk-usage --output=x",
            "blame --contents x a",
            "-p status",
            "--paginate log",
            "--exec-path=. status",
            "--config-env=a.b=C status",
            "ls-remote --upload-pack=x",
        ] {
            assert!(!is_read_only(line), "{line}");
        }
    }
}
