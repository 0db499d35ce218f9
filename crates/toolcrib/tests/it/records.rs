//! Records of calls and decisions.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use toolcrib::{
    Access, Answer, Call, Caps, Decision, ErrorKind, Options, Outcome, Profile, Question, Record,
    Runtime,
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
