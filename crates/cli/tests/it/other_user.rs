//! Calls by an unprivileged user. Unless the tests run as root, that is the user who runs them.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::{Value, json};

/// The user `nobody`.
const USER: u32 = 65_534;

struct Workspace {
    directory: tempfile::TempDir,
    root: bool,
}

impl Workspace {
    fn new() -> Workspace {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().metadata().unwrap().uid() == 0;
        let workspace = Workspace { directory, root };
        std::fs::set_permissions(workspace.directory.path(), PermissionsExt::from_mode(0o755))
            .unwrap();
        // That user may not have access to the build directory.
        std::fs::copy(crate::PROGRAM, workspace.path("toolcrib")).unwrap();
        for name in ["ws", "state"] {
            std::fs::DirBuilder::new().mode(0o700).create(workspace.path(name)).unwrap();
            workspace.give(name);
        }
        workspace
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// A file of that user with a mode.
    fn file(&self, name: &str, content: &str, mode: u32) {
        std::fs::write(self.path(name), content).unwrap();
        std::fs::set_permissions(self.path(name), PermissionsExt::from_mode(mode)).unwrap();
        self.give(name);
    }

    fn give(&self, name: &str) {
        if self.root {
            chown(self.path(name), Some(USER), Some(USER)).unwrap();
        }
    }

    fn call(&self, tool: &str, args: &Value, flags: &[&str]) -> Value {
        self.run(&[&["call", tool, &args.to_string(), "--json"], flags].concat())
    }

    fn run(&self, arguments: &[&str]) -> Value {
        let mut command = Command::new(self.path("toolcrib"));
        command
            .args(arguments)
            .args(["--root", self.path("ws").to_str().unwrap()])
            .args(["--state", self.path("state").to_str().unwrap()])
            .env("XDG_CONFIG_HOME", self.path("config"))
            .current_dir("/");
        if self.root {
            command.uid(USER).gid(USER);
        }
        let output = command.output().unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    }

    fn edit(&self, path: &str, flags: &[&str]) -> Value {
        self.call(
            "Edit",
            &json!({"file_path": path, "old_string": "one", "new_string": "two"}),
            flags,
        )
    }
}

#[test]
fn inaccessible_files_are_reported_and_unchanged() {
    let workspace = Workspace::new();
    workspace.file("ws/secret", "one\n", 0o000);
    workspace.file("ws/fixed", "one\n", 0o444);
    let reply = workspace.call("Read", &json!({"file_path": "secret"}), &[]);
    assert_eq!(reply["error"]["kind"], "permission", "{reply}");
    for flags in [&["--dry-run"][..], &[]] {
        let reply = workspace.edit("fixed", flags);
        assert_eq!(reply["error"]["kind"], "read_only", "{reply}");
    }
    assert_eq!(std::fs::read(workspace.path("ws/fixed")).unwrap(), b"one\n");
}

#[test]
fn a_file_in_a_directory_that_is_not_ours_is_written_in_place() {
    let workspace = Workspace::new();
    std::fs::create_dir(workspace.path("ws/d")).unwrap();
    workspace.file("ws/d/a.txt", "one\n", 0o644);
    std::fs::set_permissions(workspace.path("ws/d"), PermissionsExt::from_mode(0o555)).unwrap();
    let reply = workspace.edit("d/a.txt", &[]);
    assert_eq!(reply["success"], true, "{reply}");
    assert!(reply["output"].as_str().unwrap().contains("written in place"), "{reply}");
    assert_eq!(reply["metadata"]["written_in_place"], true, "{reply}");
    assert_eq!(std::fs::read(workspace.path("ws/d/a.txt")).unwrap(), b"two\n");
    let new = json!({"file_path": "d/new.txt", "content": "x"});
    for flags in [&["--dry-run"][..], &[]] {
        let reply = workspace.call("Write", &new, flags);
        assert_eq!(reply["error"]["kind"], "permission", "{reply}");
    }
    std::fs::set_permissions(workspace.path("ws/d"), PermissionsExt::from_mode(0o755)).unwrap();
}

/// What the sandbox enforces and reports does not depend on the permissions of the user.
#[test]
fn doctor_finds_that_denied_operations_are_reported() {
    let workspace = Workspace::new();
    let told = workspace.run(&["doctor", "--json"]);
    let missing = told["sandbox"]["missing"].as_array().unwrap();
    let is_wrong = |sentence: &Value| sentence.as_str().unwrap().contains("do not report");
    assert!(!missing.iter().any(is_wrong), "{missing:?}");
}

/// The owner of a directory can permit what its mode forbids.
#[test]
fn undo_in_an_own_directory_without_write_permission_names_chmod() {
    let workspace = Workspace::new();
    std::fs::create_dir(workspace.path("ws/d")).unwrap();
    workspace.give("ws/d");
    let created = workspace.call("Write", &json!({"file_path": "d/a", "content": "x"}), &[]);
    assert_eq!(created["success"], true, "{created}");
    let set_mode = |mode| {
        std::fs::set_permissions(workspace.path("ws/d"), PermissionsExt::from_mode(mode)).unwrap();
    };
    set_mode(0o555);
    let reply = workspace.call("Undo", &json!({}), &[]);
    assert_eq!(reply["error"]["kind"], "permission", "{reply}");
    let text = reply["output"].as_str().unwrap();
    assert!(text.starts_with("d is a directory that is not writable"), "{text}");
    assert!(text.contains("`chmod u+w 'd'` permits it"), "{text}");
    let new = json!({"file_path": "d/e/b", "content": "x"});
    let reply = workspace.call("Write", &new, &[]);
    assert!(reply["output"].as_str().unwrap().contains("chmod u+w 'd'"), "{reply}");
    set_mode(0o755);
    let reply = workspace.call("Undo", &json!({}), &[]);
    assert_eq!(reply["success"], true, "{reply}");
    assert!(!workspace.path("ws/d/a").exists());
}

#[test]
fn an_undo_in_a_read_only_directory_names_no_other_change_there() {
    let workspace = Workspace::new();
    workspace.file("ws/a.txt", "one\n", 0o644);
    std::fs::create_dir(workspace.path("ws/d")).unwrap();
    workspace.give("ws/d");
    let first = workspace.edit("a.txt", &[])["metadata"]["change"].clone();
    for name in ["d/b.txt", "d/c.txt"] {
        let new = json!({"file_path": name, "content": "x"});
        assert_eq!(workspace.call("Write", &new, &[])["success"], true);
    }
    std::fs::set_permissions(workspace.path("ws/d"), PermissionsExt::from_mode(0o555)).unwrap();
    let reply = workspace.call("Undo", &json!({}), &[]);
    assert_eq!(reply["error"]["kind"], "permission", "{reply}");
    let next = format!("id {first} reverts an earlier change");
    assert!(reply["output"].as_str().unwrap().contains(&next), "{reply}");
    std::fs::set_permissions(workspace.path("ws/d"), PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn a_file_of_another_user_keeps_its_owner() {
    let workspace = Workspace::new();
    if !workspace.root {
        return; // Only root can give a file away; CI runs as root.
    }
    workspace.file("ws/a.txt", "one\n", 0o666);
    chown(workspace.path("ws/a.txt"), Some(0), Some(0)).unwrap();
    let reply = workspace.edit("a.txt", &[]);
    assert_eq!(reply["success"], true, "{reply}");
    let metadata = workspace.path("ws/a.txt").metadata().unwrap();
    assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o777), (0, 0, 0o666));
    assert_eq!(std::fs::read(workspace.path("ws/a.txt")).unwrap(), b"two\n");
}

/// A directory that this program cannot read counts as one that may contain anything.
#[test]
fn an_unreadable_directory_does_not_become_a_git_directory() {
    let workspace = Workspace::new();
    let script = r##"
import os
from os import *
def put(path, text):
    f = open(path, O_CREAT | O_WRONLY, 0o755); write(f, text.encode()); close(f)
def head(path): put(path + "/HEAD", "ref: refs/heads/main\n")
def attempt(work):
    try: work()
    except OSError as error: print(error)
EVIL = "[core]\n\tfsmonitor = touch MARK; false\n"
# The directory above is closed.
def above():
    makedirs("a/p"); chdir("a/p"); closed = open("..", O_RDONLY); fchmod(closed, 0)
    try:
        put("config", EVIL); head("."); mkdir("objects"); mkdir("refs")
    finally:
        fchmod(closed, 0o755); chdir("../..")
# The configuration is closed.
def configuration():
    mkdir("b"); head("b"); put("b/config", EVIL); chmod("b/config", 0)
    try: mkdir("b/objects"); mkdir("b/refs")
    finally: chmod("b/config", 0o644)
# The hooks are closed.
def hooks():
    makedirs("c/hooks"); head("c"); put("c/hooks/pre-commit", "#!/bin/sh\ntouch MARK\n")
    chmod("c/hooks", 0)
    try: mkdir("c/objects"); mkdir("c/refs")
    finally: chmod("c/hooks", 0o755)
# The hooks may be searched and not listed.
def unlisted():
    makedirs("d/hooks"); head("d"); put("d/hooks/pre-commit", "#!/bin/sh\ntouch MARK\n")
    chmod("d/hooks", 0o300)
    try: mkdir("d/objects"); mkdir("d/refs")
    finally: chmod("d/hooks", 0o755)
# A configuration is written while the directory above is closed, and the directory is one already.
def later():
    makedirs("e/p/objects"); mkdir("e/p/refs"); head("e/p"); chdir("e/p")
    closed = open("..", O_RDONLY); fchmod(closed, 0)
    try: put("config", EVIL)
    finally: fchmod(closed, 0o755); chdir("../..")
for work in [above, configuration, hooks, unlisted, later]: attempt(work)
"##;
    std::fs::write(workspace.path("ws/script.py"), script).unwrap();
    let reply = workspace.call("Bash", &json!({"command": "python3 script.py"}), &[]);
    assert_eq!(reply["success"], true, "{reply}");
    for name in ["a/p", "b", "c", "d", "e/p"] {
        let has = |part: &str| workspace.path("ws").join(name).join(part).exists();
        let is_git_directory = has("objects") && has("refs");
        let config = workspace.path("ws").join(name).join("config");
        let config = std::fs::read_to_string(config).unwrap_or_default();
        let is_evil = config.contains("fsmonitor") || has("hooks/pre-commit");
        assert!(!(is_git_directory && is_evil), "{name}: {reply}");
    }
}

/// A command removes the permissions of a file that it changed: the reply says that the change cannot be undone,
/// and claims nothing else.
#[test]
fn a_file_that_became_unreadable_is_not_reported_as_deleted() {
    let workspace = Workspace::new();
    for name in ["ws/d", "ws/e"] {
        std::fs::create_dir(workspace.path(name)).unwrap();
        workspace.give(name);
    }
    for name in ["ws/a", "ws/d/b", "ws/e/c", "ws/f"] {
        workspace.file(name, "old\n", 0o644);
    }
    let command = "echo new > a; chmod 0 a; echo new > d/b; chmod 0 d; echo new > e/c; echo new > e/g; chmod 0 e; echo new > f";
    let reply = workspace.call("Bash", &json!({"command": command}), &[]);
    let said = reply["output"].as_str().unwrap();
    for (phrase, names) in
        [("cannot restore", &["a (", "d/b (", "e/c ("][..]), ("does not remove", &["e/g ("])]
    {
        let line = said.lines().find(|line| line.contains(phrase)).unwrap_or_default();
        for name in names {
            assert!(line.contains(name), "{name}: {said}");
        }
    }
    assert!(!said.contains("deleted") && said.contains("modified"), "{said}");
    let undo = workspace.call("Undo", &json!({}), &[]);
    assert_eq!(undo["success"], true, "{undo}");
    for name in ["ws/d", "ws/e"] {
        std::fs::set_permissions(workspace.path(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    for (name, says) in
        [("a", "new\n"), ("d/b", "new\n"), ("e/c", "new\n"), ("e/g", "new\n"), ("f", "old\n")]
    {
        let is = std::fs::read_to_string(workspace.path("ws").join(name)).unwrap_or_default();
        assert_eq!(is, says, "{name}: {said}\n{undo}");
    }
}
