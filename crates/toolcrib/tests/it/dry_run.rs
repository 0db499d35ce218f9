//! A dry run is a rehearsal: it decides as the real call would, and changes nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolcrib::{Answer, Call, Caps, Error, Options, Profile, Question, Reply, Rules, Runtime};

struct Place {
    directory: tempfile::TempDir,
    runtime: Runtime,
}

fn place(profile: Profile, rules: &str) -> Place {
    let directory = crate::command_directory();
    let workspace = directory.path().join("ws");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(workspace.join("a.txt"), "one\n").unwrap();
    std::fs::write(workspace.join("n.ipynb"), NOTEBOOK).unwrap();
    let build = |profile| {
        Runtime::builder()
            .root(&workspace)
            .profile(profile)
            .rules(Rules::parse(rules).unwrap())
            .helper(crate::helper())
            .journal(directory.path().join("state"), Caps::default())
            .build()
            .unwrap()
    };
    let write = json!({"file_path": "b.txt", "content": "x\n"});
    let made = build(Profile::Workspace);
    made.call(&made.session(), Call::new("Write", write), Options::default()).unwrap();
    let runtime = build(profile);
    Place { directory, runtime }
}

const NOTEBOOK: &str = r#"{"cells": [{"cell_type": "code", "id": "c1", "metadata": {}, "outputs": [],
"execution_count": null, "source": ["1"]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#;

impl Place {
    fn dry(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        let options = Options { dry_run: true, ..Options::default() };
        self.runtime.call(&self.runtime.session(), Call::new(tool, args), options)
    }

    fn real(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.runtime.session(), Call::new(tool, args), Options::default())
    }

    /// The files of the workspace, and the changes in the journal.
    fn state(&self) -> (Vec<(String, String)>, usize) {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(self.directory.path().join("ws")).unwrap() {
            let path = entry.unwrap().path();
            files.push((path.display().to_string(), std::fs::read_to_string(path).unwrap()));
        }
        files.sort();
        (files, self.runtime.history().unwrap().len())
    }
}

fn calls() -> Vec<(&'static str, Value)> {
    let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    let edits = json!([{"old_string": "one", "new_string": "two"}]);
    let patch = "*** Begin Patch\n*** Update File: a.txt\n-one\n+two\n*** Add File: c.txt\n+x\n*** End Patch\n";
    vec![
        ("Read", json!({"file_path": "a.txt"})),
        ("Write", json!({"file_path": "c.txt", "content": "x\n"})),
        ("Edit", edit),
        ("MultiEdit", json!({"file_path": "a.txt", "edits": edits})),
        ("ApplyPatch", json!({"patch": patch})),
        ("NotebookEdit", json!({"notebook_path": "n.ipynb", "cell_id": "c1", "new_source": "2"})),
        ("LS", json!({})),
        ("Glob", json!({"pattern": "*"})),
        ("Grep", json!({"pattern": "one"})),
        ("Bash", json!({"command": "echo x > c.txt; rm a.txt"})),
        ("BashOutput", json!({"bash_id": "sh_1"})),
        ("KillShell", json!({"shell_id": "sh_1"})),
        ("ListShells", json!({})),
        ("Undo", json!({"id": 1})),
        ("History", json!({})),
    ]
}

#[test]
fn no_tool_changes_anything_in_any_profile() {
    for profile in Profile::ALL {
        let place = place(profile, "");
        let before = place.state();
        let calls = calls();
        for tool in place.runtime.tools() {
            assert!(calls.iter().any(|(name, _)| *name == tool.name), "{} is missing", tool.name);
        }
        for (tool, args) in calls {
            for args in
                [args.clone(), json!(args.to_string()), json!([args]), json!(null), json!(5)]
            {
                let _ = place.dry(tool, args);
                assert_eq!(place.state(), before, "{profile} {tool}");
            }
        }
    }
}

#[test]
fn tools_that_change_files_show_their_diff() {
    let place = place(Profile::Workspace, "");
    for (tool, expected) in [
        ("Write", "+x"),
        ("Edit", "-one\n+two"),
        ("MultiEdit", "-one\n+two"),
        ("ApplyPatch", "-one\n+two"),
        ("NotebookEdit", "\"source\": [\"2\"]"),
        ("Undo", "-x"),
    ] {
        let args = calls().into_iter().find(|(name, _)| *name == tool).unwrap().1;
        let reply = place.dry(tool, args).unwrap();
        assert!(reply.text().contains(expected), "{tool}: {}", reply.text());
        assert!(reply.text().contains("Dry run"), "{tool}: {}", reply.text());
        assert_eq!(reply.metadata()["dry_run"], true, "{tool}");
    }
}

#[test]
fn a_call_that_would_be_refused_is_refused_with_the_same_error() {
    let rules = "[[rule]]\ndecision = \"deny\"\nkind = \"edit\"\npaths = [\"a.txt\"]\n";
    for (profile, rules) in [
        (Profile::ReadOnly, ""),
        (Profile::Workspace, ""),
        (Profile::Workspace, rules),
        (Profile::Open, ""),
    ] {
        let place = place(profile, rules);
        for (tool, args) in [
            ("Write", json!({"file_path": "c.txt", "content": "x"})),
            ("Write", json!({"file_path": "a.txt", "content": "x"})),
            ("Write", json!({"file_path": ".envrc", "content": "x"})),
            ("Edit", json!({"file_path": "a.txt", "old_string": "none", "new_string": "x"})),
            ("Edit", json!({"file_path": "missing.txt", "old_string": "a", "new_string": "x"})),
            ("Bash", json!({"command": "true", "cwd": "missing"})),
            ("Bash", json!({"command": "true", "cwd": "a.txt"})),
            ("Bash", json!({"command": "if true; then"})),
            ("Undo", json!({"id": 900})),
            ("KillShell", json!({"shell_id": "sh_7"})),
        ] {
            let dry = place.dry(tool, args.clone());
            let Err(dry) = dry else { continue };
            let real = place.real(tool, args.clone()).err();
            assert_eq!(real.map(|error| error.text()), Some(dry.text()), "{profile} {tool} {args}");
        }
        let destroys = json!({"command": "rm -rf /"});
        let is_refused = place.dry("Bash", destroys).is_err();
        assert_eq!(is_refused, profile != Profile::Open, "{profile}");
    }
}

#[test]
fn a_dry_run_reports_a_question_and_does_not_ask_it() {
    let asked = AtomicUsize::new(0);
    let approver = |_: &Question<'_>| {
        asked.fetch_add(1, Ordering::SeqCst);
        Answer::Allow
    };
    let options = Options { dry_run: true, approver: &approver, ..Options::default() };
    let ask = "[[rule]]\ndecision = \"ask\"\nkind = \"edit\"\npaths = [\"a.txt\"]\n";
    for (profile, rules, shows_diff) in
        [(Profile::Cautious, "", false), (Profile::Workspace, ask, true)]
    {
        let place = place(profile, rules);
        let args = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
        let call = Call::new("Edit", args);
        let reply = place.runtime.call(&place.runtime.session(), call, options).unwrap();
        let text = reply.text();
        assert!(text.contains("[would ask: "), "{text}");
        assert_eq!(text.contains("-one"), shows_diff, "{text}");
        let question = &reply.metadata()["would_ask"];
        assert!(question["rule"].is_string() && question["why"].is_string(), "{question}");
        let missing = json!({"file_path": "a.txt", "old_string": "none", "new_string": "two"});
        let call = Call::new("Edit", missing);
        let outcome = place.runtime.call(&place.runtime.session(), call, options);
        assert_eq!(outcome.is_err(), shows_diff, "it tells nothing of a file that is asked about");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}
