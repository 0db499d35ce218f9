//! Real sed, awk and git as oracles: random commands that are classified as read-only change no file and
//! start no program.
//!
//! Every file is compared before and after. The program `./e`, and each line of the input run as a command,
//! creates a mark. PROPTEST_CASES raises the number of commands.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use toolcrib_policy::{Access, Decision, Policy, Profile, SessionApprovals};

/// A sed script may loop forever.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(3);

/// Random words; one in nine is taken from words with side effects.
fn words(
    ordinary: &'static [&'static str],
    side_effects: &'static [&'static str],
) -> impl Strategy<Value = &'static str> {
    prop_oneof![8 => prop::sample::select(ordinary), 1 => prop::sample::select(side_effects)]
}

#[test]
fn read_only_sed_commands_change_nothing() {
    // Text between two delimiters, which may contain delimiters.
    let ordinary: &[&str] = &[
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
    let side_effects: &[&str] = &[
        "\n", "e", "w MARK", ";w MARK;", ";e;", "/e;", "/w ./", "[/]", "[|]", "[^/]", r"[\/]",
        ";/e;",
    ];
    let part = prop::collection::vec(words(ordinary, side_effects), 0..4);
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
    // Delimiters in brackets, which versions of sed treat differently.
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
    let command = (options, script, any::<bool>()).prop_map(|(options, script, twice)| {
        if twice {
            format!("sed {options}-e p -e '{script}' a")
        } else {
            format!("sed {options}'{script}' a")
        }
    });
    check_read_only_commands("sed", command, 6_000, 600);
}

#[test]
fn read_only_awk_commands_change_nothing() {
    let ordinary: &[&str] = &[
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
    let side_effects: &[&str] = &[
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
    let program = prop::collection::vec(words(ordinary, side_effects), 1..12);
    let options = prop::sample::select(vec!["", "-F: ", "-F , ", "-v x=1 ", "-- "]);
    let command = (options, program)
        .prop_map(|(options, pieces)| format!("awk {options}'{}' a", pieces.concat()));
    check_read_only_commands("awk", command, 800, 200);
}

#[test]
fn read_only_git_commands_change_nothing() {
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
    let ordinary: &[&str] = &[
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
    let side_effects: &[&str] = &[
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
    let arguments = prop::collection::vec(words(ordinary, side_effects), 0..6);
    let globals = prop::sample::select(vec!["", "", "", "--no-pager ", "-C . ", "-C src ", "-p "]);
    let command = (globals, prop::sample::select(commands), arguments).prop_map(
        |(globals, command, arguments)| {
            let quoted = arguments.iter().map(|word| format!(" '{word}'"));
            format!("git {globals}{command}{}", quoted.collect::<String>())
        },
    );
    check_read_only_commands("git", command, 3_000, 400);
}

/// Decides on `cases` random commands and runs those classified as read-only, which must be at least `least`.
fn check_read_only_commands(
    program: &str,
    command: impl Strategy<Value = String>,
    cases: u32,
    least: usize,
) {
    let directory = workspace();
    let directory = directory.path();
    let before = contents(directory);
    let policy = Policy::new(Profile::Cautious).locations(vec![directory.to_owned()], None);
    let cases = Config::default().cases.max(cases);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let allowed = Cell::new(0);
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
        .run(&command, |command| {
            let access = Access::Command(command.clone());
            let decision = policy.decide(&[access], &SessionApprovals::new()).decision;
            if decision == Decision::Allow {
                allowed.set(allowed.get() + 1);
                run(&command, directory);
                let changed = restore(&before, directory);
                prop_assert!(changed.is_empty(), "it changed {changed:?}");
            }
            Ok(())
        })
        .unwrap();
    eprintln!(
        "{program}: {} of {cases} commands were classified as read-only and ran",
        allowed.get()
    );
    assert!(allowed.get() >= least, "only {} commands were read-only", allowed.get());
}

/// A repository with two commits, a stash, and a signature whose verification would start a program.
fn workspace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let script = r#"
        git init -q -b main . && mkdir src .home && printf '#!/bin/sh\ntouch "$0.MARK" MARK\n' > e && chmod +x e
        git config user.name me && git config user.email me@example.org
        git config gpg.program "$PWD/e" && git config diff.x.command "$PWD/e" && git config core.pager "$PWD/e"
        git config gc.auto 0 && git config diff.x.textconv cat && echo '*.bin diff=x' > .gitattributes
        printf 'touch MARK\na/b touch MARK\n[x] ; t\ntouch MARK\n' > a && cp a b && cp a src/a
        git add . && git commit -qm one && echo more >> a && git commit -qam 'two t' && git tag v0
        echo change >> b && git stash -q && echo pending >> a
        { git cat-file commit HEAD | sed '/^committer/a gpgsig x'; } > signed
        git update-ref refs/heads/signed "$(git hash-object -t commit -w signed)" && rm signed
    "#;
    let mut shell = Command::new("sh");
    shell.args(["-ec", script]).current_dir(&directory);
    shell.env("HOME", directory.path().join(".home")).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    directory
}

/// Runs a command without input, up to the time limit.
fn run(command: &str, directory: &Path) {
    let mut shell = Command::new("bash");
    shell.args(["--noprofile", "--norc", "-c", &format!("exec {command}")]).current_dir(directory);
    shell.env("HOME", directory.join(".home")).env("GIT_CONFIG_NOSYSTEM", "1");
    // Read-only commands write only a refreshed index.
    shell.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_PAGER", "cat");
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = shell.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > COMMAND_TIMEOUT {
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Every file with its content, except the index, which git refreshes.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(parent) = pending.pop() {
        for entry in std::fs::read_dir(parent).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let content = std::fs::read(&path).unwrap();
                files.insert(path, content);
            }
        }
    }
    files.remove(&directory.join(".git/index"));
    files
}

/// Restores all files for the next command. Returns the files that had changed.
fn restore(before: &BTreeMap<PathBuf, Vec<u8>>, directory: &Path) -> Vec<PathBuf> {
    let after = contents(directory);
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
