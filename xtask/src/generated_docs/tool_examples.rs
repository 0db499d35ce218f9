//! An example of every tool for docs/tools.md: calls of one session, with the replies that the product gives now.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

/// The calls, in the order in which they are made. The first of a tool is its example.
const CALLS: &[(&str, &str)] = &[
    (
        "Write",
        r#"{"file_path": "greet.py", "content": "def greet(name):\n    print(\"Hello\", name)\n"}"#,
    ),
    ("Read", r#"{"file_path": "greet.py"}"#),
    (
        "Edit",
        r#"{"file_path": "greet.py", "old_string": "\"Hello\"", "new_string": "\"Welcome\""}"#,
    ),
    (
        "MultiEdit",
        r#"{"file_path": "greet.py", "edits": [
  {"old_string": "greet(name)", "new_string": "greet(who)"},
  {"old_string": "\"Welcome\", name", "new_string": "\"Welcome\", who"}
]}"#,
    ),
    (
        "ApplyPatch",
        r#"{"patch": "*** Begin Patch\n*** Update File: greet.py\n@@ def greet(who):\n-    print(\"Welcome\", who)\n+    print(\"Welcome,\", who)\n*** Add File: main.py\n+from greet import greet\n+greet(\"Ada\")\n*** End Patch\n"}"#,
    ),
    (
        "NotebookEdit",
        r#"{"notebook_path": "notes.ipynb", "cell_number": 1, "new_source": "print(2)"}"#,
    ),
    ("LS", "{}"),
    ("Glob", r#"{"pattern": "**/*.py"}"#),
    ("Grep", r#"{"pattern": "greet\\(", "output_mode": "content"}"#),
    ("Bash", r#"{"command": "wc -l *.py"}"#),
    ("Bash", r#"{"command": "echo ready; exec sleep 600", "run_in_background": true}"#),
    ("BashOutput", r#"{"bash_id": "sh_2", "wait_for": "output"}"#),
    ("ListShells", "{}"),
    ("KillShell", r#"{"shell_id": "sh_2"}"#),
    ("Undo", "{}"),
    ("History", "{}"),
];

const NOTEBOOK: &str = r#"{
 "cells": [
  {"cell_type": "code", "execution_count": null, "id": "a1", "metadata": {}, "outputs": [], "source": ["print(1)"]}
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"#;

/// The page with an example behind the section of each tool.
pub(super) fn insert(page: &str, binary: &Path) -> Result<String> {
    let replies = play(binary)?;
    let mut whole = String::new();
    for (number, section) in page.split("\n## ").enumerate() {
        if number == 0 {
            whole += section;
            continue;
        }
        let tool = section.lines().next().unwrap_or_default();
        let at = CALLS.iter().position(|(name, _)| *name == tool);
        let at = at.ok_or_else(|| format!("docs/tools.md: no example of {tool}"))?;
        let (arguments, reply) = (CALLS[at].1, &replies[at]);
        let _ = write!(
            whole,
            "\n## {}\n\n```json\n{arguments}\n```\n\n```text\n{reply}\n```\n",
            section.trim_end()
        );
    }
    Ok(whole)
}

/// Makes the calls in a new directory and returns their replies.
fn play(binary: &Path) -> Result<Vec<String>> {
    let place = tempfile::tempdir()?;
    let workspace = place.path().join("workspace");
    fs::create_dir(&workspace)?;
    fs::write(workspace.join("notes.ipynb"), NOTEBOOK)?;
    let mut lines = String::new();
    for (tool, arguments) in CALLS {
        let arguments: Value = serde_json::from_str(arguments)?;
        let line = serde_json::json!({"tool": tool, "args": arguments, "wait": true});
        let _ = writeln!(lines, "{line}");
    }
    let calls = place.path().join("calls");
    fs::write(&calls, lines)?;
    let root = format!("--root={}", workspace.display());
    let state = format!("--state={}", place.path().join("state").display());
    let mut command = Command::new(binary);
    command.args(["run", "--profile=workspace"]);
    command.args([root, state]).env_remove("SHELL").env("XDG_CONFIG_HOME", place.path());
    let printed = process::capture_with(&mut command, File::open(&calls)?)?;
    let replies = printed.lines().map(|line| {
        let reply: Value = serde_json::from_str(line)?;
        match (reply["success"].as_bool(), reply["output"].as_str()) {
            (Some(true), Some(output)) => Ok(steady(output)),
            _ => Err(format!("an example failed: {line}").into()),
        }
    });
    replies.collect()
}

/// A reply without the parts that depend on the machine and the time.
fn steady(output: &str) -> String {
    let depends = ["[login environment ", "[sandbox level ", "[no sandbox: "];
    let lines = output.lines().filter(|line| !depends.iter().any(|start| line.starts_with(start)));
    let lines = lines.map(|line| match line.split_once("running for ") {
        Some((before, after)) => {
            let rest = after.split_once("  ").map_or("", |(_, rest)| rest);
            format!("{before}running for 0.1 s  {rest}")
        }
        None => without_age(line),
    });
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// A line about a change, as if it had been made this moment. In a list the age is a column.
fn without_age(line: &str) -> String {
    const AGO: &str = " s ago";
    let Some(at) = line.find(AGO) else { return line.to_owned() };
    let before = line[..at].trim_end_matches(|c: char| c.is_ascii_digit());
    match line[at + AGO.len()..].strip_prefix(' ') {
        Some(rest) => format!("{before}{:<12} {}", "just now", rest.trim_start()),
        None => format!("{before}just now{}", &line[at + AGO.len()..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_do_not_depend_on_the_speed_of_the_machine() {
        assert_eq!(
            steady("     5  12 s ago     Undo of 4: a\n     4  just now     Edit: a"),
            "     5  just now     Undo of 4: a\n     4  just now     Edit: a"
        );
        assert_eq!(steady("  5 (7 s ago) Edit: a"), "  5 (just now) Edit: a");
    }
}
