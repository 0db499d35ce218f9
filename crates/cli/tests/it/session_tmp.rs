//! The `/tmp` of a session: files left in it are reported.

use serde_json::json;

use crate::{text, toolcrib};

/// The stdout and stderr of `toolcrib run` for some calls, one after the other.
fn run(calls: &[serde_json::Value]) -> (String, String) {
    let top = crate::command_directory();
    std::fs::create_dir(top.path().join("ws")).unwrap();
    let lines = calls.iter().map(|call| {
        let mut line = call.clone();
        line["wait"] = true.into();
        format!("{line}\n")
    });
    let input: String = lines.collect();
    let words = ["run", "--root=ws", "--state=state"];
    let output = toolcrib(top.path(), &words, input.as_bytes());
    assert!(output.status.success());
    (text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
}

#[test]
fn leftover_files_are_reported_once_at_the_end() {
    let write = "echo important > $TMPDIR/report.csv; echo in $TMPDIR";
    let (said, told) = run(&[
        json!({"tool": "Bash", "args": {"command": write}}),
        json!({"tool": "Grep", "args": {"pattern": "important", "path": "/tmp"}}),
    ]);
    assert!(said.contains("in /"), "{said}");
    let notes: Vec<&str> =
        told.lines().filter(|line| line.contains("in its private /tmp")).collect();
    assert_eq!(notes.len(), 1, "{told}");
    assert!(notes[0].contains("1 file (10 bytes)") && notes[0].contains("deleted"), "{told}");
    let (_, told) = run(&[json!({"tool": "Bash", "args": {"command": "true"}})]);
    assert!(!told.contains("/tmp"), "{told}");
}
