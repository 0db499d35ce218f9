//! The page with running servers: questions, output, notifications.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::{RunningPage, User};

/// A `toolcrib run` of an agent.
struct Agent {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Agent {
    fn start(user: &User) -> Agent {
        let mut command = user.command(&["run", "--approvals", "--profile", "cautious"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Agent { child, input, output }
    }

    fn call(&mut self, id: u64, tool: &str, args: &Value) {
        writeln!(self.input, "{}", json!({"id": id, "tool": tool, "args": args})).unwrap();
    }

    /// The reply to a call, after its questions.
    fn reply(&mut self, id: u64) -> Value {
        loop {
            let line = self.output.next().unwrap().unwrap();
            let value: Value = serde_json::from_str(&line).unwrap();
            if value["id"] == id {
                return value;
            }
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The event stream.
struct Stream(Lines<BufReader<TcpStream>>);

impl Stream {
    fn open(page: &RunningPage) -> Stream {
        let mut stream = page.connect();
        let (host, origin, token) = (page.host(), page.origin(), &page.token);
        let request = format!(
            "GET /api/events HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        Stream(BufReader::new(stream).lines())
    }

    /// The data of the next event with this name.
    fn next(&mut self, name: &str) -> Value {
        loop {
            let line = self.0.next().unwrap().unwrap();
            if line == format!("event: {name}") {
                let data = self.0.next().unwrap().unwrap();
                return serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            }
        }
    }
}

#[test]
fn a_question_is_answered_on_the_page_once() {
    let user = User::new();
    let page = RunningPage::start(&user);
    let mut stream = Stream::open(&page);
    let mut agent = Agent::start(&user);
    let joined = stream.next("server_joined");
    assert_eq!(joined["program"], "run");
    agent.call(1, "Bash", &json!({"command": "echo hi > x.txt"}));
    let question = stream.next("question_opened");
    assert_eq!(question["command"]["text"], "echo hi > x.txt");
    let path = format!("/api/questions/{}", question["id"].as_str().unwrap());
    let preview = page.post(&format!("{path}/preview"), &json!({"answer": "always"}));
    assert!(preview.json()["toml"].as_str().unwrap().contains("[[rule]]"), "{}", preview.0);
    let wrong = page.post(&path, &json!({"digest": "other", "answer": "once"}));
    assert_eq!(wrong.status(), 400, "{}", wrong.0);
    let answer = json!({"digest": question["digest"], "answer": "once"});
    let settled = page.post(&path, &answer);
    assert_eq!(settled.status(), 200, "{}", settled.0);
    assert_eq!(settled.json()["by"], "page");
    assert_eq!(stream.next("question_settled")["settled"]["answer"], "once");
    let late = page.post(&path, &answer);
    assert_eq!(late.status(), 409, "{}", late.0);
    assert_eq!(late.json()["error"]["settled"]["by"], "page");
    assert_eq!(agent.reply(1)["success"], true);
    assert_eq!(user.read("x.txt"), "hi\n");
    let ended = stream.next("call_ended");
    let logged = page.get(&format!("/api/calls/{}", ended["id"].as_str().unwrap()));
    assert_eq!(logged.status(), 200, "the log has the id of the event");
    let logged = logged.json();
    for field in ["id", "server", "session", "title", "started", "ms", "outcome", "workspace"] {
        assert_eq!(logged[field], ended[field], "{field}");
    }
    drop(agent);
    assert_eq!(stream.next("server_left")["server"], joined["server"]);
    assert_eq!(page.post("/api/questions/none", &answer).status(), 404);
}

#[test]
fn output_is_read_while_a_command_runs_and_the_command_is_stopped() {
    let user = User::new();
    let rule =
        "[[rule]]\ndecision = \"allow\"\nkind = \"command\"\ncommands = [\"echo\", \"sleep\"]\n";
    std::fs::create_dir_all(user.path("config/toolcrib")).unwrap();
    std::fs::write(user.path("config/toolcrib/rules.toml"), rule).unwrap();
    let page = RunningPage::start(&user);
    let mut stream = Stream::open(&page);
    let mut agent = Agent::start(&user);
    agent.call(1, "Bash", &json!({"command": "echo started; sleep 3000"}));
    let call = stream.next("call_begun");
    let id = call["id"].as_str().unwrap();
    let output = loop {
        let answer = page.get(&format!("/api/calls/{id}/output?from=0"));
        // The command may not have started yet.
        if answer.status() == 200 && answer.json()["text"] != "" {
            break answer.json();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!((&output["text"], &output["ended"]), (&json!("started\n"), &json!(false)));
    assert_eq!(page.post(&format!("/api/calls/{id}/stop"), &json!({})).status(), 200);
    assert_eq!(agent.reply(1)["success"], false);
    assert_eq!(stream.next("call_ended")["outcome"], "failed");
    assert_eq!(page.get("/api/calls/1-x-1/output?from=0").status(), 404);
}

#[test]
fn the_notify_command_gets_an_open_question_once() {
    let user = User::new();
    let told = user.path("told");
    std::fs::create_dir_all(user.path("config/toolcrib")).unwrap();
    let config = format!("notify = [\"tee\", \"-a\", {:?}]\n", told.to_str().unwrap());
    std::fs::write(user.path("config/toolcrib/config.toml"), config).unwrap();
    let page = RunningPage::start(&user);
    let mut stream = Stream::open(&page);
    let mut agent = Agent::start(&user);
    agent.call(1, "Bash", &json!({"command": "make"}));
    let question = stream.next("question_opened");
    let text = loop {
        match std::fs::read_to_string(&told) {
            Ok(text) if text.ends_with('\n') => break text,
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    let passed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&passed["id"], &passed["tool"]), (&question["id"], &json!("Bash")));
    let path = format!("/api/questions/{}", question["id"].as_str().unwrap());
    let answer = json!({"digest": question["digest"], "answer": "no", "message": "later"});
    assert_eq!(page.post(&path, &answer).status(), 200);
    assert!(agent.reply(1)["error"]["message"].as_str().unwrap().contains("later"));
    assert_eq!(std::fs::read_to_string(&told).unwrap(), text, "it runs once");
}

/// The page can end and come back while a question waits.
#[test]
fn a_question_survives_the_page() {
    let user = User::new();
    let first = RunningPage::start(&user);
    let mut stream = Stream::open(&first);
    let mut agent = Agent::start(&user);
    agent.call(1, "Bash", &json!({"command": "make"}));
    let question = stream.next("question_opened");
    drop(first);
    let second = RunningPage::start(&user);
    let mut stream = Stream::open(&second);
    let state = stream.next("state");
    let found = match state["waiting"].as_array().unwrap().first() {
        Some(found) => found.clone(),
        None => stream.next("question_opened"),
    };
    assert_eq!(found["id"], question["id"]);
    let path = format!("/api/questions/{}", question["id"].as_str().unwrap());
    let answer = json!({"digest": question["digest"], "answer": "no"});
    assert_eq!(second.post(&path, &answer).status(), 200);
    assert_eq!(agent.reply(1)["success"], false);
}
