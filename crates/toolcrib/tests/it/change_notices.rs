//! Replies name the files that others changed since the session saw them.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolcrib::{Call, Caps, Options, Reply, Runtime, Session};

use crate::{command_directory, workspace_runtime};

struct Workspace {
    directory: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
}

fn workspace(files: &[&str]) -> Workspace {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("ws")).unwrap();
    let runtime = Runtime::builder()
        .root(directory.path().join("ws"))
        .journal(directory.path().join("state"), Caps::default())
        .build()
        .unwrap();
    let session = runtime.session();
    let workspace = Workspace { directory, runtime, session };
    for file in files {
        workspace.write_externally(file, "one\ntwo\nthree\n");
        workspace.call("Read", json!({"file_path": file}));
    }
    workspace
}

impl Workspace {
    fn call(&self, tool: &str, args: Value) -> Reply {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default()).unwrap()
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join("ws").join(file)
    }

    fn write_externally(&self, file: &str, content: &str) {
        std::fs::write(self.path(file), content).unwrap();
    }

    /// The note of a call that has nothing to do with the files.
    fn note(&self) -> String {
        let text = self.call("Glob", json!({"pattern": "*.none"})).text();
        let lines: Vec<&str> =
            text.lines().filter(|line| line.starts_with("[changed since")).collect();
        lines.join("\n")
    }
}

#[test]
fn a_change_by_another_program_is_noticed_once() {
    let workspace = workspace(&["a.txt"]);
    assert_eq!(workspace.note(), "");
    workspace.write_externally("a.txt", "one\nTWO\nthree\nfour\n");
    assert_eq!(workspace.note(), "[changed since this session saw it: a.txt line 2, line 4]");
    assert_eq!(workspace.note(), "");
    workspace.write_externally("a.txt", "one\nTWO\n3\nfour\n");
    assert_eq!(workspace.note(), "[changed since this session saw it: a.txt lines 2-4]");
    std::fs::remove_file(workspace.path("a.txt")).unwrap();
    assert_eq!(workspace.note(), "[changed since this session saw it: a.txt removed]");
    assert_eq!(workspace.note(), "");
}

#[test]
fn content_that_the_session_saw_is_no_change() {
    let workspace = workspace(&["a.txt"]);
    workspace.write_externally("a.txt", "one\ntwo\nthree\n");
    assert_eq!(workspace.note(), "", "written with the same content");
    workspace.write_externally("a.txt", "other\n");
    workspace.call("Read", json!({"file_path": "a.txt"}));
    assert_eq!(workspace.note(), "", "the session read the change");
    let edit = json!({"file_path": "a.txt", "old_string": "other", "new_string": "another"});
    workspace.call("Edit", edit);
    assert_eq!(workspace.note(), "", "its own change");
    workspace.write_externally("b.txt", "one\n");
    assert_eq!(workspace.note(), "", "a file that it has not seen");
}

#[test]
fn the_journal_names_another_session() {
    let workspace = workspace(&["a.txt", "b.txt"]);
    let other = workspace.runtime.session();
    let edit = json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"});
    workspace.runtime.call(&other, Call::new("Edit", edit), Options::default()).unwrap();
    let expected =
        "[changed since this session saw it: a.txt line 2 by another session (change 1)]";
    assert_eq!(workspace.note(), expected);
    let patch = "*** Begin Patch\n*** Delete File: b.txt\n*** End Patch\n";
    let call = Call::new("ApplyPatch", json!({"patch": patch}));
    workspace.runtime.call(&other, call, Options::default()).unwrap();
    let expected =
        "[changed since this session saw it: b.txt removed by another session (change 2)]";
    assert_eq!(workspace.note(), expected);
}

#[test]
fn five_files_are_named() {
    let names: Vec<String> = (1..=7).map(|number| format!("{number}.txt")).collect();
    let workspace = workspace(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for name in &names {
        workspace.write_externally(name, "changed\n");
    }
    let reply = workspace.call("Glob", json!({"pattern": "*.none"}));
    assert!(reply.text().ends_with("; 3.txt line 1; and 2 more]\n"), "{}", reply.text());
    assert_eq!(reply.metadata()["changed_files"].as_array().unwrap().len(), 7);
}

#[test]
fn a_host_asks_for_changes() {
    let workspace = workspace(&["a.txt"]);
    assert!(workspace.runtime.changes(&workspace.session).is_empty());
    workspace.write_externally("a.txt", "one\n2\nthree\n");
    let changed = workspace.runtime.changes(&workspace.session);
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].path.file_name().unwrap(), "a.txt");
    assert_eq!((changed[0].lines.as_slice(), changed[0].is_removed), (&[(2, 2)][..], false));
    assert_eq!(changed[0].by, None);
    assert_eq!(workspace.note(), "", "each change is told once");
}

#[test]
fn a_command_of_the_session_is_no_other() {
    let directory = command_directory();
    std::fs::create_dir(directory.path().join("ws")).unwrap();
    std::fs::write(directory.path().join("ws/a.txt"), "one\n").unwrap();
    let runtime = workspace_runtime(directory.path());
    let session = runtime.session();
    let workspace = Workspace { directory, runtime, session };
    workspace.call("Read", json!({"file_path": "a.txt"}));
    let reply = workspace.call("Bash", json!({"command": "echo two >> a.txt"}));
    assert!(!reply.text().contains("[changed since"), "{}", reply.text());
    assert_eq!(workspace.note(), "");
}

#[test]
fn a_file_in_the_tmp_of_the_session_is_not_removed() {
    let directory = command_directory();
    std::fs::create_dir(directory.path().join("ws")).unwrap();
    let runtime = workspace_runtime(directory.path());
    let session = runtime.session();
    let workspace = Workspace { directory, runtime, session };
    let file = "/tmp/change-notice.txt";
    let reply = workspace.call("Write", json!({"file_path": file, "content": "one\n"}));
    assert!(!reply.text().contains("[changed since"), "{}", reply.text());
    assert_eq!(workspace.note(), "");
    workspace.call("Bash", json!({"command": format!("rm {file}")}));
    assert_eq!(workspace.note(), "");
}

#[test]
fn a_root_in_tmp_is_not_in_the_tmp_of_the_session() {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::create_dir(directory.path().join("ws")).unwrap();
    let runtime = workspace_runtime(directory.path());
    let session = runtime.session();
    let workspace = Workspace { directory, runtime, session };
    for file in ["/tmp/change-notice.txt", "a.txt"] {
        let reply = workspace.call("Write", json!({"file_path": file, "content": "one\n"}));
        assert!(!reply.text().contains("[changed since"), "{}", reply.text());
    }
    workspace.write_externally("a.txt", "two\n");
    assert!(workspace.note().contains("a.txt line 1"), "it is noticed");
}

#[test]
fn a_raw_operation_leaves_the_notice_to_the_next_reply() {
    let workspace = workspace(&["a.txt"]);
    workspace.write_externally("a.txt", "one\n");
    let backend = workspace.runtime.backend(&workspace.session, Options::default());
    backend.stat("a.txt", true).unwrap();
    let point = backend.snapshot().unwrap();
    backend.write("b.txt", *b"b", toolcrib::backend::WriteOptions::default()).unwrap();
    backend.restore(point).unwrap();
    assert!(workspace.note().contains("a.txt"));
}
