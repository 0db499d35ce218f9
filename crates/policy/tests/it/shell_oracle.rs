//! A real shell as the judge: what was allowed by itself runs only what was understood, and writes nothing.

use std::cell::Cell;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use toolcrib_policy::{Access, CommandAnalysis, Decision, Policy, Profile, SessionApprovals, Word};

use crate::{READS, corpus};

/// A script that does not end has shown enough by then.
const LONGEST: Duration = Duration::from_secs(3);

#[test]
fn what_is_allowed_runs_only_what_was_understood() {
    let works = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        eprintln!("not tried: strace cannot trace here");
        return;
    }
    let mut seen = 0;
    // A login shell also runs what the machine's profile says.
    for script in corpus(READS).filter(|script| !script.contains("bash -lc")) {
        let script = script.as_str();
        let place = workspace();
        let (policy, understood) = understood(place.path(), script);
        assert_eq!(decision(&policy, script), Decision::Allow, "{script}");
        let trace = tempfile::NamedTempFile::new().unwrap();
        let mut shell = Command::new("strace");
        shell.args(["-f", "-qq", "-e", "trace=execve", "-e", "signal=none", "-s", "4096", "-o"]);
        shell.arg(trace.path()).args(["bash", "--noprofile", "--norc", "-c", script]);
        run(shell, place.path());
        let text = std::fs::read_to_string(trace.path()).unwrap();
        for argv in text.lines().filter(|line| line.ends_with("= 0")).skip(1).filter_map(arguments)
        {
            seen += 1;
            let known = understood.commands.iter().any(|command| fits(&command.words, &argv));
            assert!(known, "{script:?} ran {argv:?}, which was not seen in it");
        }
        assert_eq!(names(place.path()), names(workspace().path()), "{script:?} changed something");
    }
    assert!(seen > 50, "only {seen} programs were seen to start");
}

/// Pieces of scripts that would leave a mark if they ran.
fn script() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "touch MARK",
        "touch MARK",
        "echo",
        "ls",
        "cat",
        "a",
        "b",
        " ",
        " ",
        " ",
        "\n",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "(",
        ")",
        "{ ",
        "; }",
        "$(",
        ")",
        "`",
        "'",
        "\"",
        "$x",
        "${x:-",
        "}",
        "x=",
        "x='touch MARK'",
        "<<E\n",
        "\nE\n",
        "<<'E'\n",
        ">",
        "> MARK",
        ">>MARK",
        "<",
        "<<<",
        "2>&1",
        "&>",
        "if ",
        "then ",
        "fi",
        "for x in ",
        "; do ",
        "; done",
        "case a in ",
        "a) ",
        ";;",
        " esac",
        "\\",
        "#",
        "!",
        "[[ ",
        " ]]",
        "[ ",
        " ]",
        "$((",
        "))",
        "$[",
        "sh -c ",
        "eval ",
        "xargs ",
        "env ",
        "command ",
        "builtin ",
        "exec ",
        "time ",
        "timeout 1 ",
        "{touch,MARK}",
        "*",
        "~",
        "ls() ",
        "function ls ",
        "\t",
        "$'",
        "\\x74ouch",
        "<(",
        ">(",
        "printf '%s' ",
        "read ",
        "export ",
        "PATH=. ",
        "alias ls=",
        "set -- ",
        "cd ",
        "$1",
        "$@",
        "sort -o MARK ",
        "sed -n 'w MARK' ",
        "find . -exec ",
        "{} \\;",
        "awk ",
        "git ",
        "test -v ",
        "a[$(touch MARK)]",
        "x='a[$(touch MARK)]'",
        "x=1",
        "$((x))",
        "\"$((",
        "))\"",
        "((",
        "x",
        "+",
        "${a[",
        "]}",
        "a=(",
        "${x:=",
        "${!x}",
        "${x:",
        "\\\"",
    ]);
    prop::collection::vec(piece, 1..14).prop_map(|pieces| pieces.concat())
}

#[test]
fn no_script_that_is_allowed_leaves_a_mark() {
    let config = Config { cases: 3_000, failure_persistence: None, ..Config::default() };
    let (allowed, place) = (Cell::new(0), workspace());
    TestRunner::new_with_rng(config, rng())
        .run(&script(), |script| {
            let (policy, _) = understood(place.path(), &script);
            if decision(&policy, &script) == Decision::Allow {
                allowed.set(allowed.get() + 1);
                let mut shell = Command::new("bash");
                shell.args(["--noprofile", "--norc", "-c", &script]);
                run(shell, place.path());
                prop_assert!(!place.path().join("MARK").exists(), "it left a mark");
            }
            Ok(())
        })
        .unwrap();
    assert!(allowed.get() > 30, "only {} scripts were tried", allowed.get());
}

fn rng() -> proptest::test_runner::TestRng {
    proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha)
}

fn workspace() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("src")).unwrap();
    for name in ["a", "b", "a.rs", "a.txt", "a.csv", "x.json", "Cargo.toml", "src/lib.rs"] {
        std::fs::write(place.path().join(name), "one\ntwo\n").unwrap();
    }
    place
}

fn understood(place: &Path, script: &str) -> (Policy, CommandAnalysis) {
    let place = place.canonicalize().unwrap();
    // The table is written for a workspace of this name.
    let roots = vec![place.clone(), "/w/ws".into()];
    let policy = Policy::new(Profile::Workspace).places(roots, Some("/home/me".into()));
    let understood = policy.understand(&place, script);
    (policy, understood)
}

fn decision(policy: &Policy, script: &str) -> Decision {
    policy.decide(&[Access::Command(script.to_owned())], &SessionApprovals::new()).decision
}

/// Runs a shell with no input, for a while.
fn run(mut shell: Command, place: &Path) {
    shell.current_dir(place).env_remove("BASH_ENV").env("HOME", place);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = shell.spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > LONGEST {
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn names(place: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(place).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The words of `execve("/bin/ls", ["ls", "-l"], 0x… /* 9 vars */) = 0`.
fn arguments(line: &str) -> Option<Vec<String>> {
    let list = line.split_once(", [")?.1;
    let mut words = Vec::new();
    let mut letters = list.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ']' => break,
            '"' => {
                let mut word = String::new();
                loop {
                    match letters.next()? {
                        '"' => break,
                        '\\' => match letters.next()? {
                            'n' => word.push('\n'),
                            't' => word.push('\t'),
                            other => word.push(other),
                        },
                        other => word.push(other),
                    }
                }
                words.push(word);
            }
            _ => {}
        }
    }
    Some(words)
}

/// Whether a program was started as a command says. What is not known may be anything.
fn fits(words: &[Word], argv: &[String]) -> bool {
    let base = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let Some((name, first)) = words.first().zip(argv.first()) else { return false };
    if name.known().map(base) != Some(base(first)) {
        return false;
    }
    for (number, word) in words.iter().enumerate().skip(1) {
        if word.glob || word.splits {
            return true;
        }
        match argv.get(number) {
            Some(argument) if word.known().is_none_or(|known| known == argument) => {}
            _ => return false,
        }
    }
    words.len() == argv.len()
}
