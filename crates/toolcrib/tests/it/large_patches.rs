//! Very large patches, and patches designed to be expensive: each is applied or rejected, in time that depends
//! on its length only.

use serde_json::json;
use tempfile::TempDir;
use toolcrib::{Call, ErrorKind, Options, Runtime};

/// A workspace with one file, `f`.
fn workspace(content: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("f"), content).unwrap();
    directory
}

/// Content of `f` after a patch, or the kind of the error.
fn apply(directory: &TempDir, patch: String) -> Result<String, ErrorKind> {
    let runtime = Runtime::builder().root(directory.path()).build().unwrap();
    let call = Call::new("ApplyPatch", json!({"patch": patch}));
    runtime.call(&runtime.session(), call, Options::default()).map_err(|error| error.kind())?;
    Ok(std::fs::read_to_string(directory.path().join("f")).unwrap())
}

/// A patch of `f` with these hunks.
fn patch_of(hunks: impl IntoIterator<Item = String>) -> String {
    format!("--- a/f\n+++ b/f\n{}", hunks.into_iter().collect::<String>())
}

/// A file of numbered lines.
fn numbered(lines: usize) -> String {
    (1..=lines).map(|line| format!("line {line}\n")).collect()
}

const HUNKS: usize = 10_000;

/// Changes each third line of a numbered file.
fn many_hunks(drift: usize) -> String {
    patch_of((0..HUNKS).map(|number| {
        let line = number * 3 + 2;
        let (before, behind, start) = (line - 1, line + 1, line - 1 + drift);
        format!("@@ -{start},3 +{start},3 @@\n line {before}\n-line {line}\n+LINE {line}\n line {behind}\n")
    }))
}

#[test]
fn patch_of_50_mb_is_applied() {
    let line = format!("+{}\n", "x".repeat(99));
    let lines = 500_000;
    let patch = format!("--- /dev/null\n+++ b/f\n@@ -0,0 +1,{lines} @@\n{}", line.repeat(lines));
    assert!(patch.len() > 50_000_000);
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(apply(&directory, patch).map(|text| text.len()), Ok(lines * 100));
}

#[test]
fn ten_thousand_hunks_are_applied_with_and_without_drift() {
    let file = numbered(HUNKS * 3);
    let expected: String = (1..=HUNKS * 3)
        .map(|line| format!("{} {line}\n", if line % 3 == 2 { "LINE" } else { "line" }))
        .collect();
    for drift in [0, 1, 70_000] {
        assert_eq!(apply(&workspace(&file), many_hunks(drift)), Ok(expected.clone()), "{drift}");
    }
    // In reverse order, without line numbers.
    let backwards = many_hunks(0).split("@@ ").skip(1).fold(String::new(), |hunks, hunk| {
        let body = hunk.split_once(" @@\n").map(|(_, body)| body).unwrap_or_default();
        match body {
            "" => hunks,
            body => format!("@@\n{body}{hunks}"),
        }
    });
    let patch = format!("*** Begin Patch\n*** Update File: f\n{backwards}*** End Patch\n");
    assert_eq!(apply(&workspace(&file), patch), Ok(expected));
}

#[test]
fn ten_thousand_insertions_are_applied_with_drift() {
    let hunks = (1..=HUNKS).map(|line| format!("@@ -{line},0 +{line} @@\n+new\n"));
    // The hunk with context determines the offset of the others.
    let shown = patch_of(
        std::iter::once("@@ -1,2 +1,2 @@\n-line 3\n+LINE 3\n line 4\n".to_owned()).chain(hunks),
    );
    let now = apply(&workspace(&numbered(HUNKS + 9)), shown).unwrap();
    assert_eq!(now.lines().filter(|line| *line == "new").count(), HUNKS);
    assert!(now.starts_with("line 1\nline 2\nLINE 3\nnew\nline 4\nnew\n"));
}

#[test]
fn line_of_10_mb_is_patched_or_not_matched() {
    let long = "x".repeat(10_000_000);
    let file = format!("before\n{long}\nbehind\n");
    let patch =
        |old: &str| patch_of([format!("@@ -1,3 +1,3 @@\n before\n-{old}\n+{old}y\n behind\n")]);
    assert_eq!(apply(&workspace(&file), patch(&long)), Ok(format!("before\n{long}y\nbehind\n")));
    // Only the last character differs.
    let other = format!("{}z", &long[1..]);
    assert_eq!(apply(&workspace(&file), patch(&other)), Err(ErrorKind::NoMatch));
}

#[test]
fn hunks_in_identical_lines_are_rejected() {
    let file = "same\n".repeat(HUNKS * 3);
    let hunk = "@@ -900000,3 +900000,3 @@\n same\n-same\n+other\n same\n".to_owned();
    let refused = apply(&workspace(&file), patch_of(std::iter::repeat_n(hunk, HUNKS)));
    assert!(matches!(refused, Err(ErrorKind::Ambiguous | ErrorKind::Limit)), "{refused:?}");
}

#[test]
fn endless_headers_are_rejected() {
    for line in [
        "--- a/f\n+++ b/f\n",
        "@@ -1,999 +1,999 @@\n",
        "*** Update File: f\n",
        "\n",
        "diff --git a/f b/f\n",
    ] {
        for first in ["", "*** Begin Patch\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n"] {
            let patch = format!("{first}{}", line.repeat(50_000));
            assert!(apply(&workspace("x\n"), patch).is_err());
        }
    }
}
