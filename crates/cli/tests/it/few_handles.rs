//! A process may have few files open at a time: often 1,024, on some systems 256.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[test]
fn a_change_of_many_files_needs_about_one_handle_for_each() {
    let workspace = tempfile::tempdir().unwrap();
    let (files, handles) = (80, 128);
    let mut patch = String::new();
    for number in 0..files {
        std::fs::write(workspace.path().join(format!("f{number}")), "old\n").unwrap();
        patch += &format!("--- a/f{number}\n+++ b/f{number}\n@@ -1 +1 @@\n-old\n+new\n");
    }
    let mut child = Command::new("sh")
        .args([
            "-c",
            &format!("ulimit -n {handles}; exec \"$0\" call ApplyPatch -"),
            crate::PROGRAM,
        ])
        .current_dir(workspace.path())
        .envs(crate::home_of_its_own())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(json!({"patch": patch}).to_string().as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["success"], true, "{reply}");
    assert_eq!(reply["metadata"]["files_modified"], files);
}
