//! Replies to edits name the new errors of language servers, and no other errors.
//!
//! The server is a script whose behaviour each test chooses. `cargo xtask servers` tests real ones.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::{Call, Caps, LanguageServer, Options, Reply, Runtime, Session, running_commands};

use crate::{command_directory, eventually, helper};

struct Project {
    directory: tempfile::TempDir,
    runtime: Runtime,
    session: Option<Session>,
}

/// A project whose files are checked by a server with this behaviour.
fn project(mode: &str) -> Project {
    project_with(&[mode], |server| server)
}

/// A project whose files are checked by a server for each of these behaviours.
fn project_with(modes: &[&str], set: impl Fn(LanguageServer) -> LanguageServer) -> Project {
    let directory = command_directory();
    let top = directory.path();
    std::fs::create_dir(top.join("ws")).unwrap();
    let program = top.join("language_server.py");
    std::fs::write(&program, include_str!("edit_checks/language_server.py")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let go = top.join("go").to_str().unwrap().to_owned();
    let server = |mode: &&str| {
        set(LanguageServer {
            arguments: vec![(*mode).to_owned(), go.clone()],
            ..LanguageServer::new("script", program.clone(), &["py"])
        })
    };
    let runtime = Runtime::builder()
        .root(top.join("ws"))
        .journal(top.join("state"), Caps::default())
        .helper(helper())
        .environment(|| std::env::vars_os().collect())
        .language_servers(modes.iter().map(server).collect())
        .build()
        .unwrap();
    let session = Some(runtime.session());
    Project { directory, runtime, session }
}

impl Project {
    fn call(&self, tool: &str, args: Value) -> Reply {
        let session = self.session.as_ref().unwrap();
        self.runtime.call(session, Call::new(tool, args), Options::default()).unwrap()
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join("ws").join(file)
    }

    fn put(&self, file: &str, content: &str) {
        std::fs::write(self.path(file), content).unwrap();
    }

    fn edit(&self, old: &str, new: &str) -> Reply {
        self.call("Edit", json!({"file_path": "a.py", "old_string": old, "new_string": new}))
    }

    /// Checks the notes about errors of an edit. On a slow machine they come with later replies.
    #[track_caller]
    fn assert_errors(&self, reply: &Reply, expected: &[&str]) {
        let is_pending = |note: &String| note.starts_with("[errors not known yet");
        let mut found = notes(reply);
        if found.iter().any(is_pending) {
            found.retain(|note| !is_pending(note));
            eventually_with(|| {
                found.extend(notes(&self.other_reply()));
                found.len() >= expected.len().max(1)
            });
        }
        found.retain(|note| !note.starts_with("[no new errors"));
        found.sort();
        assert_eq!(found, expected);
    }

    /// Lets a waiting server answer.
    fn go(&self) {
        std::fs::write(self.directory.path().join("go"), "").unwrap();
    }

    /// A reply that has nothing to do with the file.
    fn other_reply(&self) -> Reply {
        self.call("Glob", json!({"pattern": "*.none"}))
    }

    /// The only note of this reply and later ones, besides those that announce a result.
    fn check_note(&self, reply: &Reply) -> String {
        let mut found = notes(reply);
        eventually_with(|| {
            found.retain(|note| note != LATER);
            if found.is_empty() {
                found.extend(notes(&self.other_reply()));
            }
            !found.is_empty()
        });
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    fn server_runs(&self) -> bool {
        let program = self.directory.path().join("language_server.py");
        let program = program.to_str().unwrap().to_owned();
        running_commands().iter().any(|command| command.command.contains(&program))
    }
}

/// The notes about errors.
fn notes(reply: &Reply) -> Vec<String> {
    let openings = ["[new error", "[no new errors", "[errors not known yet", "[check: "];
    let is_note = |line: &&str| openings.iter().any(|opening| line.starts_with(opening));
    reply.output().lines().filter(is_note).map(str::to_owned).collect()
}

const LATER: &str = "[errors not known yet: a.py (script); a later reply has them]";

#[test]
fn only_new_errors_are_named() {
    let project = project("pull");
    project.put("a.py", "one\nbad = 1\n");
    let reply = project.edit("one", "zero\none\nbad(2)");
    project.assert_errors(&reply, &["[new error in a.py: line 3: bad name bad(2) (script B1)]"]);
    if let Some(errors) = reply.metadata().get("new_errors") {
        assert_eq!(*errors, json!(["a.py:3: bad name bad(2) (script B1)"]));
    }
    project.assert_errors(&project.edit("bad(2)", "good(2)"), &[]);
    // Moved errors are not new.
    project.assert_errors(&project.edit("one", "one\nother"), &[]);
}

#[test]
fn every_edit_tool_is_checked_and_five_errors_are_named() {
    let project = project("pull");
    let lines: String = (0..7).map(|at| format!("bad({at})\n")).collect();
    let reply = project.call("Write", json!({"file_path": "a.py", "content": lines}));
    let named: Vec<String> =
        (0..5).map(|at| format!("line {}: bad name bad({at}) (script B1)", at + 1)).collect();
    let note = format!("[new errors in a.py: {}; and 2 more]", named.join("; "));
    project.assert_errors(&reply, &[&note]);
    project.put("b.py", "b\n");
    let files = json!([
        {
            "file_path": "a.py",
            "edits": [{"old_string": "bad(0)", "new_string": "bad(0)\nbad('x')"}],
        },
        {"file_path": "b.py", "edits": [{"old_string": "b", "new_string": "bad()"}]},
    ]);
    let expected = [
        "[new error in a.py: line 2: bad name bad('x') (script B1)]",
        "[new error in b.py: line 1: bad name bad() (script B1)]",
    ];
    project.assert_errors(&project.call("MultiEdit", json!({"files": files})), &expected);
    let patch = "*** Begin Patch\n*** Update File: b.py\n*** Move to: c.py\n@@\n bad()\n+bad('y')\n*** End Patch\n";
    let moved = ["[new error in c.py: line 2: bad name bad('y') (script B1)]"];
    project.assert_errors(&project.call("ApplyPatch", json!({"patch": patch})), &moved);
}

#[test]
fn published_errors_of_other_texts_are_not_used() {
    let project = project("push");
    project.put("a.py", "one\n");
    let reply = project.edit("one", "bad");
    project.assert_errors(&reply, &["[new error in a.py: line 1: bad name bad (script B1)]"]);
    project.assert_errors(&project.edit("bad", "good"), &[]);
}

#[test]
fn wrong_answers_are_not_used() {
    let project = project("wrong");
    project.put("a.py", "one\n");
    let reply = project.edit("one", "two");
    assert_eq!(notes(&reply), [LATER]);
    assert!(!reply.text().contains("stale"));
}

#[test]
fn late_errors_come_with_a_later_reply_if_the_file_is_the_same() {
    let project = project("wait");
    project.put("a.py", "one\n");
    let reply = project.edit("one", "slow\nbad(1)");
    assert_eq!(notes(&reply), [LATER]);
    assert_eq!(reply.metadata()["unknown_errors"], json!(["a.py"]));
    assert!(notes(&project.other_reply()).is_empty());
    project.go();
    let mut found = Vec::new();
    eventually_with(|| {
        found = notes(&project.other_reply());
        !found.is_empty()
    });
    assert_eq!(found, ["[new error in a.py: line 2: bad name bad(1) (script B1)]"]);
    assert!(notes(&project.other_reply()).is_empty(), "they are told once");
}

#[test]
fn late_errors_of_a_changed_file_are_not_told() {
    let project = project("wait");
    project.put("a.py", "one\n");
    assert_eq!(notes(&project.edit("one", "slow\nbad(1)")), [LATER]);
    project.put("a.py", "another program wrote this\n");
    project.put("b.py", "b\n");
    project.go();
    // The server has answered all earlier checks when this one is known.
    let args = json!({"file_path": "b.py", "old_string": "b", "new_string": "bad(2)"});
    let mut found = notes(&project.call("Edit", args));
    eventually_with(|| {
        found.extend(notes(&project.other_reply()));
        found.iter().any(|note| note.contains("bad(2)"))
    });
    assert!(!found.iter().any(|note| note.contains("bad(1)")), "{found:?}");
}

#[test]
fn errors_of_an_edit_that_was_not_checked_in_time_are_not_lost() {
    let project = project("wait");
    project.put("a.py", "one\n");
    assert_eq!(notes(&project.edit("one", "slow\nbad(1)")), [LATER]);
    assert_eq!(notes(&project.edit("slow", "slow\nbad(2)")), [LATER]);
    project.go();
    let mut found = Vec::new();
    eventually_with(|| {
        found = notes(&project.other_reply());
        !found.is_empty()
    });
    let expected = "[new errors in a.py: line 2: bad name bad(2) (script B1); line 3: bad name bad(1) (script B1)]";
    assert_eq!(found, [expected]);
}

#[test]
fn broken_servers_are_given_up_with_one_note() {
    for (mode, why) in [
        ("garbage", "a message has no valid length"),
        ("huge", "a message is too long"),
        ("endless header", "the header of a message is too long"),
        ("crash", "it ended: it is broken"),
    ] {
        let project = project(mode);
        project.put("a.py", "one\n");
        let expected = format!("[check: script is not used any more: {why}]");
        assert_eq!(project.check_note(&project.edit("one", "bad")), expected, "{mode}");
        assert!(notes(&project.edit("bad", "worse")).is_empty(), "{mode}");
    }
}

#[test]
fn servers_that_do_not_answer_delay_no_call_for_ever() {
    for mode in ["endless body", "requests", "deaf"] {
        let project = project(mode);
        project.put("a.py", "one\n");
        let reply = project.edit("one", "bad");
        assert_eq!(notes(&reply), [LATER], "{mode}");
        assert_eq!(std::fs::read_to_string(project.path("a.py")).unwrap(), "bad\n");
    }
}

#[test]
fn a_server_that_does_not_answer_twice_is_given_up() {
    let answer_time = Duration::from_millis(200);
    let project = project_with(&["silent"], |server| LanguageServer { answer_time, ..server });
    project.put("a.py", "one\n");
    let first = project.edit("one", "two");
    assert_eq!(project.check_note(&first), "[check: script did not check a.py]");
    eventually(|| !project.server_runs());
    let second = project.edit("two", "three");
    let expected = "[check: script is not used any more: it does not answer]";
    assert_eq!(project.check_note(&second), expected);
    eventually(|| !project.server_runs());
}

#[test]
fn a_late_server_does_not_repeat_the_errors_of_another() {
    let project = project_with(&["pull", "wait"], |server| server);
    project.put("a.py", "one\n");
    project.put("b.py", "b\n");
    let mut found = notes(&project.edit("one", "slow\nbad(1)"));
    assert_eq!(found.last().unwrap(), LATER);
    project.go();
    let mut text = "b".to_owned();
    // The servers have answered all earlier checks when this one is known.
    eventually_with(|| {
        let longer = format!("{text}b");
        let args = json!({"file_path": "b.py", "old_string": text, "new_string": longer});
        text = longer;
        let new = notes(&project.call("Edit", args));
        let is_known = !new.iter().any(|note| note.starts_with("[errors not known yet"));
        found.extend(new);
        is_known
    });
    found.extend(notes(&project.other_reply()));
    let expected = "[new error in a.py: line 2: bad name bad(1) (script B1)]";
    assert_eq!(found.iter().filter(|note| note.contains("bad(1)")).collect::<Vec<_>>(), [expected]);
}

#[test]
fn unchecked_files_are_counted() {
    let project = project("pull");
    let file = |at: usize| format!("*** Add File: f{at}.py\n+x\n");
    let patch = |count| {
        format!("*** Begin Patch\n{}*** End Patch\n", (0..count).map(file).collect::<String>())
    };
    let expected = "[check: only 10 of the 12 edited files are checked]";
    let reply = project.call("ApplyPatch", json!({"patch": patch(12)}));
    assert!(notes(&reply).contains(&expected.to_owned()), "{}", reply.output());
}

#[test]
fn servers_that_run_programs_of_the_project_need_the_tool_for_commands() {
    for (tools, expected) in [(&["Edit", "Bash"][..], 1), (&["Edit"], 0)] {
        let directory = command_directory();
        let server = LanguageServer {
            runs_project_programs: true,
            ..LanguageServer::new("script", "/bin/true", &["py"])
        };
        let runtime = Runtime::builder()
            .root(directory.path())
            .helper(helper())
            .only_tools(tools.iter().copied())
            .language_servers(vec![server])
            .build()
            .unwrap();
        assert_eq!(runtime.language_servers().len(), expected, "{tools:?}");
    }
}

#[test]
fn a_server_only_reads() {
    let project = project("sandbox");
    project.put("a.py", "one\n");
    project.edit("one", "two");
    let reply = project.call("Write", json!({"file_path": "b.py", "content": "x\n"}));
    let expected = "attempts: could not write a file, could not remove a file, could not connect";
    let mut output = reply.output().to_owned();
    eventually_with(|| {
        output.push_str(project.other_reply().output());
        output.contains("attempts: ")
    });
    assert!(output.contains(expected), "{output}");
    assert!(!project.path("planted").exists());
}

#[test]
fn a_server_ends_with_its_last_session() {
    let mut project = project("pull");
    project.put("a.py", "one\n");
    assert!(!project.server_runs(), "it starts at the first edit");
    let other = project.runtime.session();
    project.edit("one", "two");
    assert!(project.server_runs());
    drop(other);
    assert!(project.server_runs());
    project.session = None;
    eventually(|| !project.server_runs());
}

#[test]
fn dry_runs_and_texts_that_do_not_parse_are_not_checked() {
    let project = project("pull");
    project.put("a.py", "one = 1\n");
    let args = json!({"file_path": "a.py", "old_string": "one", "new_string": "bad"});
    let options = Options { dry_run: true, ..Options::default() };
    let session = project.session.as_ref().unwrap();
    let reply = project.runtime.call(session, Call::new("Edit", args), options).unwrap();
    assert!(notes(&reply).is_empty());
    let reply = project.edit("one", "bad = (");
    assert!(reply.output().contains("New syntax error") && notes(&reply).is_empty());
    let reply = project.edit("bad = (", "bad");
    project.assert_errors(&reply, &["[new error in a.py: line 1: bad name bad = 1 (script B1)]"]);
}

/// Like [`eventually`], for a condition with effects.
fn eventually_with(mut holds: impl FnMut() -> bool) {
    let holds = std::cell::RefCell::new(&mut holds);
    eventually(|| holds.borrow_mut()());
}
