//! The state directory: owner, permissions, and reports of damage.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::{text, toolcrib};

/// A directory with a workspace `ws` that has a file, and room for a state directory.
fn workspace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("ws")).unwrap();
    std::fs::write(directory.path().join("ws/a.txt"), "0\n").unwrap();
    directory
}

fn run(top: &Path, words: &[&str], input: &str) -> std::process::Output {
    let words = [words, &["--root", "ws", "--state", "state"]].concat();
    toolcrib(top, &words, input.as_bytes())
}

fn edit(top: &Path, from: u32) {
    let args = json!({"file_path": "a.txt", "old_string": from.to_string(), "new_string": (from + 1).to_string()});
    let output = run(top, &["call", "Edit", "-"], &args.to_string());
    assert!(output.status.success(), "{}", text(&output.stdout));
}

#[test]
fn a_state_directory_that_others_can_access_is_an_error_at_startup() {
    let top = workspace();
    let state = top.path().join("state");
    std::fs::DirBuilder::new().mode(0o700).create(top.path().join("real")).unwrap();
    let plants: [(&dyn Fn(), &str); 2] = [
        (&|| symlink("real", &state).unwrap(), "is a symlink"),
        (
            &|| {
                std::fs::create_dir(&state).unwrap();
                std::fs::set_permissions(&state, PermissionsExt::from_mode(0o777)).unwrap();
            },
            "chmod 700",
        ),
    ];
    for (plant, expected) in plants {
        let _ = std::fs::remove_file(&state);
        plant();
        for words in
            [&["call", "Read", "{\"file_path\":\"a.txt\"}"][..], &["run"], &["serve"], &["log"]]
        {
            let output = run(top.path(), words, "");
            assert!(!output.status.success(), "{words:?}");
            let said = text(&output.stderr);
            assert!(said.contains(expected) && !said.contains("Only the operator"), "{said}");
        }
        // Commands that only explain the settings have nothing to store.
        for words in
            [&["tools"][..], &["policy", "explain", "Bash", "ls"], &["policy", "test", "ls"]]
        {
            let output = run(top.path(), words, "");
            assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        }
    }
}

/// All files and directories beneath a directory.
fn beneath(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(beneath(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn state_is_readable_only_by_its_owner_with_any_umask() {
    for umask in ["000", "022", "077", "777"] {
        let top = workspace();
        let lines: String = [
            json!({"id": 1, "wait": true, "tool": "Edit", "args": {"file_path": "a.txt", "old_string": "0", "new_string": "1"}}),
            json!({"id": 2, "wait": true, "tool": "Grep", "args": {"pattern": "1"}}),
            json!({"id": 3, "wait": true, "tool": "Undo", "args": {}}),
        ]
        .map(|call| format!("{call}\n"))
        .concat();
        std::fs::write(top.path().join("calls"), lines).unwrap();
        let output = Command::new("sh")
            .args(["-c", &format!("umask {umask}; exec \"$@\" < calls"), "sh", crate::PROGRAM])
            .args(["run", "--root", "ws", "--state", "state/deep/er"])
            .envs(crate::isolated_home())
            .current_dir(top.path())
            .output()
            .unwrap();
        assert_eq!(text(&output.stdout).matches("\"success\":true").count(), 3, "{output:?}");
        for path in beneath(&top.path().join("state")) {
            let found = path.metadata().unwrap();
            let expected = if found.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(found.mode() & 0o7777, expected, "{} with umask {umask}", path.display());
        }
    }
}

#[test]
fn a_damaged_change_is_reported_everywhere_and_its_number_is_not_given_again() {
    let top = workspace();
    (0..3).for_each(|from| edit(top.path(), from));
    let log = top.path().join("state/log");
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.len() - 40;
    bytes[at] ^= 4;
    std::fs::write(&log, bytes).unwrap();
    let expected = "change 3 is damaged: its line in the journal does not match its checksum";
    assert!(text(&run(top.path(), &["log", "--text"], "").stdout).contains(expected));
    let told: Value =
        serde_json::from_slice(&run(top.path(), &["log", "--json"], "").stdout).unwrap();
    assert_eq!((&told["total"], &told["damaged"][0]["first"]), (&2.into(), &3.into()));
    for words in [
        &["show", "3", "--json"][..],
        &["undo", "-y", "3", "--json"],
        &["call", "History", "{\"id\": 3}"],
    ] {
        let output = run(top.path(), words, "");
        assert!(!output.status.success(), "{words:?}");
        assert!(text(&output.stdout).contains(expected), "{}", text(&output.stdout));
    }
    assert!(text(&run(top.path(), &["call", "History", "{}"], "").stdout).contains(expected));
    edit(top.path(), 3);
    let told: Value =
        serde_json::from_slice(&run(top.path(), &["log", "--json"], "").stdout).unwrap();
    let ids: Vec<u64> = told["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids, [4, 2, 1]);
    let undone: Value =
        serde_json::from_slice(&run(top.path(), &["undo", "-y", "2", "--json"], "").stdout)
            .unwrap();
    assert!(undone.to_string().contains("change"), "{undone}");
}

#[test]
fn a_truncated_last_line_is_reported() {
    let top = workspace();
    (0..3).for_each(|from| edit(top.path(), from));
    let log = top.path().join("state/log");
    let bytes = std::fs::read(&log).unwrap();
    std::fs::write(&log, &bytes[..bytes.len() - 50]).unwrap();
    let expected = "change 3 is damaged: its line in the journal is missing";
    assert!(text(&run(top.path(), &["log", "--text"], "").stdout).contains(expected));
    edit(top.path(), 3);
    let told: Value =
        serde_json::from_slice(&run(top.path(), &["log", "--json"], "").stdout).unwrap();
    assert_eq!(told["changes"][0]["id"], 4);
    assert!(told["damaged"].to_string().contains(expected), "{told}");
}

#[test]
fn failure_to_log_decisions_is_reported_once() {
    let top = workspace();
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(top.path().join("state/decisions"))
        .unwrap();
    let call = |id| json!({"id": id, "wait": true, "tool": "Read", "args": {"file_path": "a.txt"}});
    let output = run(top.path(), &["run"], &format!("{}\n{}\n", call(1), call(2)));
    let told = text(&output.stdout);
    assert_eq!(told.matches("\"success\":true").count(), 2, "{told}");
    assert_eq!(told.matches("decisions on calls are not being logged").count(), 1, "{told}");
    let doctor = run(top.path(), &["doctor", "--json"], "");
    let told: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let problem = told["journal"]["problem"].as_str().unwrap_or_default();
    assert!(problem.contains("decisions on calls are not being logged"), "{told}");
    assert!(!doctor.status.success());
}
