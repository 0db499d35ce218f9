//! Rules that change while a runtime is in use.

use serde_json::{Value, json};
use toolcrib::{Call, Error, ErrorKind, Options, Reply, RulesSource, RulesState, Runtime};

/// A source whose file is invalid.
struct Invalid;

impl RulesSource for Invalid {
    fn look(&self) -> RulesState {
        RulesState { problem: Some("line 3: unknown key".to_owned()), ..RulesState::default() }
    }
}

/// The problem is told once for each session, so it must not get lost with the first reply.
#[test]
fn every_refusal_says_why_changed_rules_have_no_effect() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "one\n").unwrap();
    let runtime = Runtime::builder()
        .root(directory.path())
        .remove_tool("Bash")
        .rules_source(std::sync::Arc::new(Invalid))
        .build()
        .unwrap();
    let session = runtime.session();
    let call = |tool: &str, args: Value| -> Result<Reply, Error> {
        runtime.call(&session, Call::new(tool, args), Options::default())
    };
    let problem = "line 3: unknown key";
    // Not refused by a rule: the operator has left the tool out.
    for _ in 0..2 {
        let error = call("Bash", json!({"command": "true"})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert_eq!(error.text().matches(problem).count(), 1, "{}", error.text());
    }
    let read = || call("Read", json!({"file_path": "a.txt"})).unwrap();
    assert!(!read().text().contains(problem), "the session knows it");
    let other = runtime.session();
    let args = json!({"file_path": "a.txt"});
    let read = runtime.call(&other, Call::new("Read", args), Options::default()).unwrap();
    assert!(read.text().contains(problem), "{}", read.text());
}
