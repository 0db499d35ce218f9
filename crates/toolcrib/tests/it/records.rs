//! What is kept of each call.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolcrib::{Access, Call, Decision, ErrorKind, Options, Outcome, Record, Runtime};

#[test]
fn every_call_leaves_a_record_also_one_that_failed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().canonicalize().unwrap().join("a.txt");
    std::fs::write(&file, "one\n").unwrap();
    let records: Arc<Mutex<Vec<Record>>> = Arc::default();
    let kept = records.clone();
    let recorder = move |record| kept.lock().unwrap().push(record);
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

    let records = records.lock().unwrap();
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
