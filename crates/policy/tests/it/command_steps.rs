//! The steps of a script hide no part of it.

use proptest::prelude::*;
use toolcrib_policy::command_steps;

use crate::{DESTRUCTIVE, HOSTILE, ORDINARY, READS, corpus};

/// Words of the shell that the steps may leave out: ends of constructs whose begin is shown.
const ENDS: [&str; 5] = ["fi", "done", "}", ")", "&"];

/// The steps, if there are any. Each word of the script must be in one of them.
fn checked_steps(script: &str) -> Option<Vec<String>> {
    let steps = command_steps(script).ok()?;
    let texts: Vec<String> = steps.into_iter().map(|step| step.text).collect();
    let without_comments = script.lines().map(|line| match line.find(" #") {
        Some(at) => &line[..at],
        None => line.strip_prefix('#').map_or(line, |_| ""),
    });
    let words = without_comments.flat_map(|line| line.split([' ', '\t', ';', '(', ')']));
    for word in words.filter(|word| !word.is_empty() && !ENDS.contains(word) && *word != "\\") {
        let is_shown = texts.iter().any(|text| text.contains(word));
        assert!(is_shown, "{script:?} hides {word:?}: {texts:?}");
    }
    Some(texts)
}

#[test]
fn redirections_without_a_command_are_steps() {
    assert_eq!(checked_steps("> main.rs; make").unwrap(), ["> main.rs", "make"]);
    assert_eq!(checked_steps("make && >> a 2> b").unwrap(), ["make", "&& >> a 2> b"]);
    assert!(command_steps("> main.rs").unwrap()[0].writes);
}

#[test]
fn a_script_with_parts_outside_of_steps_is_not_split() {
    for script in [
        "ls() { make; }; ls",
        "f() { make; } > out; f",
        "case $x in a|\"$(rm y)\") make;; esac",
        "((x = 1)); make",
    ] {
        if let Some(steps) = checked_steps(script) {
            panic!("{script:?}: {steps:?}");
        }
    }
    let reason = command_steps("make\nf() { ls; }").unwrap_err();
    assert_eq!(reason, "line 2 has a part that is not a simple command");
}

#[test]
fn unusual_places_of_words_are_not_hidden() {
    for script in [
        // White space of other scripts is part of words, and `#` inside a word begins no comment.
        "make;}#; rm x",
        "make\u{a0}; ls \u{a0}",
        "ls \r\nmake",
        "make \\\n#x; ls",
        "f() { make; } 2> out; f",
        "function f { make; } <<E\ntext $(rm x)\nE\nf",
        "f() if true; then make; fi > out; f",
        "case x in (a|$(rm y)) make;; esac > out",
        "a[$(rm x)]=1; make",
        "for ((i=$(rm x);i<1;i++)); do make; done > out",
        "[[ a ]] > out; make",
        "((1)) > out; make",
        "make | { cat; } > out",
        "while false; do make; done > out < in",
        "> out make; 2> log",
        "coproc { make; } > out",
        "time { make; } > out",
        "! { make; } > out",
        "make && { ls; } > out || touch c",
        "x=1 > out; make",
        "export x > out; unset x > more",
        "touch a <<A <<B > out\none\nA\ntwo $(rm x)\nB",
        "select x in $(rm y); do make; done > out",
        "make {fd}> out",
        "if ((1)); then :; fi > out; make",
        "echo \"$(f() { make; } > out; f)\"",
    ] {
        checked_steps(script);
    }
}

#[test]
fn common_scripts_are_split() {
    for script in [
        "a; b && c || d | e & f",
        "while read -r line; do echo \"$line\"; done < in",
        "cat <<E | wc -l\ntext\nE\nrm y",
        "diff <(sort a) <(sort b)",
        "[[ -f a ]] && rm a",
        "x=$(ls) y=2 run --now",
        "make && \\\n  ls # then\n# end",
        "for f in a b; do (cd $f; make) & done; wait",
        "if test -f a; then rm a; elif ! test -f b; then { ls; } > c; fi",
        "npm start &",
    ] {
        assert!(checked_steps(script).is_some(), "{script:?}: {:?}", command_steps(script));
    }
}

#[test]
fn steps_of_the_corpus_hide_nothing() {
    for script in [READS, HOSTILE, DESTRUCTIVE].into_iter().flat_map(corpus) {
        checked_steps(&script);
    }
    let is_split: Vec<bool> =
        corpus(ORDINARY).map(|script| checked_steps(&script).is_some()).collect();
    let split = is_split.iter().filter(|is_split| **is_split).count();
    assert!(split * 10 > is_split.len() * 9, "{split} of {}", is_split.len());
}

proptest! {
    #[test]
    fn steps_of_generated_scripts_hide_nothing(parts in prop::collection::vec(prop::sample::select(PARTS), 1..14)) {
        checked_steps(&parts.join(" "));
    }
}

const PARTS: &[&str] = &[
    "ls",
    "rm one",
    "make two",
    "x=three",
    "> four",
    "2>> five",
    "< six",
    "&&",
    "||",
    "|",
    "&",
    ";",
    "\n",
    "(",
    ")",
    "{",
    "}",
    "if",
    "then",
    "else",
    "fi",
    "while",
    "do",
    "done",
    "for i in seven",
    "case eight in",
    "nine)",
    ";;",
    "esac",
    "f()",
    "function g",
    "[[ -f ten ]]",
    "((",
    "eleven",
    "))",
    "!",
    "$(",
    "`",
    "<(",
    "time",
    "coproc",
    "<<E\ntwelve\nE\n",
    "\\\n",
    "export A=thirteen",
    "# fourteen\n",
    "until",
    "select j in fifteen",
    "'a b'",
    "\"$(ls sixteen)\"",
    "\r",
    "\u{a0}",
];
