//! Records of calls and decisions.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use toolcrib::{
    Access, Answer, BegunCall, Call, CallCommand, Caps, Decision, ErrorKind, Options, Outcome,
    Profile, Question, Record, Recorder, Runtime,
};

#[test]
fn every_call_is_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().canonicalize().unwrap().join("a.txt");
    std::fs::write(&file, "one\n").unwrap();
    let records: Arc<Mutex<Vec<Record>>> = Arc::default();
    let kept = records.clone();
    let recorder = move |record| kept.lock().push(record);
    let runtime = Runtime::builder().root(directory.path()).recorder(recorder).build().unwrap();
    let session = runtime.session();
    let long = "x".repeat(5_000);
    for (tool, args) in [
        ("Read", json!({"file_path": "a.txt"})),
        ("Edit", json!({"file_path": "a.txt", "old_string": long, "new_string": ""})),
        ("None", json!({})),
    ] {
        let _ = runtime.call(&session, Call::new(tool, args), Options::default());
    }

    let records = records.lock();
    let [read, edit, none] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(read.accesses, [Access::Read(file.clone())]);
    assert_eq!(read.decision, Some((Decision::Allow, "profile:workspace:read".to_owned())));
    assert_eq!(read.outcome, Outcome::Done { output_chars: 11 });
    assert_eq!(edit.accesses, [Access::Write(file)]);
    assert!(matches!(&edit.outcome, Outcome::Failed { kind: ErrorKind::NoMatch, .. }));
    let old = edit.arguments["old_string"].as_str().unwrap();
    assert!(old.ends_with("…[+3000 characters]"), "a record is bounded");
    assert_eq!(none.decision, None);
    assert!(matches!(&none.outcome, Outcome::Failed { kind: ErrorKind::Invalid, .. }));
    assert!(records.iter().all(|record| record.session == session.id()));
}

#[test]
fn decisions_and_answers_are_logged() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("ws")).unwrap();
    std::fs::write(directory.path().join("ws/a.txt"), "one\n").unwrap();
    let runtime = |profile| {
        Runtime::builder()
            .root(directory.path().join("ws"))
            .journal(directory.path().join("state"), Caps::default())
            .profile(profile)
            .build()
            .unwrap()
    };
    let cautious = runtime(Profile::Cautious);
    let token = format!("ghp_{}", "aB3dE5fG7h".repeat(4));
    let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": token});
    let session = cautious.session();
    let yes = |_: &Question<'_>| Answer::AllowForSession;
    let asked = Options { approver: &yes, ..Options::default() };
    cautious.call(&session, Call::new("Edit", edit.clone()), asked).unwrap();
    let read = Call::new("Read", json!({"file_path": "a.txt"}));
    cautious.call(&session, read.clone(), Options::default()).unwrap_err();
    runtime(Profile::ReadOnly).call(&session, read, Options::default()).unwrap();

    let kept = cautious.decisions().unwrap();
    let [reading, refused, edited] = kept.as_slice() else { panic!("{kept:?}") };
    let of = |entry: &toolcrib::DecisionEntry| {
        (entry.tool.clone(), entry.decision.clone(), entry.rule.clone(), entry.answered.clone())
    };
    let words = |answer: &str, by: &str| Some((answer.to_owned(), by.to_owned()));
    let expected = |tool: &str, decision: &str, rule: &str, answered| {
        (tool.to_owned(), decision.to_owned(), rule.to_owned(), answered)
    };
    assert_eq!(of(reading), expected("Read", "allow", "profile:read-only:read", None));
    let nobody = words("nobody", "nobody");
    assert_eq!(of(refused), expected("Read", "ask", "profile:cautious:read", nobody));
    let answered = words("session", "host");
    assert_eq!(of(edited), expected("Edit", "ask", "profile:cautious:write", answered));
    assert!(edited.what[0].starts_with("write /") && edited.what[0].ends_with("/ws/a.txt"));

    let history = cautious.history().unwrap();
    let kept = history[0].arguments()["new_string"].as_str().unwrap();
    assert_eq!(kept, "[masked: GitHub token]", "a record has no key");
    let file = std::fs::read_to_string(directory.path().join("ws/a.txt")).unwrap();
    assert_eq!(file, format!("{token}\n"), "a file has what was meant");
}

/// Keeps all that it receives.
#[derive(Clone, Default)]
struct Kept {
    begun: Arc<Mutex<Vec<BegunCall>>>,
    commands: Arc<Mutex<Vec<(u64, CallCommand)>>>,
    ended: Arc<Mutex<Vec<Record>>>,
}

impl Recorder for Kept {
    fn begun(&self, call: BegunCall) {
        assert!(self.ended.lock().iter().all(|ended| ended.call != call.call), "before its end");
        self.begun.lock().push(call);
    }

    fn command_started(&self, call: u64, command: CallCommand) {
        self.commands.lock().push((call, command));
    }

    fn record(&self, record: Record) {
        self.ended.lock().push(record);
    }
}

#[test]
fn calls_are_reported_as_they_begin_and_commands_as_they_start() {
    let directory = crate::command_directory();
    std::fs::create_dir(directory.path().join("ws")).unwrap();
    let kept = Kept::default();
    let runtime = Runtime::builder()
        .root(directory.path().join("ws"))
        .journal(directory.path().join("state"), Caps::default())
        .helper(crate::helper())
        .recorder(kept.clone())
        .build()
        .unwrap();
    let session = runtime.session();
    let call = |tool: &str, args| runtime.call(&session, Call::new(tool, args), Options::default());
    let token = format!("ghp_{}", "aB3dE5fG7h".repeat(4));
    let script = format!("echo ä {token}; echo x > made; : > /etc/toolcrib-test; true");
    let bash = json!({"command": script, "description": "Makes a file."});
    call("Bash", bash).unwrap_or_else(|error| panic!("{error}"));
    call("Write", json!({"file_path": "b.txt", "content": "x"})).unwrap();
    call("Read", json!({"file_path": token})).unwrap_err();
    call("Read", json!({"nothing": 1})).unwrap_err();

    let begun = kept.begun.lock();
    let [bash, write, read] = begun.as_slice() else { panic!("{begun:?}") };
    assert!(!format!("{read:?}").contains(&token), "{read:?}");
    assert_eq!((bash.tool, bash.description.as_deref()), ("Bash", Some("Makes a file.")));
    let masked =
        |access: &Access| matches!(access, Access::Command(text) if !text.contains(&token));
    assert!(masked(&bash.accesses[0]), "{bash:?}");
    let ended = kept.ended.lock();
    let numbers: Vec<u64> = ended.iter().map(|record| record.call).collect();
    assert_eq!(numbers[..2], [bash.call, write.call]);
    let changes: Vec<_> = ended.iter().map(|one| (one.change, one.files_changed)).collect();
    assert_eq!(changes[..2], [(Some(1), Some(1)), (Some(2), Some(1))]);
    assert_eq!(changes[2..], [(None, None), (None, None)]);

    let commands = kept.commands.lock();
    let [(number, command)] = commands.as_slice() else { panic!("{commands:?}") };
    assert_eq!(*number, bash.call);
    let output = command.output(0, 1_000);
    assert!(output.text.starts_with("ä [masked"), "{output:?}");
    assert!(output.ended && !command.is_running() && !command.stop());
    let part = command.output(0, 2);
    assert_eq!((part.text.as_str(), part.next, part.ended), ("ä", 2, false));
    // A part of a token is not shown.
    let part = command.output(0, 12);
    assert_eq!((part.text.as_str(), part.next), ("ä ", 3));
    assert_eq!(command.output(1 << 40, 10).text, "");
    let denied = command.denied_accesses();
    let is_named = |denied: &toolcrib::DeniedAccess| {
        denied.what.contains("/etc/toolcrib-test") && denied.setting.contains("--root")
    };
    assert!(denied.iter().any(is_named), "{denied:?}");
}

#[test]
fn an_approval_for_some_minutes_ends() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "one\n").unwrap();
    let runtime = Runtime::builder().root(directory.path()).profile(Profile::Cautious);
    let runtime = runtime.build().unwrap();
    let session = runtime.session();
    let asked = Mutex::new(0);
    let read = |time: std::time::Duration| {
        let approver = |_: &Question<'_>| {
            *asked.lock() += 1;
            Answer::AllowFor(time)
        };
        let options = Options { approver: &approver, ..Options::default() };
        runtime.call(&session, Call::new("Read", json!({"file_path": "a.txt"})), options).unwrap();
        *asked.lock()
    };
    assert_eq!(read(std::time::Duration::ZERO), 1);
    assert_eq!(read(std::time::Duration::from_secs(3_600)), 2, "the first approval has ended");
    assert_eq!(read(std::time::Duration::ZERO), 2, "the second one holds");
}
