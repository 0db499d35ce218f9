//! Commands and file tools of a session have the same `/tmp`, and no other session has it.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcrib::{
    Answer, Call, Caps, Error, ErrorKind, Options, Outside, Profile, Question, Reply, Runtime,
    Session,
};

struct Stage {
    top: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
    notices: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    /// A workspace in a directory of the test.
    fn new() -> Stage {
        Stage::within(crate::command_directory(), |b| b)
    }

    fn within(
        top: tempfile::TempDir,
        more: impl FnOnce(toolcrib::RuntimeBuilder) -> toolcrib::RuntimeBuilder,
    ) -> Stage {
        fs::create_dir_all(top.path().join("ws/.git/hooks")).unwrap();
        fs::create_dir_all(top.path().join("ws/.git/objects")).unwrap();
        fs::create_dir_all(top.path().join("ws/.git/refs")).unwrap();
        fs::write(top.path().join("ws/.git/config"), "[core]\n").unwrap();
        fs::write(top.path().join("ws/in.txt"), "inside\n").unwrap();
        let notices: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = notices.clone();
        let builder = Runtime::builder()
            .root(top.path().join("ws"))
            .journal(top.path().join("state"), Caps::default())
            .notices(move |notice| sink.lock().unwrap().push(notice.to_owned()))
            .helper(crate::helper());
        let runtime = more(builder).build().unwrap();
        let session = runtime.session();
        Stage { top, runtime, session, notices }
    }

    fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    fn says(&self, tool: &str, args: Value) -> String {
        let reply = self.call(tool, args.clone()).unwrap_or_else(|e| panic!("{tool} {args}: {e}"));
        reply.output().to_owned()
    }

    fn kind(&self, tool: &str, args: Value) -> ErrorKind {
        self.call(tool, args).unwrap_err().kind()
    }

    fn bash(&self, command: &str) -> String {
        self.says("Bash", json!({"command": command}))
    }

    /// The session's temporary directory as commands and tools find it.
    fn tmp(&self) -> String {
        self.bash("echo $TMPDIR").lines().next().unwrap().to_owned()
    }
}

#[test]
fn what_a_command_writes_file_tools_see_and_change() {
    let stage = Stage::new();
    let tmp = stage.tmp();
    let at = |name: &str| format!("{tmp}/{name}");
    stage.bash("mkdir $TMPDIR/d; printf 'a,needle\\nb\\n' > $TMPDIR/d/report.csv");
    let report = at("d/report.csv");
    assert!(stage.says("Read", json!({"file_path": report})).contains("a,needle"));
    assert!(stage.says("Grep", json!({"pattern": "needle", "path": tmp})).contains(&report));
    assert!(stage.says("Glob", json!({"pattern": at("**/*.csv")})).contains(&report));
    assert!(stage.says("LS", json!({"path": tmp, "recursive": true})).contains("report.csv"));
    let edit = json!({"file_path": report, "old_string": "needle", "new_string": "thread"});
    assert!(stage.says("Edit", edit).contains(&report));
    assert!(stage.bash("cat $TMPDIR/d/report.csv").contains("a,thread"));
    // And the reverse.
    stage.says("Write", json!({"file_path": at("new/plan.md"), "content": "plan\n"}));
    assert!(stage.bash("cat $TMPDIR/new/plan.md").contains("plan"));
    let edits = json!([{"old_string": "plan", "new_string": "map"}]);
    stage.says("MultiEdit", json!({"file_path": at("new/plan.md"), "edits": edits}));
    let patch = format!(
        "*** Begin Patch\n*** Update File: {}\n@@\n-map\n+chart\n*** End Patch\n",
        at("new/plan.md")
    );
    stage.says("ApplyPatch", json!({"patch": patch}));
    assert!(stage.bash("cat $TMPDIR/new/plan.md").contains("chart"));
    assert!(
        !Path::new(&at("new/plan.md")).exists() || !tmp.starts_with("/tmp"),
        "not the real one"
    );
}

#[test]
fn changes_there_are_undone_and_other_sessions_do_not_know_them() {
    let stage = Stage::new();
    let file = format!("{}/f.txt", stage.tmp());
    stage.says("Write", json!({"file_path": file, "content": "one\n"}));
    stage.says("Edit", json!({"file_path": file, "old_string": "one", "new_string": "two"}));
    let history = stage.says("History", json!({}));
    assert!(history.contains(&format!("Edit: {file}")), "{history}");
    assert!(stage.says("Undo", json!({})).contains(&file));
    assert!(stage.bash("cat $TMPDIR/f.txt").contains("one"));
    stage.says("Undo", json!({}));
    assert!(stage.bash("ls $TMPDIR").contains("[no output]"));
    let other = stage.runtime.session();
    let call = Call::new("History", json!({}));
    let known = stage.runtime.call(&other, call, Options::default()).unwrap();
    assert!(known.output().contains("No file was changed yet"), "{}", known.output());
    assert!(stage.runtime.history().unwrap().is_empty());
}

#[test]
fn another_session_has_another_one() {
    let stage = Stage::new();
    stage.bash("echo mine > $TMPDIR/mine.txt");
    let file = format!("{}/mine.txt", stage.tmp());
    let other = stage.runtime.session();
    let read = Call::new("Read", json!({"file_path": file}));
    assert!(stage.runtime.call(&other, read, Options::default()).is_err());
}

#[test]
fn beside_a_root_in_tmp_is_the_sessions_tmp() {
    let stage = Stage::within(tempfile::tempdir().unwrap(), |b| b);
    if stage.tmp() != "/tmp" {
        return;
    }
    fs::write(stage.top.path().join("real.txt"), "real\n").unwrap();
    stage.bash("echo x > ../sibling.txt");
    let sibling = stage.top.path().join("sibling.txt").display().to_string();
    for path in ["../sibling.txt", sibling.as_str()] {
        assert!(stage.says("Read", json!({"file_path": path})).contains('x'), "{path}");
    }
    assert!(!Path::new(&sibling).exists());
    let missing = stage.call("Read", json!({"file_path": "../real.txt"})).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.text().contains("/tmp is this session's own"), "{missing}");
    stage.says("Write", json!({"file_path": "../made.txt", "content": "made\n"}));
    assert!(stage.bash("cat ../made.txt").contains("made"));
    // The root itself is the root, by every way to it.
    let ws = stage.top.path().join("ws");
    for path in [ws.join("in.txt"), ws.join("../ws/in.txt"), "/tmp/../tmp".into()] {
        let path = match path.ends_with("tmp") {
            true => path.join(ws.strip_prefix("/tmp").unwrap()).join("in.txt"),
            false => path,
        };
        assert!(stage.says("Read", json!({"file_path": path})).contains("inside"), "{path:?}");
    }
    stage.says("Write", json!({"file_path": ws.join("out.txt"), "content": "out\n"}));
    assert!(ws.join("out.txt").exists());
}

#[test]
fn links_that_a_command_plants_lead_nowhere_else() {
    let stage = Stage::new();
    let tmp = stage.tmp();
    let (top, ws) = (stage.top.path(), stage.top.path().join("ws"));
    fs::create_dir(top.join("out")).unwrap();
    fs::write(top.join("out/canary"), "canary\n").unwrap();
    stage.bash(&format!(
        "cd $TMPDIR; ln -s {0}/out out; ln -s {1} ws; ln -s {0}/state state; ln -s /proc/self p; \
         ln -s {2}/../{2}/../..{1}/$(echo .git)/config git; ln -s loop loop",
        top.display(),
        ws.display(),
        tmp,
    ));
    let at = |name: &str| format!("{tmp}/{name}");
    assert!(stage.says("Read", json!({"file_path": at("out/canary")})).contains("canary"));
    assert!(stage.says("Read", json!({"file_path": at("ws/in.txt")})).contains("inside"));
    for (path, kind) in [
        ("out/new.txt", ErrorKind::OutsideWorkspace),
        ("out/canary", ErrorKind::OutsideWorkspace),
        ("ws/.git/config", ErrorKind::Protected),
        ("ws/.git/hooks/pre-commit", ErrorKind::Protected),
        ("git", ErrorKind::Protected),
        ("state/log", ErrorKind::Protected),
        ("p/mem", ErrorKind::Protected),
        ("loop", ErrorKind::Io),
    ] {
        let args = json!({"file_path": at(path), "content": "x"});
        assert_eq!(stage.kind("Write", args), kind, "{path}");
    }
    for path in ["p/environ", "state/log", "loop"] {
        assert!(stage.call("Read", json!({"file_path": at(path)})).is_err(), "{path}");
    }
    assert_eq!(fs::read_to_string(top.join("out/canary")).unwrap(), "canary\n");
    assert_eq!(fs::read_to_string(ws.join(".git/config")).unwrap(), "[core]\n");
}

#[test]
fn it_does_not_depend_on_what_is_read_outside() {
    let top = crate::command_directory();
    let stage = Stage::within(top, |builder| builder.outside(Outside::Deny));
    let tmp = stage.tmp();
    stage.bash("echo x > $TMPDIR/x; ln -s /etc $TMPDIR/etc");
    assert!(stage.says("Read", json!({"file_path": format!("{tmp}/x")})).contains('x'));
    let out = format!("{tmp}/etc/passwd");
    assert_eq!(stage.kind("Read", json!({"file_path": out})), ErrorKind::OutsideWorkspace);
    assert_eq!(stage.kind("Read", json!({"file_path": "/etc"})), ErrorKind::OutsideWorkspace);
}

#[test]
fn a_command_may_begin_and_end_there() {
    let stage = Stage::new();
    let tmp = stage.tmp();
    assert!(stage.says("Bash", json!({"command": "pwd", "cwd": tmp})).contains(&tmp));
    stage.bash("cd $TMPDIR");
    assert!(stage.bash("pwd").contains(&tmp));
}

#[test]
fn the_end_of_a_session_tells_what_was_left_there() {
    let stage = Stage::new();
    stage.bash("true");
    let Stage { runtime, session, notices, top } = stage;
    drop(session);
    assert!(notices.lock().unwrap().is_empty(), "nothing was left");
    let session = runtime.session();
    let call = Call::new("Bash", json!({"command": "echo 123 > $TMPDIR/a; mkdir $TMPDIR/d"}));
    runtime.call(&session, call, Options::default()).unwrap();
    drop(session);
    let told = notices.lock().unwrap().clone();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("1 file (4 bytes)"), "{told:?}");
    let left = fs::read_dir(top.path().join("state")).unwrap().flatten();
    let is_tmp = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("tmp-");
    assert_eq!(left.filter(is_tmp).count(), 0, "the directory is removed");
}

#[test]
fn without_a_sandbox_it_is_the_real_one() {
    let top = tempfile::tempdir().unwrap();
    fs::write(top.path().join("real.txt"), "real\n").unwrap();
    let stage = Stage::within(top, |builder| builder.profile(Profile::Open));
    assert!(stage.says("Read", json!({"file_path": "../real.txt"})).contains("real"));
    stage.says("Write", json!({"file_path": "../made.txt", "content": "made\n"}));
    assert!(stage.top.path().join("made.txt").exists());
    assert!(stage.says("Undo", json!({})).contains("made.txt"));
    assert!(!stage.top.path().join("made.txt").exists());
}

#[test]
fn the_first_command_begins_in_a_directory_without_a_slash_at_its_end() {
    let stage = Stage::new();
    let said = stage.bash("echo \"$PWD\"; pwd");
    let ws = fs::canonicalize(stage.top.path().join("ws")).unwrap();
    assert_eq!(said, format!("{0}\n{0}\n", ws.display()));
}

/// Nobody is asked about the session's own directory.
#[test]
fn nothing_there_is_asked_about_that_would_not_be_inside() {
    let stage = Stage::new();
    let asked = |question: &Question<'_>| panic!("asked: {}", question.why);
    let approver = |question: &Question<'_>| -> Answer { asked(question) };
    let options = Options { approver: &approver, ..Options::default() };
    let args = json!({"file_path": format!("{}/x", stage.tmp()), "content": "x"});
    stage.runtime.call(&stage.session, Call::new("Write", args), options).unwrap();
}
