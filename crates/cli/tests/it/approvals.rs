//! `toolcrib run --approvals`: the calling program answers approval questions.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::{PROGRAM, isolated_home, text, toolcrib};

/// A running program with its input and output lines.
pub(crate) struct LineClient {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl LineClient {
    pub(crate) fn start(top: &Path, flags: &[&str]) -> LineClient {
        let usual = ["--root", "ws", "--state", "state", "--rules", "rules.toml"];
        LineClient::start_with(top, &[&usual, flags].concat())
    }

    /// Starts it in a directory, without the usual options.
    pub(crate) fn start_with(directory: &Path, flags: &[&str]) -> LineClient {
        let mut child = Command::new(PROGRAM)
            .arg("run")
            .args(flags)
            .current_dir(directory)
            .envs(isolated_home())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        LineClient { child, stdin, stdout }
    }

    pub(crate) fn send(&mut self, line: Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn receive(&mut self) -> Value {
        serde_json::from_str(&self.stdout.next().unwrap().unwrap()).unwrap()
    }

    pub(crate) fn write(&mut self, id: u64, path: &str) {
        let args = json!({"file_path": path, "content": "x\n"});
        self.send(json!({"id": id, "tool": "Write", "args": args}));
    }

    /// The next line, which must be a question.
    fn question(&mut self) -> Value {
        let line = self.receive();
        assert!(line["approval"].is_object(), "{line}");
        line["approval"].clone()
    }

    fn answer(&mut self, question: &Value, answer: &str) {
        self.send(json!({"approve": question["id"], "answer": answer}));
    }

    pub(crate) fn end(mut self) -> Vec<Value> {
        drop(self.stdin.take());
        let rest = self.stdout.by_ref().map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        let rest = rest.collect();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

pub(crate) fn project() -> tempfile::TempDir {
    let top = crate::command_directory();
    std::fs::create_dir_all(top.path().join("ws/src")).unwrap();
    std::fs::write(top.path().join("ws/src/a.txt"), "one\n").unwrap();
    std::fs::write(top.path().join("rules.toml"), "").unwrap();
    top
}

const CAUTIOUS: [&str; 3] = ["--approvals", "--profile", "cautious"];

#[test]
fn a_question_describes_the_call_and_does_not_block_others() {
    let top = project();
    let mut run = LineClient::start(top.path(), &CAUTIOUS);
    let edit = json!({"file_path": "src/a.txt", "old_string": "one", "new_string": "two"});
    run.send(json!({"id": "call-7", "tool": "Edit", "args": edit}));
    let question = run.question();
    let file = top.path().canonicalize().unwrap().join("ws/src/a.txt");
    let file = file.to_str().unwrap();
    assert_eq!(question["call_id"], "call-7");
    assert_eq!((&question["tool"], &question["session"]), (&json!("Edit"), &json!(1)));
    assert_eq!(question["rule"], "profile:cautious:write");
    assert_eq!(question["paths"], json!([{"access": "write", "path": file}]));
    assert!(question["diff"].as_str().unwrap().contains("-one\n+two"), "{question}");
    let rule = |path: &str| {
        format!("[[rule]]\ndecision = \"allow\"\nkind = \"edit\"\npaths = [\"{path}\"]\n")
    };
    assert_eq!(question["always"], rule(file));
    assert_eq!(question["always_directory"], rule(file.strip_suffix("/a.txt").unwrap()));
    let answers = json!(["yes", "session", "always", "always_directory", "no", "never"]);
    assert_eq!(question["answers"], answers);
    // Another call is answered while the question is open.
    run.send(json!({"id": 2, "tool": "ListShells", "args": {}}));
    assert_eq!(run.receive()["id"], 2);
    // An invalid answer leaves the question open.
    run.send(json!({"approve": "a99", "answer": "yes"}));
    let unknown = run.receive();
    assert_eq!(
        (&unknown["approve"], &unknown["error"]["kind"]),
        (&json!("a99"), &json!("not_found"))
    );
    for wrong in [
        json!({"answer": "perhaps"}),
        json!({}),
        json!({"answer": 1}),
        json!({"answer": "yes", "x": 1}),
    ] {
        let mut line = wrong;
        line["approve"] = question["id"].clone();
        run.send(line);
        let refused = run.receive();
        assert_eq!(refused["error"]["kind"], "invalid", "{refused}");
        assert_eq!(refused["approve"], question["id"], "{refused}");
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), "one\n");
    run.answer(&question, "yes");
    let reply = run.receive();
    assert_eq!((&reply["id"], &reply["success"]), (&json!("call-7"), &json!(true)), "{reply}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "two\n");
    run.answer(&question, "yes");
    assert_eq!(run.receive()["error"]["kind"], "not_found", "it was answered");
    // The question shows the description of a command.
    let command = json!({"command": "touch made", "description": "Make a file"});
    run.send(json!({"id": 3, "tool": "Bash", "args": command}));
    let question = run.question();
    assert_eq!(
        (&question["command"], &question["description"]),
        (&json!("touch made"), &json!("Make a file"))
    );
    run.send(json!({"approve": question["id"], "answer": "no", "message": "Use Write."}));
    let reply = run.receive();
    assert!(
        reply["error"]["message"].as_str().unwrap().contains("the answer was no. Use Write."),
        "{reply}"
    );
    assert!(run.end().is_empty());
}

#[test]
fn always_writes_the_rule_that_the_question_shows() {
    let top = project();
    let mut run = LineClient::start(top.path(), &CAUTIOUS);
    run.write(1, "new.txt");
    let question = run.question();
    assert!(question.get("always_directory").is_none(), "its directory is the root: {question}");
    run.answer(&question, "always_directory");
    assert_eq!(run.receive()["error"]["kind"], "invalid");
    run.answer(&question, "always");
    assert_eq!(run.receive()["success"], true);
    run.write(2, "src/b.txt");
    let second = run.question();
    run.answer(&second, "always_directory");
    assert_eq!(run.receive()["success"], true);
    let rules = std::fs::read_to_string(top.path().join("rules.toml")).unwrap();
    let expected =
        [question["always"].as_str().unwrap(), second["always_directory"].as_str().unwrap()];
    assert_eq!(rules, expected.join("\n"));
    assert!(!rules.contains('*'), "{rules}");
    // Both apply in this session.
    run.write(3, "src/c.txt");
    assert_eq!(run.receive()["success"], true);
    run.end();
}

#[test]
fn a_question_without_an_answer_is_denied() {
    let top = project();
    let mut run = LineClient::start(top.path(), &CAUTIOUS);
    run.write(1, "a.txt");
    run.question();
    run.send(json!({"cancel": 1}));
    assert_eq!(run.receive()["error"]["kind"], "cancelled");
    run.send(json!({"cancel": 1}));
    let unknown = run.receive();
    assert_eq!((&unknown["cancel"], &unknown["error"]["kind"]), (&json!(1), &json!("not_found")));
    run.write(2, "a.txt");
    run.question();
    let rest = run.end();
    let message = rest[0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("no answer came: the input ended"), "{message}");

    std::fs::write(top.path().join("config.toml"), "approval_seconds = 1\n").unwrap();
    let flags = [&CAUTIOUS[..], &["--config", "config.toml"]].concat();
    let mut run = LineClient::start(top.path(), &flags);
    run.write(3, "a.txt");
    run.question();
    let reply = run.receive();
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(message.contains("no answer came: timeout after 1 s"), "{message}");
    run.end();
    assert!(!top.path().join("ws/a.txt").exists());
}

#[test]
fn wait_delays_later_calls_but_not_answers() {
    let top = project();
    let mut run = LineClient::start(top.path(), &CAUTIOUS);
    let args = json!({"file_path": "a.txt", "content": "x\n"});
    run.send(json!({"id": 1, "tool": "Write", "args": args, "wait": true}));
    for id in 2..10 {
        run.send(json!({"id": id, "tool": "ListShells", "args": {}}));
    }
    let question = run.question();
    run.answer(&question, "yes");
    assert_eq!(run.receive()["id"], 1);
    assert_eq!(run.end().len(), 8);
}

/// Answers are read even if the sender does not read its replies.
#[test]
fn calls_beyond_the_bound_are_refused_and_answers_still_read() {
    let top = project();
    let mut run = LineClient::start(top.path(), &CAUTIOUS);
    for id in 0..300 {
        run.write(id, "a.txt");
    }
    let (mut refused, mut done) = (0, 0);
    while refused + done < 300 {
        let line = run.receive();
        if line["approval"].is_object() {
            run.answer(&line["approval"], "session");
        } else if line["error"]["kind"] == "limit" {
            refused += 1;
        } else {
            done += 1;
        }
    }
    assert!(refused > 0 && done > 0, "{refused} {done}");
    run.end();
}

#[test]
fn without_approvals_a_call_that_needs_one_is_denied() {
    let top = project();
    let mut run = LineClient::start(top.path(), &["--profile", "cautious"]);
    run.write(1, "a.txt");
    let reply = run.receive();
    assert!(
        reply["error"]["message"].as_str().unwrap().contains("no approver is available"),
        "{reply}"
    );
    run.send(json!({"approve": "a1", "answer": "yes"}));
    let reply = run.receive();
    assert_eq!(reply["error"]["kind"], "invalid");
    assert!(reply["error"]["hint"].as_str().unwrap().contains("--approvals"), "{reply}");
    run.end();
}

#[test]
fn the_example_of_the_documentation_answers_questions() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/python-and-typescript.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```python\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let example = blocks.into_iter().find(|block| block.contains("--approvals")).unwrap();
    let top = crate::command_directory();
    let (project, bin) = (top.path().join("project"), top.path().join("bin"));
    std::fs::create_dir(&project).unwrap();
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(PROGRAM, bin.join("toolcrib")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("python3")
        .args(["-c", example])
        .current_dir(top.path())
        .env("PATH", format!("{}:{path}", bin.display()))
        .envs(isolated_home())
        .output()
        .unwrap();
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    assert!(printed.contains("Created approved.txt"), "{printed}");
    assert!(printed.contains("Only files are changed here."), "{printed}");
    assert!(project.join("approved.txt").exists() && !project.join("made.txt").exists());
    // Questions and answers are in the log.
    let words = ["log", "--decisions", "--json", "--root", "project"];
    let log = toolcrib(top.path(), &words, b"");
    assert!(text(&log.stdout).contains("program"), "{}", text(&log.stdout));
}
