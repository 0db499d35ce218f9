//! Files seen by a session, and concurrent calls.

use std::os::unix::fs::DirBuilderExt;

use serde_json::{Value, json};
use toolcrib::{Call, Caps, Error, ErrorKind, Options, Reply, Runtime, Session};

struct Workspace {
    directory: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
}

fn workspace(content: &str) -> Workspace {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("ws")).unwrap();
    std::fs::write(directory.path().join("ws/a.txt"), content).unwrap();
    let runtime = Runtime::builder()
        .root(directory.path().join("ws"))
        .journal(directory.path().join("state"), Caps::default())
        .build()
        .unwrap();
    let session = runtime.session();
    Workspace { directory, runtime, session }
}

impl Workspace {
    fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    fn edit(&self, old: &str, new: &str) -> Result<Reply, Error> {
        self.call("Edit", json!({"file_path": "a.txt", "old_string": old, "new_string": new}))
    }

    fn read(&self) {
        self.call("Read", json!({"file_path": "a.txt"})).unwrap();
    }

    fn write(&self, content: &str) -> Result<Reply, Error> {
        self.call("Write", json!({"file_path": "a.txt", "content": content}))
    }

    fn write_externally(&self, content: &str) {
        std::fs::write(self.directory.path().join("ws/a.txt"), content).unwrap();
    }

    fn content(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("ws/a.txt")).unwrap()
    }
}

/// The content of a file counts, not its mtime.
#[test]
fn touched_but_unchanged_file_counts_as_seen() {
    let workspace = workspace("one\ntwo\n");
    workspace.read();
    workspace.write_externally("one\ntwo\n");
    assert!(workspace.write("1\n").is_ok());
    assert!(workspace.write("2\n").is_ok(), "its own writes are seen");
    assert!(workspace.edit("2", "3").is_ok());
    assert!(workspace.write("4\n").is_ok());
}

#[test]
fn externally_changed_file_is_not_overwritten() {
    let workspace = workspace("1\n2\n3\n4\n5\n");
    workspace.read();
    workspace.write_externally("1\n2\n3\nfour\n5\n");
    let error = workspace.write("all mine\n").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale);
    assert!(
        error.message().contains("changed at line 4 since this session last read or wrote it"),
        "{error}"
    );
    assert!(error.text().contains("     4\tfour\n"), "{error}");
    assert_eq!(workspace.content(), "1\n2\n3\nfour\n5\n");
}

/// An unrelated external change is noted once and does not prevent edits.
#[test]
fn read_reports_external_changes() {
    let workspace = workspace("one\ntwo\nthree\n");
    let again = || {
        let args = json!({"file_path": "a.txt", "if_changed_since": "seen"});
        workspace.call("Read", args).unwrap().output().to_owned()
    };
    assert_eq!(again(), "     1\tone\n     2\ttwo\n     3\tthree\n", "not seen yet");
    assert_eq!(again(), "a.txt is unchanged.\n");
    workspace.write_externally("one\n2\nthree\n");
    let header = "[changed since it was last seen: line 2]\n";
    assert!(again().starts_with(header), "told");
    workspace.edit("one", "1").unwrap();
    assert_eq!(again(), "a.txt is unchanged.\n", "one's own change is known");
}

#[test]
fn edit_succeeds_after_an_external_change_of_other_lines() {
    let workspace = workspace("1\n2\n3\n4\n5\n");
    workspace.read();
    workspace.write_externally("1\n2\n3\nfour\n5\n");
    let reply = workspace.edit("1", "one").unwrap();
    assert!(
        reply.output().contains("last saw it, the file was changed: line 4"),
        "{}",
        reply.text()
    );
    let reply = workspace.edit("2", "two").unwrap();
    assert!(!reply.output().contains("was changed"), "{}", reply.text());
}

#[test]
fn concurrent_edits_are_applied_or_rejected() {
    let lines: Vec<String> = (0..60).map(|n| format!("line {n}.")).collect();
    let workspace = workspace(&lines.join("\n"));
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let workspace = &workspace;
            scope.spawn(move || {
                for n in (thread * 10)..(thread * 10 + 10) {
                    workspace.edit(&format!("line {n}."), &format!("edited {n}.")).unwrap();
                }
            });
        }
    });
    let expected: Vec<String> = (0..60).map(|n| format!("edited {n}.")).collect();
    assert_eq!(workspace.content(), expected.join("\n"));
    assert_eq!(workspace.runtime.history().unwrap().len(), 60);
}

#[test]
fn own_state_and_configuration_are_hidden() {
    let directory = tempfile::tempdir().unwrap();
    for own in ["state", "config"] {
        std::fs::DirBuilder::new().mode(0o700).create(directory.path().join(own)).unwrap();
        std::fs::write(directory.path().join(own).join("file"), "ours").unwrap();
    }
    std::os::unix::fs::symlink("config", directory.path().join("innocent")).unwrap();
    let runtime = Runtime::builder()
        .root(directory.path())
        .journal(directory.path().join("state"), Caps::default())
        .own(directory.path().join("config"))
        .build()
        .unwrap();
    let session = runtime.session();
    for path in ["state/file", "config/file", "innocent/file", "config/new"] {
        for (tool, args) in [
            ("Read", json!({"file_path": path})),
            ("Write", json!({"file_path": path, "content": "theirs"})),
        ] {
            let error = runtime.call(&session, Call::new(tool, args), Options::default());
            assert_eq!(error.unwrap_err().kind(), ErrorKind::Protected, "{tool} {path}");
        }
    }
}

/// The written change is the approved one: the file must not change while the question is open.
#[test]
fn file_changed_during_a_question_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.txt");
    std::fs::write(&file, "one\n").unwrap();
    let runtime = Runtime::builder()
        .root(directory.path())
        .profile(toolcrib::Profile::Cautious)
        .build()
        .unwrap();
    let approver = |_: &toolcrib::Question<'_>| {
        std::fs::write(&file, "one\none more\n").unwrap();
        toolcrib::Answer::Allow
    };
    let options = Options { approver: &approver, ..Options::default() };
    let args = json!({"file_path": "a.txt", "old_string": "one\n", "new_string": "two\n", "replace_all": true});
    let error = runtime.call(&runtime.session(), Call::new("Edit", args), options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale, "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"one\none more\n");
}

#[test]
fn edit_result_is_bounded() {
    let workspace = workspace(&"a".repeat(300_000));
    let all = |new: &str| {
        workspace.call("Edit", json!({"file_path": "a.txt", "old_string": "a", "new_string": new, "replace_all": true}))
    };
    let error = all(&"b".repeat(10_000)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let reply = all("b").unwrap();
    assert_eq!(reply.metadata()["replacements"], 300_000);
    assert!(reply.metadata()["lines"].as_array().unwrap().len() <= 20);
    assert!(workspace.content().bytes().all(|byte| byte == b'b'));
}

/// Once per file and session, with any tool; never for a deleted file.
#[test]
fn run_later_file_is_named_once() {
    let workspace = workspace("");
    let write = |name: &str, content: &str| {
        workspace.call("Write", json!({"file_path": name, "content": content})).unwrap()
    };
    let note = "[Makefile: its rules run outside the sandbox when a person or CI runs make]";
    let reply = write("Makefile", "all:\n");
    assert!(reply.output().contains(note), "{}", reply.output());
    assert_eq!(reply.metadata()["runs_later"], json!(["Makefile"]));
    let reply = write("Makefile", "all: x\n");
    assert!(!reply.text().contains("outside the sandbox"), "{}", reply.text());
    assert!(!reply.metadata().contains_key("runs_later"));
    assert_eq!(write("b/Makefile", "all:\n").metadata()["runs_later"], json!(["b/Makefile"]));
    let patch = "*** Begin Patch\n*** Add File: build.rs\n+fn main() {}\n*** Delete File: b/Makefile\n*** End Patch\n";
    let reply = workspace.call("ApplyPatch", json!({"patch": patch})).unwrap();
    assert_eq!(reply.metadata()["runs_later"], json!(["build.rs"]), "{}", reply.text());
    let other = workspace.runtime.session();
    let again = json!({"file_path": "Makefile", "old_string": "x", "new_string": "y"});
    let reply = workspace.runtime.call(&other, Call::new("Edit", again), Options::default());
    assert_eq!(reply.unwrap().metadata()["runs_later"], json!(["Makefile"]));
}

#[test]
fn every_tool_names_a_removed_workspace() {
    let workspace = workspace("one\n");
    workspace.read();
    std::fs::remove_dir_all(workspace.directory.path().join("ws")).unwrap();
    let calls = [
        ("Read", json!({"file_path": "a.txt"})),
        ("Write", json!({"file_path": "b.txt", "content": "b\n"})),
        ("Edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
        ("LS", json!({})),
        ("Glob", json!({"pattern": "*"})),
        ("Grep", json!({"pattern": "one"})),
    ];
    for (tool, args) in calls {
        let error = workspace.call(tool, args).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Stale, "{tool}: {error}");
        assert!(error.message().ends_with("was removed while this session ran"), "{tool}: {error}");
    }
}
