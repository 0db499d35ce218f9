//! The `/tmp` of a session, from the command line: where it is told what was left in it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::json;

/// What `toolcrib run` says on standard output and on standard error to some calls, one after the other.
fn run(calls: &[serde_json::Value]) -> (String, String) {
    let top = crate::command_directory();
    std::fs::create_dir(top.path().join("ws")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .arg("run")
        .arg(format!("--root={}/ws", top.path().display()))
        .arg(format!("--state={}/state", top.path().display()))
        .env("HOME", top.path().join("home"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for call in calls {
        let mut line = call.clone();
        line["wait"] = true.into();
        writeln!(stdin, "{line}").unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn what_is_left_is_told_once_at_the_end() {
    let write = "echo important > $TMPDIR/report.csv; echo in $TMPDIR";
    let (said, told) = run(&[
        json!({"tool": "Bash", "args": {"command": write}}),
        json!({"tool": "Grep", "args": {"pattern": "important", "path": "/tmp"}}),
    ]);
    assert!(said.contains("in /"), "{said}");
    let notes: Vec<&str> = told.lines().filter(|line| line.contains("in its own /tmp")).collect();
    assert_eq!(notes.len(), 1, "{told}");
    assert!(notes[0].contains("1 file (10 bytes)") && notes[0].contains("removed"), "{told}");
    let (_, told) = run(&[json!({"tool": "Bash", "args": {"command": "true"}})]);
    assert!(!told.contains("/tmp"), "{told}");
}
