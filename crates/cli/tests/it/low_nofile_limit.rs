//! Calls in a process with a low limit on open files: often 1,024, on some systems 256.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Makes calls one after the other, in a process with this limit on open files.
fn calls(workspace: &Path, state: &Path, handles: usize, calls: &[(&str, Value)]) -> Vec<Value> {
    let lines: String = calls
        .iter()
        .enumerate()
        .map(|(id, (tool, args))| {
            format!("{}\n", json!({"id": id, "wait": true, "tool": tool, "args": args}))
        })
        .collect();
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -n {handles}; exec \"$@\""), "sh", crate::PROGRAM, "run"])
        .arg("--state")
        .arg(state)
        .current_dir(workspace)
        .envs(crate::isolated_home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let replies = crate::text(&output.stdout).lines();
    replies.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_change_of_many_files_needs_few_descriptors() {
    let (workspace, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (files, handles) = (400, 256);
    let mut patch = String::new();
    for number in 0..files {
        let directory = format!("d{}", number % 200);
        std::fs::create_dir_all(workspace.path().join(&directory)).unwrap();
        std::fs::write(workspace.path().join(format!("{directory}/f{number}")), "old\n").unwrap();
        patch += &format!("--- a/{directory}/f{number}\n+++ b/{directory}/f{number}\n");
        patch += "@@ -1 +1 @@\n-old\n+new\n";
    }
    let all_say = |text: &str| {
        (0..files).all(|number| {
            let path = workspace.path().join(format!("d{}/f{number}", number % 200));
            std::fs::read_to_string(path).unwrap() == text
        })
    };
    let state = state.path().join("state");
    let patched =
        calls(workspace.path(), &state, handles, &[("ApplyPatch", json!({"patch": patch}))]);
    assert_eq!(patched[0]["success"], true, "{patched:?}");
    assert_eq!(patched[0]["metadata"]["files_modified"], files);
    assert!(all_say("new\n"));
    let undone = calls(workspace.path(), &state, handles, &[("Undo", json!({"id": 1}))]);
    assert_eq!(undone[0]["success"], true, "{undone:?}");
    assert!(all_say("old\n"));
}

#[test]
fn undoing_the_removal_of_many_files_needs_few_descriptors() {
    let workspace = crate::command_directory();
    let state = tempfile::tempdir().unwrap();
    let (files, handles) = (2_000, 512);
    let path = |number: usize| workspace.path().join(format!("src/d{}/f{number}", number % 90));
    for number in 0..files {
        std::fs::create_dir_all(path(number).parent().unwrap()).unwrap();
        std::fs::write(path(number), format!("file {number}\n")).unwrap();
    }
    let replies = calls(
        workspace.path(),
        &state.path().join("state"),
        handles,
        &[("Bash", json!({"command": "rm -rf src"})), ("Undo", json!({}))],
    );
    assert!(replies.iter().all(|reply| reply["success"] == true), "{replies:?}");
    for number in 0..files {
        let says = std::fs::read_to_string(path(number)).unwrap();
        assert_eq!(says, format!("file {number}\n"));
    }
}
