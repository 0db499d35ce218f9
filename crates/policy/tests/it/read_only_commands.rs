//! The real sed, awk and git as judges of the readers of their arguments: random commands that are said to
//! only read change nothing, and start no program that is there to be started.
//!
//! Every file that could be written is compared before and after. `./e` is a program that leaves a mark,
//! as is each line of the input if it is run as a command. More commands with PROPTEST_CASES.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use toolcrib_policy::{Access, Decision, Policy, Profile, SessionApprovals};

/// A script of sed may loop for ever.
const LONGEST: Duration = Duration::from_secs(3);

/// One word in so many of a command is taken from words that act.
fn words(
    usual: &'static [&'static str],
    acting: &'static [&'static str],
) -> impl Strategy<Value = &'static str> {
    prop_oneof![8 => prop::sample::select(usual), 1 => prop::sample::select(acting)]
}

#[test]
fn sed_that_only_reads_leaves_no_mark() {
    // What stands between two delimiters, some of which are in it.
    let usual: &[&str] = &[
        "a",
        "t",
        ".*",
        "x",
        "[",
        "]",
        "[^",
        "[]",
        "[[:alpha:]]",
        "[[:",
        ":]",
        "[.",
        "[=",
        "\\",
        "\\/",
        "\\n",
        "\\\n",
        "\\]",
        "/",
        "|",
        ",",
        ";",
        ";p;",
        "&",
        "$",
        "^",
        " ",
        "#",
        "}",
        "(",
        ")",
    ];
    let acting: &[&str] = &[
        "\n", "e", "w MARK", ";w MARK;", ";e;", "/e;", "/w ./", "[/]", "[|]", "[^/]", r"[\/]",
        ";/e;",
    ];
    let part = prop::collection::vec(words(usual, acting), 0..4);
    let part = part.prop_map(|pieces| pieces.concat()).boxed();
    let flags = words(
        &["", "", "g", "p", "2", "I", "gp", "M"],
        &["e", "w MARK", "gw MARK", "w ./p", "w ./p"],
    );
    let delimiter = prop::sample::select(vec!["/", "/", "/", "|", ",", "#", "[", "a", ";"]);
    let command = prop::sample::select(vec!["s", "s", "s", "y"]);
    let replace = (command, delimiter, part.clone(), part.clone(), flags).prop_map(
        |(command, d, pattern, text, flags)| format!("{command}{d}{pattern}{d}{text}{d}{flags}"),
    );
    let other = words(
        &[
            "p", "d", "1p", "$!N", "1,3p", "2q", "l", "=", "{", "}", "x", "G", "1~2p", "1,+2p",
            "q5", "l 1",
        ],
        &[
            "w MARK",
            "e",
            "1e touch MARK",
            "r a",
            "W MARK",
            "a\\",
            "i t",
            "bx",
            ":x",
            "R a",
            "F",
            "#n",
        ],
    );
    let search = part.prop_map(|part| format!("/{part}/p"));
    let piece = prop_oneof![3 => replace, 1 => other.prop_map(str::to_owned), 1 => search];
    let script =
        prop::collection::vec((piece, prop::sample::select(vec![";", ";", "\n", " ; ", ""])), 1..5);
    let script =
        script.prop_map(|all| all.into_iter().map(|(one, end)| one + end).collect::<String>());
    // Delimiters in brackets, of which versions of sed think differently.
    let bracket =
        prop::sample::select(vec!["[/]", "[^/]", "[]/]", "[", "]", "/", "\\/", "[\\/]", "a"]);
    let text = prop::sample::select(vec![";", "p", ";p;", "/", "a", "]", "\\"]);
    let trap = (
        prop::sample::select(vec!["s/", "s/", "/", "y/", "s|x|y|;s/"]),
        prop::collection::vec(bracket, 1..3),
        prop::collection::vec(text, 1..3),
        prop::sample::select(vec!["w ./p", "e", "p", "", "w ./p;p", "e;/p"]),
    );
    let trap = trap.prop_map(|(start, pattern, text, end)| {
        format!("{start}{}/{}/{end}", pattern.concat(), text.concat())
    });
    let script = prop_oneof![script, trap];
    let options = prop::sample::select(vec!["", "-n ", "-E ", "-z ", "-s "]);
    let command =
        (options, script, any::<bool>()).prop_map(|(options, script, twice)| match twice {
            true => format!("sed {options}-e p -e '{script}' a"),
            false => format!("sed {options}'{script}' a"),
        });
    try_all("sed", command, 6_000, 600);
}

#[test]
fn awk_that_only_reads_leaves_no_mark() {
    let usual: &[&str] = &[
        "{",
        "}",
        "print",
        "print ",
        "$1",
        "$0",
        " ",
        " ",
        ";",
        ";",
        "\n",
        "/a/",
        "/",
        "\"",
        "\"touch MARK\"",
        "\"MARK\"",
        "NR",
        ">=",
        "||",
        "==",
        "=",
        "x",
        "y",
        "(",
        ")",
        ",",
        "BEGIN",
        "END",
        "+",
        "1",
        "\\",
        "if",
        "for",
        "in",
        "[",
        "]",
        "#",
        "!",
        "~",
        "sub(",
        "length",
        "printf ",
        "next",
        "FS",
        "?",
        ":",
        "{print $1}",
        "NR>=2",
        "-",
        "\"%s\"",
    ];
    let acting: &[&str] = &[
        ">",
        ">>",
        "|",
        "|&",
        "system(",
        "getline",
        "close(",
        "> \"MARK\"",
        "| \"sh\"",
        "@load",
        "-f",
        "sys\\\ntem(\"touch MARK\")",
        "ARGV[1]",
    ];
    let program = prop::collection::vec(words(usual, acting), 1..12);
    let options = prop::sample::select(vec!["", "-F: ", "-F , ", "-v x=1 ", "-- "]);
    let command = (options, program)
        .prop_map(|(options, pieces)| format!("awk {options}'{}' a", pieces.concat()));
    try_all("awk", command, 800, 200);
}

#[test]
fn git_that_only_reads_leaves_no_mark() {
    let commands: &[&str] = &[
        "status",
        "log",
        "log",
        "diff",
        "diff",
        "show",
        "blame",
        "describe",
        "shortlog",
        "rev-parse",
        "rev-list",
        "ls-files",
        "ls-tree",
        "grep",
        "branch",
        "branch",
        "tag",
        "remote",
        "stash list",
        "stash show",
        "stash",
        "reflog",
        "reflog",
        "config",
        "config",
        "config",
        "for-each-ref",
        "show-ref",
        "cat-file",
        "worktree list",
        "worktree",
        "diff-tree",
        "diff-index",
        "diff-files",
        "merge-base",
        "name-rev",
        "cherry",
        "range-diff",
        "check-ignore",
        "count-objects",
        "whatchanged",
        "config list",
        "config get",
        "config --get",
        "config --list",
    ];
    let usual: &[&str] = &[
        "HEAD",
        "HEAD",
        "main",
        "a",
        "b",
        "MARK",
        "./e",
        "new",
        "--",
        "--",
        "--",
        "-p",
        "-n",
        "-l",
        "-a",
        "-v",
        "-r",
        "-D",
        "-M",
        "-C",
        "-S",
        "-G",
        "-L",
        "-U",
        "-B",
        "-e",
        "-x",
        "-q",
        "-s",
        "-t",
        "-u",
        "-z",
        "-1",
        "-i",
        "-w",
        "--stat",
        "--all",
        "--oneline",
        "--author",
        "--grep",
        "--since",
        "--date",
        "--format",
        "--format=%h",
        "--pretty",
        "--sort",
        "--sort=refname",
        "--list",
        "--merged",
        "--contains",
        "--points-at",
        "--get",
        "--get-all",
        "--list",
        "--local",
        "--name-only",
        "--cached",
        "--count",
        "--match",
        "--exclude",
        "--unified",
        "--abbrev",
        "--word-diff",
        "--relative",
        "--glob",
        "--show-current",
        "--verify",
        "--max-count",
        "--skip",
        "--not",
        "get",
        "list",
        "show",
        "expire",
        "delete",
        "add",
        "core.pager",
        "core.fsmonitor",
        "core.hooksPath",
        "user.name",
        "1,2:a",
        "1",
        "stash@{0}",
        "refs/heads/new",
        "tree",
        "--graph",
        "--decorate",
        "--follow",
        "--no-merges",
        "--first-parent",
        "--diff-filter",
        "--submodule",
        "--color",
        "--dirty",
        "--tags",
        "--others",
        "--find-object",
        "--encoding",
        "--ignore-rev",
        "--porcelain",
        "--root",
        "--recurse-submodules",
    ];
    let acting: &[&str] = &[
        "--output=MARK",
        "--output",
        "--outp=MARK",
        "-o",
        "-OMARK",
        "-O./e",
        "--open-files-in-pager=./e",
        "--ext-diff",
        "--textconv",
        "--no-index",
        "-f",
        "-d",
        "-m",
        "-c",
        "--unset",
        "--replace-all",
        "--add",
        "--edit",
        "--show-signature",
        "--format=%G?",
        "%G?",
        "%(signature)",
        "--delete",
        "--force",
        "--move",
        "--expire=now",
        "--exec",
        "-Dw",
        "-DO./e",
        "--contents=./e",
        "--set-upstream-to=main",
    ];
    let arguments = prop::collection::vec(words(usual, acting), 0..6);
    let globals = prop::sample::select(vec!["", "", "", "--no-pager ", "-C . ", "-C src ", "-p "]);
    let command = (globals, prop::sample::select(commands), arguments).prop_map(
        |(globals, command, arguments)| {
            let quoted = arguments.iter().map(|word| format!(" '{word}'"));
            format!("git {globals}{command}{}", quoted.collect::<String>())
        },
    );
    try_all("git", command, 3_000, 400);
}

/// Decides on so many random commands, and runs those that are said to only read.
fn try_all(program: &str, command: impl Strategy<Value = String>, cases: u32, least: usize) {
    let place = workspace();
    let place = place.path();
    let before = contents(place);
    let policy = Policy::new(Profile::Cautious).places(vec![place.to_owned()], None);
    let cases = Config::default().cases.max(cases);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let tried = Cell::new(0);
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
        .run(&command, |command| {
            let access = Access::Command(command.clone());
            let decision = policy.decide(&[access], &SessionApprovals::new()).decision;
            if decision == Decision::Allow {
                tried.set(tried.get() + 1);
                run(&command, place);
                let changed = restore(&before, place);
                prop_assert!(changed.is_empty(), "it changed {changed:?}");
            }
            Ok(())
        })
        .unwrap();
    eprintln!("{program}: {} of {cases} commands were said to only read, and ran", tried.get());
    assert!(tried.get() >= least, "only {} commands were tried", tried.get());
}

/// A repository with two commits, a stash and a signature that a program would be started to check.
fn workspace() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let script = r#"
        git init -q -b main . && mkdir src .home && printf '#!/bin/sh\ntouch "$0.MARK" MARK\n' > e && chmod +x e
        git config user.name me && git config user.email me@example.org
        git config gpg.program "$PWD/e" && git config diff.x.command "$PWD/e" && git config core.pager "$PWD/e"
        git config gc.auto 0 && git config diff.x.textconv cat && echo '*.bin diff=x' > .gitattributes
        printf 'touch MARK\na/b touch MARK\n[x] ; t\ntouch MARK\n' > a && cp a b && cp a src/a
        git add . && git commit -qm one && echo more >> a && git commit -qam 'two t' && git tag v0
        echo change >> b && git stash -q && echo left >> a
        { git cat-file commit HEAD | sed '/^committer/a gpgsig x'; } > signed
        git update-ref refs/heads/signed "$(git hash-object -t commit -w signed)" && rm signed
    "#;
    let mut shell = Command::new("sh");
    shell.args(["-ec", script]).current_dir(&place);
    shell.env("HOME", place.path().join(".home")).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    place
}

/// Runs a command with no input, for a while.
fn run(command: &str, place: &Path) {
    let mut shell = Command::new("bash");
    shell.args(["--noprofile", "--norc", "-c", &format!("exec {command}")]).current_dir(place);
    shell.env("HOME", place.join(".home")).env("GIT_CONFIG_NOSYSTEM", "1");
    // Nothing but this is written by commands that only read: a better index.
    shell.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_PAGER", "cat");
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = shell.spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > LONGEST {
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Every file with its content. Not the index: git writes what it has learned of the files into it.
fn contents(place: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut left = vec![place.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => left.push(path),
                false => {
                    let content = std::fs::read(&path).unwrap();
                    files.insert(path, content);
                }
            }
        }
    }
    files.remove(&place.join(".git/index"));
    files
}

/// The files that were changed since. They are as before then, for the next command.
fn restore(before: &BTreeMap<PathBuf, Vec<u8>>, place: &Path) -> Vec<PathBuf> {
    let after = contents(place);
    let names = before.keys().chain(after.keys());
    let changed = names.filter(|name| before.get(*name) != after.get(*name));
    let changed: Vec<PathBuf> = changed.cloned().collect();
    for name in &changed {
        match before.get(name) {
            Some(content) => std::fs::write(name, content).unwrap(),
            None => std::fs::remove_file(name).unwrap(),
        }
    }
    changed
}
