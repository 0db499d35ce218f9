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

/// Without it, a pasted command would change the usual file.
#[test]
fn hints_about_settings_name_the_configuration_file_that_was_given() {
    let directory = crate::command_directory();
    let top = std::fs::canonicalize(directory.path()).unwrap();
    let (workspace, config) = (top.join("ws"), top.join("my config.toml"));
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(&config, "profile = \"read-only\"\n").unwrap();
    let file = format!("--config '{}/../my config.toml'", workspace.display());
    let said = |words: &[&str]| {
        // As it was typed, relative to another directory.
        let output = toolcrib(
            &workspace,
            &[words, &["--config", "../my config.toml", "--text"]].concat(),
            b"",
        );
        text(&output.stdout).to_owned() + text(&output.stderr)
    };
    let write = r#"{"file_path": ".envrc", "content": ""}"#;
    let workspace_profile = &["--profile", "workspace"][..];
    for (words, expected) in [
        (
            [&["call", "Write", write][..], workspace_profile].concat(),
            format!("`toolcrib config add {file} allow_protected .envrc`"),
        ),
        (
            [&["call", "Bash", r#"{"command": "echo > .envrc"}"#][..], workspace_profile].concat(),
            format!("toolcrib config add {file} allow_protected .envrc"),
        ),
        (
            vec!["call", "Write", r#"{"file_path": "a", "content": ""}"#],
            format!(
                "use --profile workspace, or run `toolcrib config set {file} profile workspace`"
            ),
        ),
        (vec!["policy", "host", "a.b"], format!("run `toolcrib config set {file} network list`")),
        (vec!["policy", "presets"], format!("toolcrib config add {file} network_presets NAME")),
        (vec!["config"], format!("`toolcrib config set {file} KEY VALUE`")),
        (vec!["config", "unset", "x"], "`toolcrib config keys`".to_owned()),
        (
            vec!["config", "add", "profile", "open"],
            format!("use `toolcrib config set {file} profile VALUE`"),
        ),
    ] {
        let said = said(&words);
        assert!(said.contains(&expected), "{words:?}: {said}");
    }
}

#[test]
fn a_setting_that_a_flag_decides_is_not_to_be_changed_in_the_file() {
    let directory = crate::command_directory();
    let write = r#"{"file_path": "a", "content": ""}"#;
    for (words, expected) in [
        (
            &["call", "Write", write, "--profile", "read-only"][..],
            "change the flag `--profile` to `--profile workspace`",
        ),
        (
            &["policy", "host", "a.b", "--network-access", "none"],
            "change the flag `--network-access` to `--network-access list`",
        ),
    ] {
        let output = toolcrib(directory.path(), &[words, &["--text"]].concat(), b"");
        let said = text(&output.stdout).to_owned() + text(&output.stderr);
        assert!(said.contains(expected) && !said.contains("config set"), "{words:?}: {said}");
    }
}

#[test]
fn hints_about_changes_have_the_state_and_the_root_that_were_given() {
    let directory = tempfile::tempdir().unwrap();
    let top = std::fs::canonicalize(directory.path()).unwrap();
    std::fs::create_dir(top.join("my ws")).unwrap();
    let given = ["--state", "state", "--root", "my ws"];
    let flags = format!("--state {0}/state --root '{0}/my ws'", top.display());
    let run = |words: &[&str]| toolcrib(&top, &[words, &given].concat(), b"");
    let args = serde_json::json!({"file_path": "a.txt", "content": "one\n"}).to_string();
    assert!(run(&["call", "Write", &args]).status.success());
    let edit = serde_json::json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    assert!(run(&["call", "Edit", &edit.to_string()]).status.success());
    for (words, expected) in [
        (&["undo", "1"][..], format!("`toolcrib undo {flags} 2`")),
        (&["undo", "99"], format!("`toolcrib log {flags}`")),
        (&["show", "99"], format!("`toolcrib log {flags}`")),
        (&["redo"], format!("`toolcrib log {flags}`")),
    ] {
        for format in ["--text", "--json"] {
            let output = run(&[words, &["-y", format][usize::from(words[0] == "show")..]].concat());
            let said = text(&output.stdout).to_owned() + text(&output.stderr);
            assert!(!output.status.success() && said.contains(&expected), "{words:?}: {said}");
        }
    }
}
