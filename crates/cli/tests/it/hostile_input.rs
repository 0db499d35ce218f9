//! Input that is too large or malformed.

use std::fmt::Write as _;

use serde_json::Value;

use crate::{text, toolcrib};

fn replies(output: &[u8]) -> Vec<Value> {
    text(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn workspace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "one\n").unwrap();
    directory
}

#[test]
fn a_line_of_a_hundred_megabytes_is_refused_and_the_next_is_answered() {
    let workspace = workspace();
    let mut input =
        br#"{"id": 1, "tool": "Edit", "args": {"file_path": "a.txt", "new_string": ""#.to_vec();
    input.resize(100_000_000, b'x');
    input.extend(b"\"}}\n");
    input.extend(br#"{"id": 2, "tool": "Read", "args": {"file_path": "a.txt"}}"#);
    let output = toolcrib(workspace.path(), &["run"], &input);
    let replies = replies(&output.stdout);
    assert_eq!(replies[0]["error"]["kind"], "limit");
    assert_eq!(replies[0]["id"], Value::Null);
    assert!(replies[0]["output"].as_str().unwrap().contains("100000004 bytes"), "{}", replies[0]);
    assert_eq!(replies[1]["output"], "     1\tone\n");
    assert_eq!(replies.len(), 2);
}

#[test]
fn arguments_of_a_hundred_megabytes_are_refused() {
    let workspace = workspace();
    let output = toolcrib(workspace.path(), &["call", "Read", "-"], &vec![b'['; 100_000_000]);
    assert_eq!(replies(&output.stdout)[0]["error"]["kind"], "limit");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_call_of_the_maximum_size_is_accepted() {
    let workspace = workspace();
    let content = "x".repeat(30_000_000);
    let args = serde_json::json!({"file_path": "b.txt", "old_string": "", "new_string": content});
    let output = toolcrib(workspace.path(), &["call", "Edit", "-"], args.to_string().as_bytes());
    let reply = &replies(&output.stdout)[0];
    assert_eq!(reply["success"], true);
    assert!(output.stdout.len() < 50_000, "the reply stays within its budget");
    assert_eq!(std::fs::read(workspace.path().join("b.txt")).unwrap(), content.as_bytes());
}

#[test]
fn deep_json_many_fields_and_odd_ids_get_one_reply_per_line() {
    let workspace = workspace();
    let mut input = format!("{}\n", "[".repeat(1_000_000));
    input += &format!(r#"{{"id": 1, "tool": "Read", "args": {}}}"#, "{\"a\":".repeat(1_000_000));
    input += "\n{\"id\": 2, \"wait\": true, \"tool\": \"Read\", \"args\": {";
    for number in 0..100_000 {
        let _ = write!(input, "\"field{number}\": {number}, ");
    }
    input += "\"file_path\": \"a.txt\"}}\n";
    input += r#"{"id": "last", "wait": true, "tool": "Read", "args": {"file_path": "a.txt"}}"#;
    let replies = replies(&toolcrib(workspace.path(), &["run"], input.as_bytes()).stdout);
    let kinds: Vec<_> = replies.iter().map(|reply| reply["error"]["kind"].as_str()).collect();
    assert_eq!(kinds, [Some("invalid"), Some("invalid"), Some("invalid"), None]);
    assert!(replies.iter().all(|reply| reply.to_string().len() < 2_000));
    assert_eq!(replies[3]["id"], "last");
}

#[test]
fn a_thousand_calls_at_once_are_all_answered() {
    let workspace = workspace();
    let mut input = String::new();
    for id in 0..1_000 {
        let _ =
            writeln!(input, r#"{{"id": {id}, "tool": "Read", "args": {{"file_path": "a.txt"}}}}"#);
    }
    let replies = replies(&toolcrib(workspace.path(), &["run"], input.as_bytes()).stdout);
    let mut ids: Vec<u64> = replies.iter().map(|reply| reply["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..1_000).collect::<Vec<_>>());
    assert!(replies.iter().all(|reply| reply["output"] == "     1\tone\n"));
}

#[test]
fn a_closed_output_does_not_crash_the_program() {
    let workspace = workspace();
    let mut child = std::process::Command::new(crate::PROGRAM)
        .args(["tools", "--format", "markdown"])
        .current_dir(workspace.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
}

#[test]
fn an_unprinted_reply_is_reported_as_such() {
    let workspace = workspace();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let edit = r#"{"file_path": "a.txt", "old_string": "one", "new_string": "two"}"#;
    let output = std::process::Command::new(crate::PROGRAM)
        .args(["call", "Edit", edit])
        .current_dir(workspace.path())
        .envs(crate::isolated_home())
        .stdout(full())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("the call was made"), "{}", text(&output.stderr));
}

#[test]
fn very_long_names_are_truncated_in_replies() {
    let workspace = workspace();
    let name = "n".repeat(5_000_000);
    let lines = [
        format!(r#"{{"id": 1, "tool": "Read", "args": {{"{name}": 1, "{name}": 2}}}}"#),
        format!(r#"{{"id": 2, "tool": "Read", "{name}": 1}}"#),
        format!(r#"{{"id": 3, "wait": true, "tool": "{name}"}}"#),
        format!(r#"{{"id": 4, "wait": true, "tool": "Read", "args": {{"{name}": 1}}}}"#),
        format!(r#"{{"id": 5, "wait": true, "tool": "Read", "args": {{"file_path": "{name}"}}}}"#),
    ];
    let output = toolcrib(workspace.path(), &["run"], lines.join("\n").as_bytes());
    let replies = replies(&output.stdout);
    assert_eq!(replies.len(), 5);
    assert!(replies.iter().all(|reply| reply.to_string().len() < 2_000));
}

#[test]
fn roots_on_both_sides_of_the_command_are_refused() {
    let workspace = workspace();
    let words = ["--root", ".:ro", "call", "Read", r#"{"file_path":"a.txt"}"#, "--root", "."];
    assert_eq!(toolcrib(workspace.path(), &words, b"").status.code(), Some(2));
    let twice = ["call", "Read", r#"{"file_path":"a.txt"}"#, "--root", ".", "--root", ".:ro"];
    assert_eq!(toolcrib(workspace.path(), &twice, b"").status.code(), Some(2));
}
