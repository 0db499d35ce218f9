//! Commands of a process that was started with ignored or blocked signals, as by `nohup`, in the background of a script,
//! or by a test runner.

use std::process::Command;

#[test]
fn commands_do_not_ignore_signals() {
    let ignore = ["sh", "-c", "trap '' INT HUP QUIT; exec \"$@\"", "sh"];
    assert_signals_are_caught(&ignore);
}

#[test]
fn commands_do_not_block_signals() {
    let script = "import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execv(sys.argv[1], sys.argv[1:])";
    assert_signals_are_caught(&["python3", "-c", script]);
}

/// Runs a command that sends itself signals, in a runtime that `launcher` starts.
#[track_caller]
fn assert_signals_are_caught(launcher: &[&str]) {
    let workspace = crate::command_directory();
    let state = tempfile::tempdir().unwrap();
    let script =
        "trap 'echo caught INT' INT; kill -INT $$; trap 'echo caught HUP' HUP; kill -HUP $$";
    let call = serde_json::json!({ "command": script }).to_string();
    for profile in ["open", "workspace"] {
        let output = Command::new(launcher[0])
            .args(&launcher[1..])
            .args([crate::PROGRAM, "--profile", profile, "--state"])
            .arg(state.path().join(profile))
            .args(["call", "Bash", &call])
            .current_dir(workspace.path())
            .envs(crate::isolated_home())
            .output()
            .unwrap();
        let reply = crate::text(&output.stdout);
        assert!(reply.contains("caught INT") && reply.contains("caught HUP"), "{profile}: {reply}");
    }
}
