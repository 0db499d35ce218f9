//! Messages for people name commands that they can type, not tools of a model.

use std::path::Path;

use crate::{text, toolcrib};

const TOOLS: [&str; 15] = [
    "Read",
    "Write",
    "Edit",
    "MultiEdit",
    "ApplyPatch",
    "NotebookEdit",
    "LS",
    "Glob",
    "Grep",
    "Bash",
    "BashOutput",
    "KillShell",
    "ListShells",
    "Undo",
    "History",
];

/// The errors of a command, in text and in JSON.
fn errors(directory: &Path, words: &[&str]) -> String {
    let mut all = String::new();
    for format in ["--text", "--json"] {
        let output = toolcrib(directory, &[words, &[format]].concat(), b"");
        assert_ne!(output.status.code(), Some(0), "{words:?}: {output:?}");
        all += text(&output.stderr);
        all += text(&output.stdout);
    }
    all
}

fn names_no_tool(words: &[&str], shown: &str) {
    let named = shown.split(|c: char| !c.is_alphanumeric()).find(|word| TOOLS.contains(word));
    assert_eq!(named, None, "{words:?}: {shown}");
}

#[test]
fn every_command_with_a_missing_root_names_no_tool() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = |command: &str| -> Option<Vec<&'static str>> {
        Some(match command {
            "call" => vec!["LS"],
            "show" => vec!["7"],
            "undo" | "redo" => vec!["-y"],
            "policy" => vec!["test", "ls"],
            "index" => vec!["status"],
            "kill" => vec!["job_none"],
            "run" | "serve" | "sandboxd" | "tools" | "log" | "diff" => vec![],
            // They have other errors, or none.
            "install" | "uninstall" | "push" | "doctor" | "config" | "page" | "watch" | "jobs"
            | "backup" | "store" | "completions" | "help" => {
                return None;
            }
            other => panic!("add the command {other} here"),
        })
    };
    let help = toolcrib(directory.path(), &["-h"], b"");
    let help = text(&help.stdout).split("Commands:\n").nth(1).unwrap();
    let commands = help.lines().take_while(|line| line.starts_with("  "));
    for command in commands.filter_map(|line| line.split_whitespace().next()) {
        let Some(arguments) = arguments(command) else { continue };
        let words = [&[command], arguments.as_slice(), &["--root", "/no/such/root"]].concat();
        let shown = errors(directory.path(), &words);
        names_no_tool(&words, &shown);
    }
}

#[test]
fn hints_about_changes_name_commands() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path();
    let nothing = errors(workspace, &["undo", "-y"]);
    names_no_tool(&["undo"], &nothing);
    assert!(
        nothing.contains("hint: Nothing was done. `toolcrib log` lists the changes."),
        "{nothing}"
    );
    let args = br#"{"file_path": "a.txt", "content": "one\n"}"#;
    let written = toolcrib(workspace, &["call", "Write", "-"], args);
    assert!(written.status.success(), "{written:?}");
    let log: serde_json::Value =
        serde_json::from_slice(&toolcrib(workspace, &["log", "--json"], b"").stdout).unwrap();
    let id = log["changes"][0]["id"].to_string();
    assert!(toolcrib(workspace, &["undo", "-y"], b"").status.success());
    for words in [
        &["undo", "99999", "-y"][..],
        &["undo", "--since", "99999", "-y"],
        &["undo", "--since", &id, "-y"],
        &["undo", "--path", "a.txt", "-y"],
        &["undo", "-y"],
        &["show", "99999"],
        &["kill", "job_none"],
    ] {
        names_no_tool(words, &errors(workspace, words));
    }
    let undone = errors(workspace, &["undo", &id, "-y"]);
    names_no_tool(&["undo"], &undone);
    let next = id.parse::<u64>().unwrap() + 1;
    assert!(undone.contains(&format!("`toolcrib undo {next}` redoes it.")), "{undone}");
}
