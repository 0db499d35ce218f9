//! A real shell as the oracle: a command allowed without approval runs only the commands found by the analysis
//! and writes nothing.

use std::cell::Cell;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use toolcrib_policy::{Access, CommandAnalysis, Decision, Policy, Profile, SessionApprovals, Word};

use crate::{READS, corpus};

/// The time limit of a script.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(3);

#[test]
fn allowed_scripts_run_only_analyzed_commands() {
    let works = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: strace cannot trace here");
        return;
    }
    let mut seen = 0;
    // A login shell also runs the machine's profile.
    for script in corpus(READS).filter(|script| !script.contains("bash -lc")) {
        let script = script.as_str();
        let directory = workspace();
        let (policy, analysis) = analyze(directory.path(), script);
        assert_eq!(decision(&policy, script), Decision::Allow, "{script}");
        let trace = tempfile::NamedTempFile::new().unwrap();
        let mut shell = Command::new("strace");
        shell.args(["-f", "-qq", "-e", "trace=execve", "-e", "signal=none", "-s", "4096", "-o"]);
        shell.arg(trace.path()).args(["bash", "--noprofile", "--norc", "-c", script]);
        run(shell, directory.path());
        let text = std::fs::read_to_string(trace.path()).unwrap();
        for argv in text.lines().filter(|line| line.ends_with("= 0")).skip(1).filter_map(arguments)
        {
            seen += 1;
            let known = analysis.commands.iter().any(|command| matches(&command.words, &argv));
            assert!(known, "{script:?} ran {argv:?}, which the analysis did not find");
        }
        assert_eq!(
            names(directory.path()),
            names(workspace().path()),
            "{script:?} changed something"
        );
    }
    assert!(seen > 50, "only {seen} programs were seen to start");
}

/// Random scripts of pieces that would create the file MARK if they ran.
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
fn no_allowed_script_creates_the_mark() {
    let config = Config { cases: 3_000, failure_persistence: None, ..Config::default() };
    let (allowed, directory) = (Cell::new(0), workspace());
    TestRunner::new_with_rng(config, rng())
        .run(&script(), |script| {
            let (policy, _) = analyze(directory.path(), &script);
            if decision(&policy, &script) == Decision::Allow {
                allowed.set(allowed.get() + 1);
                let mut shell = Command::new("bash");
                shell.args(["--noprofile", "--norc", "-c", &script]);
                run(shell, directory.path());
                prop_assert!(!directory.path().join("MARK").exists(), "it created the mark");
            }
            Ok(())
        })
        .unwrap();
    assert!(allowed.get() > 30, "only {} scripts were allowed", allowed.get());
}

fn rng() -> proptest::test_runner::TestRng {
    proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha)
}

fn workspace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("src")).unwrap();
    for name in ["a", "b", "a.rs", "a.txt", "a.csv", "x.json", "Cargo.toml", "src/lib.rs"] {
        std::fs::write(directory.path().join(name), "one\ntwo\n").unwrap();
    }
    directory
}

fn analyze(directory: &Path, script: &str) -> (Policy, CommandAnalysis) {
    let directory = directory.canonicalize().unwrap();
    // The corpus assumes a workspace at this path.
    let roots = vec![directory.clone(), "/w/ws".into()];
    let policy = Policy::new(Profile::Workspace).locations(roots, Some("/home/me".into()));
    let analysis = policy.analyze_command(&directory, script);
    (policy, analysis)
}

fn decision(policy: &Policy, script: &str) -> Decision {
    policy.decide(&[Access::Command(script.to_owned())], &SessionApprovals::new()).decision
}

/// Runs a shell without input, up to the time limit.
fn run(mut shell: Command, directory: &Path) {
    shell.current_dir(directory).env_remove("BASH_ENV").env("HOME", directory);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = shell.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > SCRIPT_TIMEOUT {
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Parses the arguments of `execve("/bin/ls", ["ls", "-l"], 0x… /* 9 vars */) = 0`.
fn arguments(line: &str) -> Option<Vec<String>> {
    let list = line.split_once(", [")?.1;
    let mut words = Vec::new();
    let mut chars = list.chars();
    while let Some(c) = chars.next() {
        match c {
            ']' => break,
            '"' => {
                let mut word = String::new();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
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

/// Whether the arguments of a started program match a command. An unknown word matches anything.
fn matches(words: &[Word], argv: &[String]) -> bool {
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
