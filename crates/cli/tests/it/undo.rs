//! `toolcrib log`, `undo` and `redo`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{PROGRAM, isolated_home, text, toolcrib};

/// Returns the id of the change. Workspaces share the numbers of their journal.
fn edit(workspace: &std::path::Path, old: &str, new: &str) -> u64 {
    let args = serde_json::json!({"file_path": "a.txt", "old_string": old, "new_string": new});
    let output = toolcrib(workspace, &["call", "Edit", "-"], args.to_string().as_bytes());
    assert!(output.status.success(), "{}", text(&output.stdout));
    let reply: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    reply["metadata"]["change"].as_u64().unwrap()
}

#[test]
fn the_operator_lists_and_undoes_changes() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path();
    std::fs::write(workspace.join("a.txt"), "one\n").unwrap();
    let content = || std::fs::read_to_string(workspace.join("a.txt")).unwrap();
    let run = |words: &[&str]| toolcrib(workspace, words, b"");
    assert!(text(&run(&["log", "--text"]).stdout).contains("No changes are recorded here yet."));
    edit(workspace, "one", "two");
    edit(workspace, "two", "three");

    let log: Value = serde_json::from_slice(&run(&["log", "--json"]).stdout).unwrap();
    let changes = log["changes"].as_array().unwrap();
    assert_eq!((changes.len(), &log["complete"]), (2, &Value::Bool(true)));
    assert_eq!(changes[0]["tool"], "Edit");
    assert_eq!(changes[0]["arguments"]["new_string"], "three");
    assert_eq!(changes[0]["rule"], "profile:workspace:write");
    assert_eq!(changes[0]["files"][0]["path"], "a.txt");
    let (first, last) = (changes[1]["id"].to_string(), changes[0]["id"].to_string());
    assert!(text(&run(&["log", "--text"]).stdout).contains("Edit: a.txt"));
    assert!(text(&run(&["show", &first, "--text"]).stdout).contains("-one\n+two\n"));
    assert!(text(&run(&["diff"]).stdout).contains("-one\n+three\n"));
    assert!(text(&run(&["diff", &last]).stdout).contains("-two\n+three\n"));

    assert!(run(&["undo", "--dry-run"]).status.success());
    assert_eq!(content(), "three\n");
    assert!(run(&["undo", "-y"]).status.success());
    assert_eq!(content(), "two\n");
    assert!(run(&["undo", "-y"]).status.success());
    assert_eq!(content(), "one\n");
    assert_eq!(text(&run(&["diff"]).stdout), "");
    assert_eq!(run(&["undo", "-y"]).status.code(), Some(1));
    assert!(run(&["redo", "-y"]).status.success());
    assert_eq!(content(), "two\n");
    assert!(run(&["redo", "-y"]).status.success());
    assert_eq!(content(), "three\n");
    assert_eq!(run(&["redo", "-y"]).status.code(), Some(1));
    assert_eq!(run(&["show", "99999"]).status.code(), Some(1));
}

#[test]
fn redo_stops_at_newer_changes() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path();
    std::fs::write(workspace.join("a.txt"), "one\n").unwrap();
    edit(workspace, "one", "two");
    assert!(toolcrib(workspace, &["undo", "-y"], b"").status.success());
    let newer = edit(workspace, "one", "three");
    let redo = toolcrib(workspace, &["redo", "-y"], b"");
    let shown = format!("{}{}", text(&redo.stdout), text(&redo.stderr));
    assert_eq!(redo.status.code(), Some(1), "{shown}");
    assert!(shown.contains(&format!("change {newer} was made after the last undo")), "{shown}");
    assert!(shown.contains("` reverts that undo"), "{shown}");
    // Without it, the undo is the last step again.
    assert!(toolcrib(workspace, &["undo", &newer.to_string(), "-y"], b"").status.success());
    assert!(toolcrib(workspace, &["redo", "-y"], b"").status.success());
    assert_eq!(std::fs::read_to_string(workspace.join("a.txt")).unwrap(), "three\n");
}

#[test]
fn the_log_of_one_path_has_only_its_changes() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path();
    for name in ["sub/a.txt", "sub/b.txt", "c.txt"] {
        let args = json!({"file_path": name, "content": "new\n"}).to_string();
        assert!(toolcrib(workspace, &["call", "Write", "-"], args.as_bytes()).status.success());
    }
    std::fs::remove_file(workspace.join("sub/a.txt")).unwrap();
    std::os::unix::fs::symlink("c.txt", workspace.join("link")).unwrap();
    let listed = |from: &str, path: &str| {
        let words = ["log", "--json", "--path", path];
        let log = toolcrib(&workspace.join(from), &words, b"").stdout;
        let log: Value = serde_json::from_slice(&log).unwrap();
        let changes = log["changes"].as_array().unwrap().iter();
        let files = changes.map(|change| change["files"][0]["path"].as_str().unwrap().to_owned());
        files.collect::<Vec<_>>()
    };
    assert_eq!(listed("", "sub/a.txt"), ["sub/a.txt"]);
    assert_eq!(listed("sub", "a.txt"), ["sub/a.txt"]);
    assert_eq!(listed("", "sub"), ["sub/b.txt", "sub/a.txt"]);
    assert_eq!(listed("", "link"), ["c.txt"]);
    assert_eq!(listed("", "none"), [""; 0]);
    let none = toolcrib(workspace, &["log", "--text", "--path", "none"], b"");
    assert_eq!(text(&none.stdout), "No change of none is recorded here.\n");
}

#[test]
fn without_a_terminal_nothing_is_undone_without_consent() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path();
    std::fs::write(workspace.join("a.txt"), "one\n").unwrap();
    edit(workspace, "one", "two");
    for words in [&["undo"][..], &["undo", "--json"], &["redo"]] {
        let output = toolcrib(workspace, words, b"");
        let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
        let is_refused = output.status.code() == Some(1) && shown.contains("Pass -y");
        // There is nothing to redo.
        assert!(is_refused || words == ["redo"], "{words:?}: {shown}");
    }
    assert_eq!(std::fs::read_to_string(workspace.join("a.txt")).unwrap(), "two\n");
    assert!(toolcrib(workspace, &["undo", "--dry-run"], b"").status.success());
    assert!(toolcrib(workspace, &["undo", "--yes"], b"").status.success());
    let redo = toolcrib(workspace, &["redo"], b"");
    assert_eq!(redo.status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(workspace.join("a.txt")).unwrap(), "one\n");
}

#[test]
fn the_operator_undoes_one_path_or_all_changes_since_one() {
    // Outside /tmp, which commands see as another directory.
    let directory = crate::command_directory();
    let workspace = directory.path();
    let says = |name: &str| std::fs::read_to_string(workspace.join(name)).ok();
    let run = |words: &[&str]| {
        let output = toolcrib(workspace, words, b"");
        (output.status.code(), text(&output.stdout).to_owned())
    };
    let bash = |command: &str| {
        let args = serde_json::json!({"command": command}).to_string();
        let output = toolcrib(workspace, &["call", "Bash", "-"], args.as_bytes());
        assert!(output.status.success(), "{}", text(&output.stdout));
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        reply["metadata"]["change"].to_string()
    };
    let first = bash("echo 1 > a; echo 1 > b; ln -s a l");
    let second = bash("echo 2 > a; echo 2 > b");
    let third = bash("mkdir __pycache__; echo c > __pycache__/c.pyc");

    let (_, log) = run(&["log", "--text"]);
    assert!(log.contains(
        "Bash `mkdir __pycache__; echo c > __pycache__/c.pyc`: 1 ignored or generated file"
    ));
    assert!(log.contains("Bash `echo 2 > a; echo 2 > b`: a, b"), "{log}");
    let (_, shown) = run(&["show", &second, "--text"]);
    assert!(shown.contains("Bash `echo 2 > a; echo 2 > b`: a, b"), "{shown}");

    assert_eq!(run(&["undo", "-y", "--path", "a"]).0, Some(0));
    assert_eq!((says("a").as_deref(), says("b").as_deref()), (Some("1\n"), Some("2\n")));
    assert!(run(&["log", "--text"]).1.contains("partly undone"));
    assert_eq!(run(&["redo", "-y"]).0, Some(0));
    assert_eq!(says("a").as_deref(), Some("2\n"));

    // An undo without arguments skips changes of ignored files only.
    assert_eq!(run(&["undo", "-y"]).0, Some(0));
    assert_eq!((says("a").as_deref(), says("b").as_deref()), (Some("1\n"), Some("1\n")));
    assert!(workspace.join("__pycache__/c.pyc").exists());
    assert_eq!(run(&["redo", "-y"]).0, Some(0));

    assert_eq!(run(&["undo", "-y", "--since", &first, "--path", "a"]).0, Some(2));
    let both = toolcrib(workspace, &["undo", "-y", "--since", &first, "5"], b"");
    let expected = format!("--since {first} undoes change {first} and all later ones");
    assert_eq!(both.status.code(), Some(2));
    assert!(text(&both.stderr).contains(&expected), "{}", text(&both.stderr));
    let (_, decisions) = run(&["log", "--decisions"]);
    assert!(
        decisions.contains("  operator\n") && !decisions.contains("profile:open"),
        "{decisions}"
    );
    assert_eq!(run(&["undo", "-y", "--since", &first]).0, Some(0));
    assert_eq!(std::fs::read_dir(workspace).unwrap().count(), 0);
    assert_eq!(run(&["redo", "-y"]).0, Some(0));
    assert_eq!((says("l").as_deref(), says("b").as_deref()), (Some("2\n"), Some("2\n")));
    assert!(workspace.join("__pycache__/c.pyc").exists());
    assert_eq!(run(&["undo", "-y", &third]).0, Some(0));
    assert!(!workspace.join("__pycache__").exists());
}

#[test]
fn another_workspace_has_its_own_history() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for workspace in [&one, &two] {
        std::fs::write(workspace.path().join("a.txt"), "one\n").unwrap();
    }
    edit(one.path(), "one", "two");
    let log: Value =
        serde_json::from_slice(&toolcrib(two.path(), &["log", "--json"], b"").stdout).unwrap();
    assert_eq!(log["total"], 0);
    assert_eq!(toolcrib(two.path(), &["undo", "-y"], b"").status.code(), Some(1));
}

/// Two processes edit both ends of one file. No edit is lost.
#[test]
fn edits_of_two_processes_compose() {
    let directory = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..200).map(|n| format!("line {n}.")).collect();
    std::fs::write(directory.path().join("a.txt"), lines.join("\n")).unwrap();
    std::thread::scope(|scope| {
        for process in 0..2 {
            let workspace = directory.path();
            scope.spawn(move || {
                let input: String = (process * 100..process * 100 + 100)
                    .map(|n| {
                        let args = serde_json::json!({"file_path": "a.txt", "old_string": format!("line {n}."), "new_string": format!("edited {n}.")});
                        format!("{}\n", serde_json::json!({"id": n, "wait": true, "tool": "Edit", "args": args}))
                    })
                    .collect();
                let output = toolcrib(workspace, &["run"], input.as_bytes());
                assert_eq!(text(&output.stdout).matches("\"success\":true").count(), 100);
            });
        }
    });
    let expected: Vec<String> = (0..200).map(|n| format!("edited {n}.")).collect();
    assert_eq!(
        std::fs::read_to_string(directory.path().join("a.txt")).unwrap(),
        expected.join("\n")
    );
}

/// Starts a server and kills it while a command of it runs, which has removed a.txt and written b.txt.
fn kill_within_a_command(workspace: &Path) {
    let mut server = Session::start(workspace);
    let command = "rm a.txt; echo x > b.txt; sleep 60";
    server.send("Bash", &json!({"command": command}));
    let until = Instant::now() + Duration::from_secs(600);
    while !std::fs::read(workspace.join("b.txt")).is_ok_and(|says| says == b"x\n") {
        assert!(Instant::now() < until, "the command does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    server.child.kill().unwrap();
    server.child.wait().unwrap();
}

#[test]
fn changes_of_a_command_can_be_undone_after_its_server_was_killed() {
    let directory = crate::command_directory();
    let workspace = directory.path();
    std::fs::write(workspace.join("a.txt"), "one\n").unwrap();
    kill_within_a_command(workspace);
    let log: Value =
        serde_json::from_slice(&toolcrib(workspace, &["log", "--json"], b"").stdout).unwrap();
    assert_eq!(log["changes"][0]["tool"], "Bash", "{log}");
    assert!(toolcrib(workspace, &["undo", "-y"], b"").status.success());
    assert_eq!(std::fs::read_to_string(workspace.join("a.txt")).unwrap(), "one\n");
    assert!(!workspace.join("b.txt").exists());
}

#[test]
fn a_running_server_knows_the_changes_of_a_killed_one() {
    let directory = crate::command_directory();
    let workspace = directory.path();
    std::fs::write(workspace.join("a.txt"), "one\n").unwrap();
    let mut running = Session::start(workspace);
    running.call("Write", &json!({"file_path": "own.txt", "content": "own\n"}));
    kill_within_a_command(workspace);
    let history = running.call("History", &json!({}));
    let change = &history["metadata"]["changes"][0];
    assert_eq!(change["tool"], "Bash", "{history}");
    let undone = running.call("Undo", &json!({"id": change["id"]}));
    assert_eq!(undone["success"], true, "{undone}");
    assert_eq!(std::fs::read_to_string(workspace.join("a.txt")).unwrap(), "one\n");
    assert!(!workspace.join("b.txt").exists());
    running.end();
}

#[test]
fn in_a_subdirectory_the_workspace_around_it_is_used() {
    let directory = crate::command_directory();
    let workspace = std::fs::canonicalize(directory.path()).unwrap();
    let sub = workspace.join("sub");
    std::fs::create_dir(&sub).unwrap();
    let make = || {
        let patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** Add File: sub/b.txt\n+b\n*** End Patch\n";
        let args = serde_json::json!({"patch": patch}).to_string();
        let output = toolcrib(&workspace, &["call", "ApplyPatch", "-"], args.as_bytes());
        assert!(output.status.success(), "{}", text(&output.stdout));
    };
    let both = || (workspace.join("a.txt").exists(), sub.join("b.txt").exists());
    let note = format!("Workspace: {}, which contains this directory.\n", workspace.display());
    make();
    let log = toolcrib(&sub, &["log"], b"");
    assert!(text(&log.stdout).contains("a.txt (created), sub/b.txt (created)"), "{log:?}");
    assert_eq!(text(&log.stderr), note);
    assert_eq!(text(&toolcrib(&workspace, &["log"], b"").stderr), "");
    let undone = toolcrib(&sub, &["undo", "-y"], b"");
    assert_eq!((both(), text(&undone.stderr)), ((false, false), note.as_str()));
    assert!(toolcrib(&sub, &["redo", "-y"], b"").status.success());
    assert_eq!(both(), (true, true));
    // A relative path starts in the current directory.
    assert!(toolcrib(&sub, &["undo", "--path", "b.txt", "-y"], b"").status.success());
    assert_eq!(both(), (true, false));
    assert!(toolcrib(&sub, &["undo", "-y"], b"").status.success());
    assert_eq!(both(), (false, false));

    // With a part of the workspace as the root, the rest of a change is mentioned.
    make();
    let log = toolcrib(&sub, &["log", "-n", "1", "--root", "."], b"");
    assert!(text(&log.stdout).contains("b.txt (created); and files outside"), "{log:?}");
    let undone = toolcrib(&sub, &["undo", "-y", "--root", "."], b"");
    assert!(
        text(&undone.stderr).contains("also changed files outside this workspace"),
        "{undone:?}"
    );
    assert_eq!(both(), (true, false));
    // An undo there does not make it a workspace.
    assert_eq!(text(&toolcrib(&sub, &["log"], b"").stderr), note);
}

/// Undo in a project must not revert changes of the home directory, such as those of `toolcrib install`.
#[test]
fn a_workspace_that_is_more_than_the_project_is_named_and_not_used() {
    let directory = crate::command_directory();
    let top = std::fs::canonicalize(directory.path()).unwrap();
    let (home, around) = (top.join("home"), top.join("around"));
    let (project, repository) = (home.join("project"), around.join("repository"));
    for deep in [project.join("src"), repository.join("src"), repository.join(".git")] {
        std::fs::create_dir_all(deep).unwrap();
    }
    let run = |directory: &Path, words: &[&str]| {
        let mut command = Command::new(crate::PROGRAM);
        command.args(words).current_dir(directory).env("HOME", &home);
        command.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME").output().unwrap()
    };
    let write = r#"{"file_path": "a.txt", "content": "a\n"}"#;
    for (workspace, below) in [(&home, &project), (&around, &repository)] {
        assert!(run(workspace, &["call", "Write", write]).status.success());
        let note = format!(
            "No calls are recorded for this directory. For the workspace {0}, which contains it, add `--root {0}`.\n",
            workspace.display()
        );
        for here in [below.clone(), below.join("src")] {
            let undone = run(&here, &["undo", "-y"]);
            assert!(!undone.status.success(), "{undone:?}");
            assert!(text(&undone.stderr).starts_with(&note), "{undone:?}");
            assert!(workspace.join("a.txt").exists());
            for words in [&["log"][..], &["log", "verify"], &["log", "export"], &["redo", "-y"]] {
                let said = run(&here, words);
                assert!(text(&said.stderr).starts_with(&note), "{words:?}: {said:?}");
                assert!(!text(&said.stdout).contains("a.txt"), "{words:?}: {said:?}");
            }
        }
        // A call makes it a workspace of its own, also one that failed.
        run(below, &["call", "Read", "{}"]);
        let log = run(below, &["log"]);
        assert_eq!(text(&log.stderr), "", "{log:?}");
        assert!(
            run(below, &["undo", "-y", "--root", workspace.to_str().unwrap()]).status.success()
        );
        assert!(!workspace.join("a.txt").exists());
    }
    // A workspace within the repository is used as before.
    assert!(run(&repository, &["call", "Write", write]).status.success());
    let undone = run(&repository.join("src"), &["undo", "-y"]);
    assert!(text(&undone.stderr).contains("which contains this directory"), "{undone:?}");
    assert!(!repository.join("a.txt").exists());
}

/// The journal drops its oldest changes, and says so instead of denying that they were made.
#[test]
fn a_dropped_change_is_named_as_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let (workspace, config) = (directory.path().join("ws"), directory.path().join("config.toml"));
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(&config, "journal_megabytes = 1\n").unwrap();
    let state = directory.path().join("state").display().to_string();
    let config = config.display().to_string();
    // Digits without a pattern, which are not compressed to nothing.
    let mut seed = 1_u64;
    let mut digits = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{seed:016x}")
    };
    let input: String = (0..64)
        .map(|id| {
            let content: String = (0..5_000).map(|_| digits()).collect();
            let args = serde_json::json!({"file_path": format!("{id}.txt"), "content": content});
            serde_json::json!({"id": id, "tool": "Write", "args": args, "wait": true}).to_string()
                + "\n"
        })
        .collect();
    let words = ["run", "--no-monitor", "--state", &state, "--config", &config];
    let done = toolcrib(&workspace, &words, input.as_bytes());
    assert!(done.status.success(), "{done:?}");
    for words in [&["show", "1"][..], &["undo", "1", "-y"]] {
        let shown = toolcrib(&workspace, &[words, &["--state", &state]].concat(), b"");
        let said = text(&shown.stderr);
        assert!(said.contains("change 1 is no longer in the journal"), "{said}");
        assert!(said.contains("drops its oldest changes") && !said.contains("/tmp"), "{said}");
    }
    let unknown = toolcrib(&workspace, &["show", "99", "--state", &state], b"");
    assert!(text(&unknown.stderr).contains("there is no change 99"), "{unknown:?}");
}

/// An undo without an id names the change before one that cannot be undone.
#[test]
fn an_undo_that_cannot_go_on_names_the_next_id() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path().join("ws");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(workspace.join("a.txt"), "one\n").unwrap();
    let state = directory.path().join("state");
    let run = |words: &[&str]| {
        let words = [words, &["--state", state.to_str().unwrap()]].concat();
        toolcrib(&workspace, &words, b"")
    };
    let call = |tool: &str, args: Value| {
        let done = run(&["call", tool, &args.to_string()]);
        assert!(done.status.success(), "{done:?}");
    };
    call("Write", serde_json::json!({"file_path": "b.txt", "content": "first\n"}));
    let edit = serde_json::json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    call("Edit", edit);
    // The content before the last change is lost.
    std::fs::remove_dir_all(state.join("blobs")).unwrap();
    let stopped = run(&["undo", "-y"]);
    let said = text(&stopped.stderr);
    assert_eq!(stopped.status.code(), Some(1));
    let next = format!("`toolcrib undo --state {} 1`", state.display());
    assert!(said.contains("no longer stored") && said.contains(&next), "{said}");
    assert!(run(&["undo", "1", "-y"]).status.success());
    assert!(!workspace.join("b.txt").exists());
}

#[test]
fn a_change_in_another_directory_is_named_with_its_root() {
    let top = tempfile::tempdir().unwrap();
    let (one, other) = (top.path().join("one"), top.path().join("other"));
    for directory in [&one, &other] {
        std::fs::create_dir(directory).unwrap();
    }
    let state = top.path().join("state");
    let state = state.to_str().unwrap();
    let args = r#"{"file_path": "a.txt", "content": "x"}"#;
    let written = toolcrib(&other, &["call", "Write", "-", "--state", state], args.as_bytes());
    assert!(written.status.success(), "{written:?}");
    let shown = toolcrib(&one, &["show", "1", "--text", "--state", state], b"");
    let expected = format!("add `--root {}`", other.canonicalize().unwrap().display());
    assert!(text(&shown.stderr).contains(&expected), "{shown:?}");
    let root = other.to_str().unwrap();
    let shown = toolcrib(&one, &["show", "1", "--text", "--state", state, "--root", root], b"");
    assert!(shown.status.success(), "{shown:?}");
}

/// A process with one session.
struct Session {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    fn start(workspace: &Path) -> Session {
        let mut command = Command::new(PROGRAM);
        command.arg("run").current_dir(workspace).envs(isolated_home());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Session { child, stdout }
    }

    fn send(&mut self, tool: &str, args: &Value) {
        let line = json!({"id": 1, "tool": tool, "args": args}).to_string();
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn call(&mut self, tool: &str, args: &Value) -> Value {
        self.send(tool, args);
        self.answer()
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// The command does not know of the edit, but the journal does.
#[test]
fn an_undo_of_a_command_keeps_an_edit_that_another_process_made_meanwhile() {
    let directory = crate::command_directory();
    let workspace = directory.path();
    let file = workspace.join("a.txt");
    let content = || std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, "one\n\n\n\ntwo\n\n\n\nthree\n").unwrap();
    let mut session = Session::start(workspace);
    let command = "sed -i s/one/ONE/ a.txt; until [ -f go ]; do sleep 0.01; done; sed -i s/three/THREE/ a.txt; cat a.txt";
    session.send("Bash", &json!({"command": command}));
    let until = Instant::now() + Duration::from_secs(600);
    while !content().contains("ONE") {
        assert!(Instant::now() < until, "the command does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    edit(workspace, "two", "edited");
    std::fs::write(workspace.join("go"), "").unwrap();
    let ended = session.answer();
    assert!(
        ended["output"].as_str().unwrap().contains("ONE\n\n\n\nedited\n\n\n\nTHREE\n"),
        "{ended}"
    );
    // The command's part before the edit, and that after it.
    let undone = session.call("Undo", &json!({"steps": 2}));
    assert_eq!(undone["success"], true, "{undone}");
    assert_eq!(content(), "one\n\n\n\nedited\n\n\n\nthree\n");
    session.end();
}

#[test]
fn a_plain_undo_reverts_no_change_of_a_process_that_still_runs() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path();
    let mut first = Session::start(workspace);
    let written = first.call("Write", &json!({"file_path": "first.txt", "content": "new\n"}));
    let id = written["metadata"]["change"].as_u64().unwrap();
    let mut second = Session::start(workspace);
    let refused = second.call("Undo", &json!({}));
    let output = refused["output"].as_str().unwrap();
    assert_eq!(refused["success"], false, "{output}");
    assert!(output.contains(&format!("reverts one of their changes: {id}.")), "{output}");
    second.call("Write", &json!({"file_path": "second.txt", "content": "new\n"}));
    assert_eq!(second.call("Undo", &json!({}))["success"], true);
    let exists = ["first.txt", "second.txt"].map(|name| workspace.join(name).exists());
    assert_eq!(exists, [true, false]);
    // After the first has ended, its change may be one of the same agent.
    first.end();
    assert_eq!(second.call("Undo", &json!({}))["success"], true);
    assert!(!workspace.join("first.txt").exists());
    second.end();
}
