//! As a user who may not do everything. Where the tests do not run as root, they are that user.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::{Value, json};

/// Nobody in particular.
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
        // Where the tests are built, that user may not be able to go.
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

    /// A file of the user's with a mode.
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
        let mut command = Command::new(self.path("toolcrib"));
        command
            .args(["call", tool, &args.to_string(), "--json"])
            .args(flags)
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
fn what_may_not_be_read_or_written_is_said_and_left() {
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

#[test]
fn a_file_of_somebody_else_keeps_its_owner() {
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
