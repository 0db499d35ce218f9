//! Compares our parser with git, and reviews whole files.

use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use toolcrib_policy::git_config::{Variable, parse, review};

/// A key with its value.
type Pair = (Vec<u8>, Option<Vec<u8>>);

/// The variables that git parses from a file; `None` if it fails.
fn read_by_git(directory: &Path, text: &[u8]) -> Option<Vec<Pair>> {
    let file = directory.join("config");
    std::fs::write(&file, text).unwrap();
    let mut git = Command::new("git");
    git.args(["config", "--no-includes", "--list", "-z", "--file"]).arg(&file);
    git.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", directory).current_dir(directory);
    let output = git.output().unwrap();
    if !output.status.success() {
        return None;
    }
    let pair = |entry: &[u8]| match entry.iter().position(|byte| *byte == b'\n') {
        // A key has a line feed only after an escape in a subsection.
        Some(at) => (entry[..at].to_vec(), Some(entry[at + 1..].to_vec())),
        None => (entry.to_vec(), None),
    };
    let entries = output.stdout.split(|byte| *byte == 0);
    let mut pairs: Vec<Pair> = entries.map(pair).collect();
    assert_eq!(pairs.pop(), Some((Vec::new(), None)), "each entry ends with a NUL");
    Some(pairs)
}

fn pair(variable: &Variable) -> Pair {
    let mut key = variable.section.as_bytes().to_vec();
    if let Some(subsection) = &variable.subsection {
        key.push(b'.');
        key.extend(subsection);
    }
    if !key.is_empty() {
        key.push(b'.');
    }
    key.extend(variable.name.as_bytes());
    (key, variable.value.clone())
}

/// Asserts that both parse the same variables. Returns whether there are any.
fn compare(directory: &Path, text: &[u8]) -> bool {
    let shown = text.escape_ascii();
    let theirs = read_by_git(directory, text);
    let ours = parse(text);
    match (&theirs, &ours) {
        (None, Err(_)) => false,
        (Some(theirs), Ok(ours)) => {
            let mut ours: Vec<Pair> = ours.iter().map(pair).collect();
            let mut theirs = theirs.clone();
            if text.contains(&0) {
                // In git's listing a name that ends inside a subsection keeps its case.
                for (key, _) in ours.iter_mut().chain(&mut theirs) {
                    *key = String::from_utf8_lossy(key).to_ascii_lowercase().into_bytes();
                }
            }
            assert_eq!(ours, theirs, "{shown}");
            true
        }
        _ => panic!("{shown}\ngit: {theirs:?}\nours: {ours:?}"),
    }
}

#[test]
fn parses_hand_made_configurations_like_git() {
    let place = tempfile::tempdir().unwrap();
    let long = [b"[a]b=".to_vec(), vec![b'x'; 100_000], b"\n[".to_vec(), vec![b's'; 70_000]];
    let long = [long.concat(), b" \"t\"]\nc".to_vec()].concat();
    let all: &[&[u8]] = &[
        b"",
        b"\xef\xbb\xbf[a]b=c",
        b"\xef\xbb\xbf",
        b"\xef\xbb[a]b=c",
        b"\xef",
        b"[remote \"origin\"]uploadpack=touch X;git-upload-pack #]",
        b"[submodule \"x\"]update=!cmd #]",
        b"[remote \"o\"]\nurl = ext\":\":sh -c id",
        b"[a.b.C]d=e",
        b"[a.b \"C.d\"]e=f",
        b"[a.]b=c",
        b"[.a]b=c",
        b"[.]b=c",
        b"[]b=c",
        b"[a \"\"]b=c",
        b"[ a]b=c",
        b"[a ]b=c",
        b"[a\t \"b\"]c",
        b"[a \"b\" ]c",
        b"[a \"b\\\"c\\\\d\\e\"]f=g",
        b"[a \"b\n\"]c=d",
        b"[a \"b\\\n\"]c=d",
        b"[a\n\"b\"]c=d",
        b"[a\r\n\"b\"]c=d",
        b"[a\r\"b\"]c=d",
        b"[a-b]c-d=e",
        b"[a_b]c=d",
        b"[a]b_c=d",
        b"[a]1b=c",
        b"[1]b=c",
        b"[-]b=c",
        b"a=b",
        b"a",
        b"[a]b=c\r\nd=e\r\n",
        b"[a]b=c\rd",
        b"[a]b=c\r",
        b"[a]b\r",
        b"[a]b\r=c",
        b"[a]b = c \\\n d\\\n\te ; f\n",
        b"[a]b = \\",
        b"[a]b = \\\r\nc",
        b"[a]b = \\x",
        b"[a]b = \"c",
        b"[a]b = \"c\\\nd\"",
        b"[a]b = \"c\nd\"",
        b"[a]b = \"#;\" # d",
        b"[a]b = \"\" c",
        b"[a]b = \"\"",
        b"[a]b =",
        b"[a]b",
        b"[a]b c",
        b"[a]b=c\t  d\x0b\x0ce ",
        b"[a]b=\\t\\b\\n\\\"\\\\",
        b"[a]b=c\n[d]e;f",
        b"[a]b=c [d]e=f",
        b"[a]b;c",
        b"[a][b]c=d",
        b"#[a]\n;b=c\n[a]#b\nc=d",
        b"[core \"fsmonitor\0\"]x = y\0z",
        b"[core \"FsMonitor\0\"]x",
        b"[a \"\0\"]b",
        b"[a]b\0=c",
        b"[a]b=\"\0",
        b"\0[a]b",
        b"[a]\x80=b",
        b"[a]b=\xff\xfe",
        b"[a \"\xff\"]b",
        &long,
    ];
    let read = all.iter().filter(|text| compare(place.path(), text)).count();
    assert_eq!(read, 43);
}

#[test]
fn parses_random_configurations_like_git() {
    let pieces: Vec<&'static [u8]> = vec![
        b"[a]",
        b"[Bc.D]",
        b"[a \"b\"]",
        b"[a \"",
        b"\"]",
        b"[",
        b"]",
        b"\n",
        b"\n",
        b"\n",
        b"\r\n",
        b"\r",
        b" ",
        b" ",
        b"\t",
        b"\x0b",
        b"a",
        b"Bc",
        b"c-1",
        b"=",
        b"=",
        b" = ",
        b"x = y\n",
        b"\"",
        b"\\",
        b"\\\n",
        b"\\n",
        b"\\\"",
        b"\\\\",
        b"\\x",
        b"#",
        b";",
        b".",
        b"-",
        b"_",
        b"1",
        b"\0",
        b"\xc3\xa9",
        b"\xff",
        b"\xef\xbb\xbf",
        b"!x",
        b"ext::",
        b"url",
    ];
    let text = prop::collection::vec(prop::sample::select(pieces), 0..14);
    // Git rejects most purely random text at its first character.
    let text = (any::<bool>(), text).prop_map(|(has_header, pieces)| {
        [if has_header { &b"[a]\nb="[..] } else { b"" }, &pieces.concat()].concat()
    });
    let place = tempfile::tempdir().unwrap();
    // PROPTEST_CASES raises the number.
    let cases = Config::default().cases.max(2_000);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let read = std::cell::Cell::new(0);
    let result = runner.run(&text, |text| {
        read.set(read.get() + usize::from(compare(place.path(), &text)));
        Ok(())
    });
    result.unwrap();
    assert!(read.get() > 500, "only {} of them could be read", read.get());
}

fn dangerous(text: &str) -> Vec<String> {
    review(None, text.as_bytes(), 1).unwrap().dangerous
}

#[test]
fn variables_that_git_writes_are_harmless() {
    let text = r#"
[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
[remote "origin"]
	url = git@github.com:me/it.git
	pushurl = ../beside.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
[branch "pr/1"]
	remote = https://github.com/other/it.git
	merge = refs/heads/fix
[branch "copy"]
	remote = .
	merge = refs/heads/main
[user]
	name = Me
	email = me@example.org
[submodule "libs/x"]
	active = true
	url = https://example.org/x.git
	update = rebase
[extensions]
	worktreeConfig = true
[lfs "https://example.org/it.git/info/lfs"]
	access = basic
[commit]
	gpgSign = false
"#;
    assert_eq!(dangerous(text), Vec::<String>::new());
}

#[test]
fn variables_that_run_programs_are_dangerous() {
    for text in [
        "[core]\nfsmonitor = ./e",
        "[core]hooksPath=h",
        "[core]\n\tpager = e",
        "[core]editor",
        "[core]sshCommand=e",
        "[core]gitProxy=e",
        "[core]askPass=e",
        "[core]attributesFile=a",
        "[core]worktree=/etc",
        "[core]worktree=../..",
        "[core \"\"]bare=true",
        "[core.bare]x=true",
        "[alias]st = !id",
        "[filter \"lfs\"]clean=id",
        "[diff]external=e",
        "[diff \"x\"]textconv=e",
        "[merge \"x\"]driver=e",
        "[include]path=x",
        "[includeIf \"gitdir:~/\"]path=x",
        "[credential]helper=!id",
        "[gpg]program=e",
        "[gpg \"ssh\"]program=e",
        "[sequence]editor=e",
        "[uploadpack]packObjectsHook=e",
        "[http]proxy=x",
        "[url \"ext::sh -c \"]insteadOf=https://",
        "[protocol \"ext\"]allow=always",
        "[trailer \"x\"]command=e",
        "[interactive]diffFilter=e",
        "[pager]log=e",
        "[difftool \"x\"]cmd=e",
        "[gc]recentObjectsHook=e",
        "[remote \"origin\"]uploadpack=touch X;git-upload-pack #]",
        "[remote \"origin\"]vcs=e",
        "[remote \"origin\"]url=ext\":\":sh -c id",
        "[remote \"origin\"]url",
        "[branch \"main\"]remote=ext::id",
        "[remote]pushDefault=ext::id",
        "[submodule \"x\"]update=!cmd #]",
        "[submodule \"x\"]url=-u./e",
        "[commit]gpgSign=true",
        "[commit]template=x",
        "[log]showSignature=true",
        "[unknown]key=1",
        "key=1",
        "[core]bare=\0",
    ] {
        assert_eq!(dangerous(text).len(), 1, "{text}");
    }
}

#[test]
fn a_review_names_the_variable_and_its_line() {
    let text = "[core]\nbare = false\nfsmonitor = e\n[filter \"a b\"]\nclean = e\n";
    assert_eq!(dangerous(text), ["core.fsmonitor (line 3)", "filter.a b.clean (line 5)"]);
}

#[test]
fn variables_of_the_old_file_are_not_dangerous() {
    let old = b"[core]\nfsmonitor = e\n[alias]\nst = status";
    let same = b"[alias]st=\"status\"\n[core]\nbare = true\nfsmonitor = e # the same\n";
    assert_eq!(review(Some(old), same, 1).unwrap().dangerous, Vec::<String>::new());
    let other = b"[core]\nfsmonitor = e2\n";
    assert_eq!(review(Some(old), other, 1).unwrap().dangerous, ["core.fsmonitor (line 2)"]);
    let broken = review(Some(b"[core\nfsmonitor = e"), b"[core]\nfsmonitor = e", 1).unwrap();
    assert_eq!(broken.dangerous.len(), 1);
    assert!(review(Some(old), b"[core\n", 1).is_err());
}
