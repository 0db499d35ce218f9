//! Approval questions and their answers.

use parking_lot::Mutex;

use serde_json::json;
use toolcrib::{
    Answer, Call, Cancel, Error, ErrorKind, Options, Profile, Question, Reply, Runtime,
};

fn workspace() -> (tempfile::TempDir, Runtime) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "one\n").unwrap();
    let builder = Runtime::builder().root(directory.path()).profile(Profile::Cautious);
    (directory, builder.build().unwrap())
}

fn edit(old: &str, new: &str) -> Call {
    Call::new("Edit", json!({"file_path": "a.txt", "old_string": old, "new_string": new}))
}

/// Makes calls in one session with the same answer to each question. Returns the questions.
fn ask(
    runtime: &Runtime,
    calls: Vec<Call>,
    answer: Answer,
) -> (Vec<Result<Reply, Error>>, Vec<String>) {
    let asked = Mutex::new(Vec::new());
    let approver = |question: &Question<'_>| {
        let diff = question.preview.map_or("", |preview| preview.diff_text());
        let accesses: Vec<String> = question.accesses.iter().map(|a| a.to_string()).collect();
        asked.lock().push(format!("{}: {}\n{diff}", question.tool, accesses.join(", ")));
        answer.clone()
    };
    let session = runtime.session();
    let options = Options { approver: &approver, ..Options::default() };
    let replies = calls.into_iter().map(|call| runtime.call(&session, call, options)).collect();
    (replies, asked.into_inner())
}

#[test]
fn question_contains_the_diff() {
    let (directory, runtime) = workspace();
    let (replies, asked) = ask(&runtime, vec![edit("one", "two")], Answer::Deny("Not now.".into()));
    assert!(asked[0].starts_with("Edit: write /"), "{}", asked[0]);
    assert!(asked[0].contains("-one\n+two\n"), "{}", asked[0]);
    let error = replies[0].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().ends_with("the answer was no. Not now."), "{error}");
    assert_eq!(std::fs::read(directory.path().join("a.txt")).unwrap(), b"one\n");
}

/// Tag characters, direction marks and the like are escaped in all parts of a question, even in emoji
/// sequences.
#[test]
fn question_escapes_invisible_characters() {
    let (_directory, runtime) = workspace();
    let texts = Mutex::new(Vec::new());
    let approver = |question: &Question<'_>| {
        texts.lock().push(question.parts().concat());
        Answer::Deny(String::new())
    };
    let session = runtime.session();
    let options = Options { approver: &approver, ..Options::default() };
    let hidden = "tag\u{e0041} turn\u{202e} joined👩\u{200d}💻\u{fe0f}";
    let _ = runtime.call(&session, edit("one", hidden), options);
    let name = json!({"file_path": "n\u{e0042}\u{2066}\u{3164}", "content": "x"});
    let _ = runtime.call(&session, Call::new("Write", name), options);
    let texts = texts.into_inner();
    assert!(
        texts[0].contains("+tag\\u{e0041} turn\\u{202e} joined👩\\u{200d}💻\\u{fe0f}\n"),
        "{}",
        texts[0]
    );
    assert!(texts[1].contains("n\\u{e0042}\\u{2066}\\u{3164}"), "{}", texts[1]);
}

#[test]
fn allow_once_asks_again_and_allow_for_session_does_not() {
    let (_directory, runtime) = workspace();
    let calls = || vec![edit("one", "two"), edit("two", "one")];
    let (replies, asked) = ask(&runtime, calls(), Answer::Allow);
    assert!(replies.iter().all(Result::is_ok));
    assert_eq!(asked.len(), 2);
    let (replies, asked) = ask(&runtime, calls(), Answer::AllowForSession);
    assert!(replies.iter().all(Result::is_ok));
    assert_eq!(asked.len(), 1, "the answer was for the session");
    let (_, asked) = ask(&runtime, calls(), Answer::AllowForSession);
    assert_eq!(asked.len(), 1, "another session is another question");
}

#[test]
fn cancelled_call_changes_nothing() {
    let (directory, runtime) = workspace();
    let cancel = Cancel::new();
    cancel.cancel();
    let options = Options {
        cancel: &cancel,
        approver: &|_: &Question<'_>| Answer::Allow,
        ..Options::default()
    };
    let error = runtime.call(&runtime.session(), edit("one", "two"), options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(std::fs::read(directory.path().join("a.txt")).unwrap(), b"one\n");
}

/// The approver sees the whole change, however long it is.
#[test]
fn long_change_is_shown_completely() {
    let (_directory, runtime) = workspace();
    let content = "line\n".repeat(20_000) + "rm -rf ~\n";
    let call = Call::new("Write", json!({"file_path": "long.sh", "content": content}));
    let (_, asked) = ask(&runtime, vec![call], Answer::Deny(String::new()));
    assert!(asked[0].ends_with("+rm -rf ~\n"));
}

/// Two calls that ask wait for each other, and a cancelled call stops waiting.
#[test]
fn questions_are_serialized_and_waiting_is_cancellable() {
    let (directory, runtime) = workspace();
    std::fs::write(directory.path().join("b.txt"), "one\n").unwrap();
    let session = runtime.session();
    let (asked, given_up) = (Mutex::new(0), Cancel::new());
    let gate = std::sync::Barrier::new(2);
    let approver = |_: &Question<'_>| {
        *asked.lock() += 1;
        Answer::Allow
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let approver = |_: &Question<'_>| {
                *asked.lock() += 1;
                gate.wait();
                gate.wait();
                Answer::AllowForSession
            };
            let options = Options { approver: &approver, ..Options::default() };
            runtime.call(&session, edit("one", "two"), options)
        });
        gate.wait();
        // The first question is open.
        let in_vain = scope.spawn(|| {
            let options = Options { approver: &approver, cancel: &given_up, ..Options::default() };
            runtime.call(&session, edit("one", "three"), options)
        });
        given_up.cancel();
        let error = in_vain.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        let second = scope.spawn(|| {
            let call = json!({"file_path": "b.txt", "old_string": "one", "new_string": "two"});
            let options = Options { approver: &approver, ..Options::default() };
            runtime.call(&session, Call::new("Edit", call), options)
        });
        gate.wait();
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
    });
    assert_eq!(*asked.lock(), 1, "the answer to the first was one to the second");
}

#[test]
fn always_and_never_apply_to_the_files_of_the_rule() {
    let elsewhere =
        || Call::new("Edit", json!({"file_path": "b.txt", "old_string": "one", "new_string": "2"}));
    let calls = || vec![edit("one", "two"), edit("two", "one"), elsewhere()];
    for (answer, is_allowed) in
        [(Answer::AllowAlways, true), (Answer::DenyAlways("Leave it.".into()), false)]
    {
        let (directory, runtime) = workspace();
        std::fs::write(directory.path().join("b.txt"), "one\n").unwrap();
        let (replies, asked) = ask(&runtime, calls(), answer);
        assert!(replies.iter().all(|reply| reply.is_ok() == is_allowed), "{replies:?}");
        assert_eq!(asked.len(), 2, "the other file is asked about: {asked:?}");
        if let Err(again) = &replies[1] {
            assert!(again.message().contains("a rule denies it"), "{again}");
        }
    }
}

#[test]
fn denial_without_approver_names_the_rule() {
    let (directory, runtime) = workspace();
    let error = runtime.call(&runtime.session(), edit("one", "two"), Options::default());
    let error = error.unwrap_err();
    assert_eq!(error.metadata()["rule"], "profile:cautious:write");
    let expected = format!(
        "Nothing was done. Ask the operator to run `toolcrib policy allow edit {}`.",
        directory.path().canonicalize().unwrap().join("a.txt").display()
    );
    assert!(error.hint_text().ends_with(&expected), "{}", error.hint_text());
}

#[test]
fn the_scope_of_several_files_is_plural() {
    let (_directory, runtime) = workspace();
    let scopes = Mutex::new(Vec::new());
    let approver = |question: &Question<'_>| {
        scopes.lock().push(question.session_scope());
        Answer::Deny(String::new())
    };
    let session = runtime.session();
    let options = Options { approver: &approver, ..Options::default() };
    for command in ["echo a > f1", "echo a > f1; echo b > f2"] {
        let _ = runtime.call(&session, Call::new("Bash", json!({"command": command})), options);
    }
    assert_eq!(scopes.into_inner(), ["this file", "these files"]);
}
