//! Commands and file tools of a session share one private `/tmp`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib::{
    Answer, Call, Caps, Error, ErrorKind, Options, Outside, Profile, Question, Reply, Runtime,
    Session,
};

struct Fixture {
    top: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
    notices: Arc<Mutex<Vec<String>>>,
}

impl Fixture {
    /// A workspace in a temporary directory.
    fn new() -> Fixture {
        Fixture::within(crate::command_directory(), |b| b)
    }

    fn within(
        top: tempfile::TempDir,
        more: impl FnOnce(toolcrib::RuntimeBuilder) -> toolcrib::RuntimeBuilder,
    ) -> Fixture {
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
            .notices(move |notice| sink.lock().push(notice.to_owned()))
            .helper(crate::helper());
        let runtime = more(builder).build().unwrap();
        let session = runtime.session();
        Fixture { top, runtime, session, notices }
    }

    fn call(&self, tool: &str, args: Value) -> Result<Reply, Error> {
        self.runtime.call(&self.session, Call::new(tool, args), Options::default())
    }

    fn reply_text(&self, tool: &str, args: Value) -> String {
        let reply = self.call(tool, args.clone()).unwrap_or_else(|e| panic!("{tool} {args}: {e}"));
        reply.output().to_owned()
    }

    fn error_kind(&self, tool: &str, args: Value) -> ErrorKind {
        self.call(tool, args).unwrap_err().kind()
    }

    fn bash(&self, command: &str) -> String {
        self.reply_text("Bash", json!({"command": command}))
    }

    /// Path of the private directory as commands and tools see it.
    fn tmp(&self) -> String {
        self.bash("echo $TMPDIR").lines().next().unwrap().to_owned()
    }
}

#[test]
fn file_tools_share_tmp_with_commands() {
    let fixture = Fixture::new();
    let tmp = fixture.tmp();
    let at = |name: &str| format!("{tmp}/{name}");
    fixture.bash("mkdir $TMPDIR/d; printf 'a,needle\\nb\\n' > $TMPDIR/d/report.csv");
    let report = at("d/report.csv");
    assert!(fixture.reply_text("Read", json!({"file_path": report})).contains("a,needle"));
    assert!(
        fixture.reply_text("Grep", json!({"pattern": "needle", "path": tmp})).contains(&report)
    );
    assert!(fixture.reply_text("Glob", json!({"pattern": at("**/*.csv")})).contains(&report));
    assert!(
        fixture.reply_text("LS", json!({"path": tmp, "recursive": true})).contains("report.csv")
    );
    let edit = json!({"file_path": report, "old_string": "needle", "new_string": "thread"});
    assert!(fixture.reply_text("Edit", edit).contains(&report));
    assert!(fixture.bash("cat $TMPDIR/d/report.csv").contains("a,thread"));
    // In the other direction.
    fixture.reply_text("Write", json!({"file_path": at("new/plan.md"), "content": "plan\n"}));
    assert!(fixture.bash("cat $TMPDIR/new/plan.md").contains("plan"));
    let edits = json!([{"old_string": "plan", "new_string": "map"}]);
    fixture.reply_text("MultiEdit", json!({"file_path": at("new/plan.md"), "edits": edits}));
    let patch = format!(
        "*** Begin Patch\n*** Update File: {}\n@@\n-map\n+chart\n*** End Patch\n",
        at("new/plan.md")
    );
    fixture.reply_text("ApplyPatch", json!({"patch": patch}));
    assert!(fixture.bash("cat $TMPDIR/new/plan.md").contains("chart"));
    assert!(
        !Path::new(&at("new/plan.md")).exists() || !tmp.starts_with("/tmp"),
        "not the real one"
    );
}

#[test]
fn tmp_changes_can_be_undone_only_by_their_session() {
    let fixture = Fixture::new();
    let file = format!("{}/f.txt", fixture.tmp());
    fixture.reply_text("Write", json!({"file_path": file, "content": "one\n"}));
    fixture
        .reply_text("Edit", json!({"file_path": file, "old_string": "one", "new_string": "two"}));
    let history = fixture.reply_text("History", json!({}));
    assert!(history.contains(&format!("Edit: {file}")), "{history}");
    assert!(fixture.reply_text("Undo", json!({})).contains(&file));
    assert!(fixture.bash("cat $TMPDIR/f.txt").contains("one"));
    fixture.reply_text("Undo", json!({}));
    assert!(fixture.bash("ls $TMPDIR").contains("[no output]"));
    let other = fixture.runtime.session();
    let call = Call::new("History", json!({}));
    let known = fixture.runtime.call(&other, call, Options::default()).unwrap();
    assert!(known.output().contains("No file was changed yet"), "{}", known.output());
    assert!(fixture.runtime.history().unwrap().is_empty());
}

#[test]
fn each_session_has_its_own_tmp() {
    let fixture = Fixture::new();
    fixture.bash("echo mine > $TMPDIR/mine.txt");
    let file = format!("{}/mine.txt", fixture.tmp());
    let other = fixture.runtime.session();
    let read = Call::new("Read", json!({"file_path": file}));
    assert!(fixture.runtime.call(&other, read, Options::default()).is_err());
}

#[test]
fn tmp_beside_a_root_in_tmp_is_private() {
    let fixture = Fixture::within(tempfile::tempdir().unwrap(), |b| b);
    if fixture.tmp() != "/tmp" {
        return;
    }
    fs::write(fixture.top.path().join("real.txt"), "real\n").unwrap();
    fixture.bash("echo x > ../sibling.txt");
    let sibling = fixture.top.path().join("sibling.txt").display().to_string();
    for path in ["../sibling.txt", sibling.as_str()] {
        assert!(fixture.reply_text("Read", json!({"file_path": path})).contains('x'), "{path}");
    }
    assert!(!Path::new(&sibling).exists());
    let missing = fixture.call("Read", json!({"file_path": "../real.txt"})).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.text().contains("/tmp is private to this session"), "{missing}");
    fixture.reply_text("Write", json!({"file_path": "../made.txt", "content": "made\n"}));
    assert!(fixture.bash("cat ../made.txt").contains("made"));
    // Every path to the root leads to the root.
    let ws = fixture.top.path().join("ws");
    for path in [ws.join("in.txt"), ws.join("../ws/in.txt"), "/tmp/../tmp".into()] {
        let path = if path.ends_with("tmp") {
            path.join(ws.strip_prefix("/tmp").unwrap()).join("in.txt")
        } else {
            path
        };
        assert!(
            fixture.reply_text("Read", json!({"file_path": path})).contains("inside"),
            "{path:?}"
        );
    }
    fixture.reply_text("Write", json!({"file_path": ws.join("out.txt"), "content": "out\n"}));
    assert!(ws.join("out.txt").exists());
}

#[test]
fn symlinks_in_tmp_cannot_escape() {
    let fixture = Fixture::new();
    let tmp = fixture.tmp();
    let (top, ws) = (fixture.top.path(), fixture.top.path().join("ws"));
    fs::create_dir(top.join("out")).unwrap();
    fs::write(top.join("out/canary"), "canary\n").unwrap();
    fixture.bash(&format!(
        "cd $TMPDIR; ln -s {0}/out out; ln -s {1} ws; ln -s {0}/state state; ln -s /proc/self p; \
         ln -s {2}/../{2}/../..{1}/$(echo .git)/config git; ln -s loop loop",
        top.display(),
        ws.display(),
        tmp,
    ));
    let at = |name: &str| format!("{tmp}/{name}");
    assert!(fixture.reply_text("Read", json!({"file_path": at("out/canary")})).contains("canary"));
    assert!(fixture.reply_text("Read", json!({"file_path": at("ws/in.txt")})).contains("inside"));
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
        assert_eq!(fixture.error_kind("Write", args), kind, "{path}");
    }
    for path in ["p/environ", "state/log", "loop"] {
        assert!(fixture.call("Read", json!({"file_path": at(path)})).is_err(), "{path}");
    }
    assert_eq!(fs::read_to_string(top.join("out/canary")).unwrap(), "canary\n");
    assert_eq!(fs::read_to_string(ws.join(".git/config")).unwrap(), "[core]\n");
}

#[test]
fn tmp_is_accessible_when_outside_reads_are_denied() {
    let top = crate::command_directory();
    let fixture = Fixture::within(top, |builder| builder.outside(Outside::Deny));
    let tmp = fixture.tmp();
    fixture.bash("echo x > $TMPDIR/x; ln -s /etc $TMPDIR/etc");
    assert!(fixture.reply_text("Read", json!({"file_path": format!("{tmp}/x")})).contains('x'));
    let out = format!("{tmp}/etc/passwd");
    assert_eq!(fixture.error_kind("Read", json!({"file_path": out})), ErrorKind::OutsideWorkspace);
    assert_eq!(
        fixture.error_kind("Read", json!({"file_path": "/etc"})),
        ErrorKind::OutsideWorkspace
    );
}

#[test]
fn tmp_can_be_the_working_directory() {
    let fixture = Fixture::new();
    let tmp = fixture.tmp();
    assert!(fixture.reply_text("Bash", json!({"command": "pwd", "cwd": tmp})).contains(&tmp));
    fixture.bash("cd $TMPDIR");
    assert!(fixture.bash("pwd").contains(&tmp));
}

#[test]
fn session_end_reports_files_left_in_tmp() {
    let fixture = Fixture::new();
    fixture.bash("true");
    let Fixture { runtime, session, notices, top } = fixture;
    drop(session);
    assert!(notices.lock().is_empty(), "nothing was left");
    let session = runtime.session();
    let call = Call::new("Bash", json!({"command": "echo 123 > $TMPDIR/a; mkdir $TMPDIR/d"}));
    runtime.call(&session, call, Options::default()).unwrap();
    drop(session);
    let told = notices.lock().clone();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("1 file (4 bytes)"), "{told:?}");
    let left = fs::read_dir(top.path().join("state")).unwrap().flatten();
    let is_tmp = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("tmp-");
    assert_eq!(left.filter(is_tmp).count(), 0, "the directory is removed");
}

#[test]
fn tmp_is_the_real_one_without_a_sandbox() {
    let top = tempfile::tempdir().unwrap();
    fs::write(top.path().join("real.txt"), "real\n").unwrap();
    let fixture = Fixture::within(top, |builder| builder.profile(Profile::Open));
    assert!(fixture.reply_text("Read", json!({"file_path": "../real.txt"})).contains("real"));
    fixture.reply_text("Write", json!({"file_path": "../made.txt", "content": "made\n"}));
    assert!(fixture.top.path().join("made.txt").exists());
    assert!(fixture.reply_text("Undo", json!({})).contains("made.txt"));
    assert!(!fixture.top.path().join("made.txt").exists());
}

#[test]
fn pwd_has_no_trailing_slash() {
    let fixture = Fixture::new();
    let text = fixture.bash("echo \"$PWD\"; pwd");
    let ws = fs::canonicalize(fixture.top.path().join("ws")).unwrap();
    assert_eq!(text, format!("{0}\n{0}\n", ws.display()));
}

/// The private directory needs no approval.
#[test]
fn tmp_needs_no_more_approval_than_a_root() {
    let fixture = Fixture::new();
    let asked = |question: &Question<'_>| panic!("asked: {}", question.why);
    let approver = |question: &Question<'_>| -> Answer { asked(question) };
    let options = Options { approver: &approver, ..Options::default() };
    let args = json!({"file_path": format!("{}/x", fixture.tmp()), "content": "x"});
    fixture.runtime.call(&fixture.session, Call::new("Write", args), options).unwrap();
}
