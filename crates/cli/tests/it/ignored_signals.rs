//! Commands of a process that was started with ignored signals, as by `nohup` or in the background of a script.

use std::process::Command;

#[test]
fn commands_have_the_default_signal_actions() {
    let workspace = crate::command_directory();
    let state = tempfile::tempdir().unwrap();
    let script =
        "trap 'echo caught INT' INT; kill -INT $$; trap 'echo caught HUP' HUP; kill -HUP $$";
    let call = serde_json::json!({ "command": script }).to_string();
    for profile in ["open", "workspace"] {
        let output = Command::new("sh")
            .args(["-c", "trap '' INT HUP QUIT; exec \"$@\"", "sh", crate::PROGRAM])
            .args(["--profile", profile, "--state"])
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
