//! The monitor socket of real servers: events, output, and answers that compete with those of the client.

mod background;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolcrib_monitor::protocol::{
    AnswerWord, Answerer, Event, Outcome, Question, Refusal, Settled,
};
use toolcrib_monitor::{
    Client, GivenAnswer, Notice, OutputPart, RequestError, RequestErrorKind, SocketPath, State,
    sockets,
};
use toolcrib_testkit::McpTransport;

use crate::PROGRAM;

const LONG: Duration = Duration::from_secs(300);

/// A workspace with a home of its own.
struct Setup {
    top: tempfile::TempDir,
}

impl Setup {
    fn new() -> Setup {
        let top = crate::command_directory();
        for directory in ["ws", "home", "runtime", "config"] {
            std::fs::create_dir(top.path().join(directory)).unwrap();
        }
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(top.path().join("runtime"), private).unwrap();
        std::fs::write(top.path().join("ws/a.txt"), "one\n").unwrap();
        Setup { top }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("HOME", self.path("home")),
            ("XDG_CONFIG_HOME", self.path("config")),
            ("XDG_STATE_HOME", self.path("state")),
            ("XDG_RUNTIME_DIR", self.path("runtime")),
        ]
    }

    fn sockets(&self) -> Vec<SocketPath> {
        sockets(&self.path("runtime/toolcrib"))
    }

    /// Starts an MCP server.
    fn serve(&self, flags: &[&str]) -> McpTransport {
        let mut all = vec!["--root".to_owned(), self.path("ws").display().to_string()];
        all.extend(flags.iter().map(|flag| (*flag).to_owned()));
        McpTransport::start(PROGRAM, all, &self.variables())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(words).envs(self.variables()).current_dir(self.path("ws"));
        command
    }

    /// Waits for the socket of a server, and subscribes.
    fn watch(&self) -> Watcher {
        let socket = loop {
            if let Some(socket) = self.sockets().pop() {
                break socket;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        Watcher::connect(&socket)
    }
}

/// A client of the socket.
struct Watcher {
    client: Client,
    state: State,
    notices: Receiver<Notice>,
}

impl Watcher {
    fn connect(socket: &SocketPath) -> Watcher {
        let (sender, notices) = channel();
        let client = Client::connect(socket, move |notice| {
            let _ = sender.send(notice);
        });
        let client = client.unwrap();
        let state = client.subscribe(None).unwrap();
        Watcher { client, state, notices }
    }

    fn find<T>(&self, wanted: impl Fn(Event) -> Option<T>) -> T {
        loop {
            match self.notices.recv_timeout(LONG).unwrap() {
                Notice::Event { event, .. } => {
                    if let Some(found) = wanted(event) {
                        return found;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn question(&self) -> Question {
        self.find(|event| match event {
            Event::QuestionOpened(question) => Some(*question),
            _ => None,
        })
    }

    fn settled(&self) -> Settled {
        self.find(|event| match event {
            Event::QuestionSettled { settled, .. } => Some(settled),
            _ => None,
        })
    }

    fn answer(&self, question: &Question, answer: AnswerWord) -> Result<Settled, RequestError> {
        self.client.answer(GivenAnswer {
            question: question.id.clone(),
            digest: question.digest.clone(),
            answer,
            minutes: (answer == AnswerWord::Minutes).then_some(5),
            message: None,
            by: Answerer::Page,
        })
    }
}

/// The handshake of an older client that can show forms.
fn initialize(server: &mut McpTransport, capabilities: Value) {
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"},
    });
    let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    server.send(&request.to_string());
    server.receive();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
}

fn call(server: &mut McpTransport, id: u64, tool: &str, arguments: Value) {
    let meta = json!({"toolcrib/metadata": true});
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    server.send(&call.to_string());
}

fn edit(to: &str) -> Value {
    json!({"file_path": "a.txt", "old_string": "one", "new_string": to})
}

fn reply_text(reply: &Map<String, Value>) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap()
}

#[test]
fn calls_are_shown_with_their_outcome_and_change() {
    let setup = Setup::new();
    let mut server = setup.serve(&[]);
    let watcher = setup.watch();
    let hello = watcher.client.hello().unwrap();
    assert_eq!((hello.program.as_str(), hello.profile.as_str()), ("serve", "workspace"));
    assert!(hello.sandbox.contains("sandbox") || hello.sandbox.contains("no command"), "{hello:?}");
    assert_eq!(watcher.state.seq, 0);
    initialize(&mut server, json!({}));
    call(&mut server, 1, "Edit", edit("two"));
    server.receive();
    let named = watcher.find(|event| match event {
        Event::ClientNamed(server) => server.client,
        _ => None,
    });
    assert_eq!(named, "test 1");
    let begun = watcher.find(|event| match event {
        Event::CallBegun(call) => Some(call),
        _ => None,
    });
    assert_eq!((begun.tool.as_str(), begun.title.as_str()), ("Edit", "Edit a.txt"));
    assert_eq!(begun.accesses[0].effect, "write");
    let ended = watcher.find(|event| match event {
        Event::CallEnded(call) => Some(call),
        _ => None,
    });
    assert_eq!((&ended.call.id, ended.outcome), (&begun.id, Outcome::Done));
    assert_eq!((ended.change, ended.files_changed), (Some(1), Some(1)));
    assert_eq!(ended.arguments.as_ref().unwrap()["new_string"], "two");
    assert_eq!(ended.decision.as_deref(), Some("allow"));
    // A client that comes back reads on where it was.
    let again = Client::connect(&setup.sockets()[0], |_| {}).unwrap();
    let state = again.subscribe(Some(1)).unwrap();
    assert_eq!((state.seq, state.missed, state.running.len()), (1, 0, 0));
    drop(server);
    assert!(setup.sockets().is_empty(), "the socket is removed at the end");
}

#[test]
fn output_of_a_running_command_is_read_and_the_command_stopped() {
    let setup = Setup::new();
    let mut server = setup.serve(&[]);
    let watcher = setup.watch();
    initialize(&mut server, json!({}));
    let script = ": 2> /dev/null > /etc/x; echo first; while [ ! -e go ]; do sleep 0.05; done; echo second; sleep 1000";
    call(&mut server, 1, "Bash", json!({"command": script}));
    let begun = watcher.find(|event| match event {
        Event::CallBegun(call) => Some(call),
        _ => None,
    });
    assert_eq!(begun.title, script);
    // Until the command has started, it has no output.
    let output = |from: u64| loop {
        match watcher.client.output(&begun.id, from) {
            Ok(part) if part.next > from => return part,
            Ok(_) => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => {
                assert_eq!(error.kind, RequestErrorKind::NotFound);
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    };
    let first = output(0);
    assert_eq!((first.text.as_str(), first.next, first.ended), ("first\n", 6, false));
    std::fs::write(setup.path("ws/go"), "").unwrap();
    assert_eq!(output(6).text, "second\n");
    let again = Watcher::connect(&setup.sockets()[0]);
    assert_eq!(again.state.running[0].id, begun.id);
    assert!(again.state.running[0].job.is_some());
    watcher.client.stop(&begun.id).unwrap();
    server.receive();
    let ended = watcher.find(|event| match event {
        Event::CallEnded(call) => Some(call),
        _ => None,
    });
    assert_eq!(ended.call.id, begun.id);
    let refused = |refusal: &Refusal| refusal.what == "write /etc/x" && refusal.setting.is_some();
    assert!(ended.refusals.iter().any(refused), "{ended:?}");
    let last = loop {
        let part: OutputPart = watcher.client.output(&begun.id, 6).unwrap();
        if part.ended {
            break part;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(last.text.starts_with("second\n"), "the output of an ended command stays for a while");
    assert_eq!(watcher.client.stop("1-00-1").unwrap_err().kind, RequestErrorKind::NotFound);
}

#[test]
fn an_answer_on_the_page_cancels_the_request_to_the_client() {
    let setup = Setup::new();
    let mut server = setup.serve(&["--profile", "cautious"]);
    let watcher = setup.watch();
    initialize(&mut server, json!({"elicitation": {}}));
    call(&mut server, 1, "Edit", edit("two"));
    let asked = server.receive();
    assert_eq!(asked["method"], "elicitation/create");
    let question = watcher.question();
    assert!(question.diff.as_ref().unwrap().contains("+two"), "{question:?}");
    assert_eq!(question.client.as_deref(), Some("test 1"));
    assert_eq!(watcher.answer(&question, AnswerWord::Once).unwrap().by, Answerer::Page);
    // The cancellation and the reply come in any order.
    let (first, second) = (server.receive(), server.receive());
    let (cancelled, reply) =
        if first.contains_key("method") { (first, second) } else { (second, first) };
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
    assert!(reply_text(&reply).contains("Edited"), "{reply:?}");
    // A late answer changes nothing.
    let late = json!({"action": "decline"});
    let late = json!({"jsonrpc": "2.0", "id": asked["id"], "result": late});
    server.send(&late.to_string());
    call(&mut server, 2, "Read", json!({"file_path": "a.txt"}));
    assert_eq!(watcher.settled().by, Answerer::Page);
    let asked = server.receive();
    // Reading asks too; the client is first this time.
    let answer = json!({"action": "accept", "content": {"answer": "session"}});
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer});
    let question = watcher.question();
    server.send(&answer.to_string());
    assert!(reply_text(&server.receive()).contains("two"));
    let error = watcher.answer(&question, AnswerWord::No).unwrap_err();
    assert_eq!(error.kind, RequestErrorKind::Conflict);
    let settled = error.settled.unwrap();
    assert_eq!((settled.answer, settled.by), (AnswerWord::Session, Answerer::Client));
    let log = setup.command(&["log", "--decisions", "--text"]).output().unwrap();
    assert!(crate::text(&log.stdout).contains("page"), "{log:?}");
}

#[test]
fn a_client_that_declines_at_once_is_not_asked_again_while_a_viewer_is_active() {
    let setup = Setup::new();
    let mut server = setup.serve(&["--profile", "cautious"]);
    let watcher = setup.watch();
    watcher.client.visible(true).unwrap();
    initialize(&mut server, json!({"elicitation": {}}));
    let write = |server: &mut McpTransport, id: u64| {
        let arguments = json!({"file_path": format!("{id}.txt"), "content": "x"});
        call(server, id, "Write", arguments);
        watcher.question()
    };
    // On a slow machine a decline may count as one of a person, or come after the answer, so it is repeated.
    let is_remembered = (1..50).any(|id| {
        // It expires after some seconds.
        watcher.client.visible(true).unwrap();
        let question = write(&mut server, id);
        let asked = server.receive();
        assert_eq!(asked["method"], "elicitation/create");
        let decline = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}});
        server.send(&decline.to_string());
        std::thread::sleep(Duration::from_millis(100));
        let answered = watcher.answer(&question, AnswerWord::Once);
        let first = server.receive();
        if first.contains_key("method") {
            server.receive();
            return false;
        }
        assert_eq!(answered.is_ok(), reply_text(&first).contains("Created"), "{first:?}");
        answered.is_ok()
    });
    assert!(is_remembered);
    watcher.client.visible(true).unwrap();
    let question = write(&mut server, 60);
    watcher.answer(&question, AnswerWord::Once).unwrap();
    let reply = server.receive();
    assert!(!reply.contains_key("method"), "the client is not asked: {reply:?}");
    assert!(reply_text(&reply).contains("Created"), "{reply:?}");
    // Without an active viewer, it is asked as before.
    watcher.client.visible(false).unwrap();
    write(&mut server, 61);
    let asked = server.receive();
    assert_eq!(asked["method"], "elicitation/create");
    let decline = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}});
    server.send(&decline.to_string());
    assert!(reply_text(&server.receive()).contains("the answer was no"));
}

#[test]
fn an_active_viewer_is_asked_for_a_client_that_cannot_ask() {
    let setup = Setup::new();
    let mut server = setup.serve(&["--profile", "cautious"]);
    let watcher = setup.watch();
    initialize(&mut server, json!({}));
    call(&mut server, 1, "Bash", json!({"command": "cd . && touch made > log"}));
    let refused = server.receive();
    assert!(reply_text(&refused).contains("no approver is available"), "{refused:?}");
    let unseen = watcher.question();
    assert_eq!(watcher.settled().by, Answerer::Timeout);
    watcher.client.visible(true).unwrap();
    call(&mut server, 2, "Bash", json!({"command": "cd . && touch made > log"}));
    let question = watcher.question();
    assert_ne!(question.id, unseen.id);
    let command = question.command.as_ref().unwrap();
    let steps: Vec<&str> = command.steps.iter().map(|step| step.text.as_str()).collect();
    assert_eq!(steps, ["cd .", "&& touch made > log"]);
    assert!(!command.steps[0].writes && command.steps[1].writes);
    watcher.answer(&question, AnswerWord::Minutes).unwrap();
    server.receive();
    assert!(setup.path("ws/made").exists());
    std::fs::remove_file(setup.path("ws/made")).unwrap();
    call(&mut server, 3, "Bash", json!({"command": "cd . && touch made > log"}));
    server.receive();
    assert!(setup.path("ws/made").exists(), "the answer holds for some minutes");
}

/// The version without sessions: the question is a result, and the call is made again with the answer.
fn modern(server: &mut McpTransport, to: &str, more: Value) -> Map<String, Value> {
    let mut params = json!({"name": "Edit", "arguments": edit(to)});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.request("tools/call", params, json!({"elicitation": {"form": {}}}))
}

#[test]
fn a_modern_client_gets_the_answer_of_the_page_whatever_its_form_says() {
    let setup = Setup::new();
    let mut server = setup.serve(&["--profile", "cautious"]);
    let watcher = setup.watch();
    let asked = modern(&mut server, "two", json!({}));
    let state = asked["result"]["requestState"].clone();
    assert!(state.is_string(), "{asked:?}");
    let question = watcher.question();
    watcher.answer(&question, AnswerWord::Once).unwrap();
    let no = json!({"permission": {"action": "accept", "content": {"answer": "no"}}});
    let reply = modern(&mut server, "two", json!({"requestState": state, "inputResponses": no}));
    assert!(reply_text(&reply).contains("Edited"), "{reply:?}");
    assert_eq!(std::fs::read_to_string(setup.path("ws/a.txt")).unwrap(), "two\n");
}

#[test]
fn a_modern_client_is_not_asked_while_the_page_answers() {
    let setup = Setup::new();
    let mut server = setup.serve(&["--profile", "cautious"]);
    let watcher = setup.watch();
    watcher.client.visible(true).unwrap();
    let reply = std::thread::scope(|scope| {
        let calling = scope.spawn(|| modern(&mut server, "two", json!({})));
        let question = watcher.question();
        watcher.answer(&question, AnswerWord::Session).unwrap();
        calling.join().unwrap()
    });
    assert!(reply_text(&reply).contains("Edited"), "{reply:?}");
}

#[test]
fn a_modern_client_that_declines_at_once_leaves_the_question_to_the_page() {
    let setup = Setup::new();
    let mut server = setup.serve(&["--profile", "cautious"]);
    let watcher = setup.watch();
    // Nobody looks, so the client gets the question at once.
    let asked = modern(&mut server, "two", json!({}));
    let question = watcher.question();
    watcher.client.visible(true).unwrap();
    let decline = json!({"permission": {"action": "decline"}});
    let state = asked["result"]["requestState"].clone();
    let more = json!({"requestState": state, "inputResponses": decline});
    let reply = std::thread::scope(|scope| {
        let calling = scope.spawn(|| modern(&mut server, "two", more));
        // On a slow machine the decline counts as one of a person.
        let settled = watcher.answer(&question, AnswerWord::Once);
        let reply = calling.join().unwrap();
        let is_allowed = reply_text(&reply).contains("Edited");
        assert_eq!(settled.is_ok(), is_allowed, "{reply:?}");
        reply
    });
    assert!(reply.contains_key("result"));
}

#[test]
fn an_always_answer_on_the_page_adds_the_rule() {
    let setup = Setup::new();
    let mut server = setup.serve(&["--profile", "cautious"]);
    let watcher = setup.watch();
    watcher.client.visible(true).unwrap();
    initialize(&mut server, json!({}));
    call(&mut server, 1, "Bash", json!({"command": "touch made"}));
    let question = watcher.question();
    let rule = question.always.as_ref().unwrap().toml.clone();
    watcher.answer(&question, AnswerWord::Always).unwrap();
    server.receive();
    assert!(setup.path("ws/made").exists());
    let rules = std::fs::read_to_string(setup.path("config/toolcrib/rules.toml")).unwrap();
    assert!(rules.contains(&rule), "{rules}");
}

#[test]
fn commands_and_tools_do_not_reach_the_socket() {
    let setup = Setup::new();
    let mut server = setup.serve(&[]);
    let watcher = setup.watch();
    initialize(&mut server, json!({}));
    let socket = setup.sockets()[0].path.display().to_string();
    let python = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ntry:\n    s.connect('{socket}')\n    print('reached')\nexcept OSError as error:\n    print('refused', error.errno)\n"
    );
    let listing = format!("ls {}; echo listed", setup.path("runtime/toolcrib").display());
    let script = format!("python3 - <<'E'\n{python}E\n{listing}");
    call(&mut server, 1, "Bash", json!({"command": script}));
    let reply = server.receive();
    let text = reply_text(&reply);
    assert!(text.contains("refused") && !text.contains("reached"), "{text}");
    assert!(!text.contains(".sock\n"), "{text}");
    for tool in ["Read", "LS"] {
        let field = if tool == "Read" { "file_path" } else { "path" };
        let path = if tool == "Read" { socket.clone() } else { format!("{socket}/..") };
        call(&mut server, 2, tool, json!({ field: path }));
        let reply = server.receive();
        assert_eq!(reply["result"]["isError"], true, "{reply:?}");
        assert_eq!(reply["result"]["_meta"]["toolcrib/error"]["kind"], "protected", "{reply:?}");
    }
    assert!(watcher.client.hello().is_ok());
}

#[test]
fn a_socket_at_a_path_that_commands_can_see_is_refused_too() {
    // Without a runtime directory the socket is in the state directory, here inside the root.
    let setup = Setup::new();
    let top = setup.top.path().display().to_string();
    let mut variables = setup.variables();
    variables.retain(|(name, _)| *name != "XDG_RUNTIME_DIR");
    variables.push(("XDG_RUNTIME_DIR", PathBuf::new()));
    let mut server = McpTransport::start(PROGRAM, vec!["--root".to_owned(), top], &variables);
    let directory = setup.path("state/toolcrib/run");
    let socket = loop {
        if let Some(socket) = sockets(&directory).pop() {
            break socket;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    initialize(&mut server, json!({}));
    let python = format!(
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('{}'); print('reached')",
        socket.path.display()
    );
    let mut call_python = |id: u64, script: String| {
        call(&mut server, id, "Bash", json!({"command": script}));
        reply_text(&server.receive()).to_owned()
    };
    let text = call_python(1, format!("python3 -c \"{python}\""));
    assert!(text.contains("Error") && !text.contains("\nreached"), "{text}");
    let text = call_python(2, format!("rm -f {}; echo ended", socket.path.display()));
    assert!(socket.path.exists(), "{text}");
    let mode = |path: &Path| {
        std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o777
    };
    assert_eq!((mode(&directory), mode(&socket.path)), (0o700, 0o600));
}

#[test]
fn the_socket_can_be_turned_off() {
    let setup = Setup::new();
    let config = setup.path("config/toolcrib");
    let served = |server: &mut McpTransport| {
        initialize(server, json!({}));
        call(server, 1, "Read", json!({"file_path": "a.txt"}));
        assert!(reply_text(&server.receive()).contains("one"));
        assert!(setup.sockets().is_empty());
    };
    served(&mut setup.serve(&["--no-monitor"]));
    std::fs::create_dir(&config).unwrap();
    std::fs::write(config.join("config.toml"), "monitor = false\n").unwrap();
    served(&mut setup.serve(&[]));
}

#[test]
fn a_server_over_http_has_a_socket_until_it_is_killed() {
    let setup = Setup::new();
    let listen = format!("unix:{}", setup.path("http.sock").display());
    let mut server = setup.command(&["serve", "--http", &listen]);
    let mut server = server.stderr(Stdio::null()).spawn().unwrap();
    let watcher = setup.watch();
    let hello = watcher.client.hello().unwrap();
    assert_eq!((hello.program.as_str(), hello.pid), ("serve", server.id()));
    server.kill().unwrap();
    server.wait().unwrap();
    let [left] = setup.sockets().try_into().unwrap();
    // A child that was being started may hold the listener for a moment.
    let until = std::time::Instant::now() + LONG;
    while Client::connect(&left, |_| {}).is_ok() {
        assert!(std::time::Instant::now() < until, "the socket of an ended server listens");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(setup.sockets().is_empty(), "whoever finds the socket of an ended server removes it");
}

#[test]
fn watch_shows_a_server_that_was_started_without_a_runtime_directory() {
    let setup = Setup::new();
    let mut server = setup.command(&["serve"]);
    let server = server.env("XDG_RUNTIME_DIR", setup.path("none")).stdin(Stdio::piped());
    let mut server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = std::time::Instant::now() + LONG;
    while sockets(&setup.path("state/toolcrib/run")).is_empty() {
        assert!(std::time::Instant::now() < until, "there is no socket");
        std::thread::sleep(Duration::from_millis(10));
    }
    let once = setup.command(&["watch", "--once", "--text"]).output().unwrap();
    let shown = crate::text(&once.stdout);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(shown.starts_with("== serve"), "{shown}");
}

/// A process whose lines are read and written.
struct Lines {
    child: Child,
}

impl Lines {
    fn start(mut command: Command) -> Lines {
        Lines { child: command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap() }
    }

    fn send(&mut self, line: &str) {
        use std::io::Write as _;
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Reads until the output contains a text.
    fn until(&mut self, wanted: &str) -> String {
        use std::io::Read as _;
        let stdout = self.child.stdout.as_mut().unwrap();
        let (mut read, mut byte) = (Vec::new(), [0]);
        while !String::from_utf8_lossy(&read).contains(wanted) {
            let count = stdout.read(&mut byte).unwrap();
            assert_eq!(count, 1, "{wanted:?} is not in {:?}", String::from_utf8_lossy(&read));
            read.push(byte[0]);
        }
        String::from_utf8_lossy(&read).into_owned()
    }

    fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[test]
fn a_program_is_told_that_its_question_was_settled_elsewhere() {
    let setup = Setup::new();
    let mut run = Lines::start(setup.command(&["run", "--approvals", "--profile", "cautious"]));
    let watcher = setup.watch();
    run.send(r#"{"id": 7, "tool": "Write", "args": {"file_path": "b.txt", "content": "x"}}"#);
    run.until("\"approval\"");
    let question = watcher.question();
    watcher.answer(&question, AnswerWord::Once).unwrap();
    let rest = run.until("\"success\"");
    let settled = rest.lines().find(|line| line.contains("\"settled\"")).unwrap();
    let settled: Value = serde_json::from_str(settled).unwrap();
    assert_eq!(settled["settled"]["answer"], "once");
    assert_eq!(
        (&settled["settled"]["by"], &settled["settled"]["call_id"]),
        (&json!("page"), &json!(7))
    );
    run.send(r#"{"approve": "a1", "answer": "no"}"#);
    assert!(run.until("not_found").contains("approve"));
    run.end();
    assert_eq!(std::fs::read_to_string(setup.path("ws/b.txt")).unwrap(), "x");
}

/// Starts the program on a terminal, from script(1).
fn on_terminal(setup: &Setup, words: &str) -> Lines {
    let mut command = Command::new("script");
    command.args(["-qec", &format!("{PROGRAM} {words}"), "/dev/null"]);
    command.envs(setup.variables()).env("TERM", "dumb").current_dir(setup.path("ws"));
    Lines::start(command)
}

#[test]
fn a_question_at_the_terminal_ends_when_the_page_answers() {
    let setup = Setup::new();
    let edit = r#"call Edit '{"file_path": "a.txt", "old_string": "one", "new_string": "two"}'"#;
    let mut terminal = on_terminal(&setup, &format!("{edit} --profile cautious"));
    terminal.until("Allow?");
    let watcher = setup.watch();
    let [question] = watcher.state.waiting.as_slice() else { panic!("{:?}", watcher.state) };
    watcher.answer(question, AnswerWord::Once).unwrap();
    let shown = terminal.until("Edited a.txt");
    assert!(shown.contains("answered on the page: yes"), "{shown}");
    terminal.end();
    assert!(setup.sockets().is_empty());
}

#[test]
fn watch_shows_the_state_and_answers_questions() {
    let setup = Setup::new();
    let none = setup.command(&["watch", "--text"]).output().unwrap();
    assert_eq!(crate::text(&none.stdout), "No servers are running.\n");
    let mut server = setup.serve(&["--profile", "cautious"]);
    initialize(&mut server, json!({}));
    let mut watch = on_terminal(&setup, "watch");
    watch.until("== serve");
    let watcher = setup.watch();
    call(&mut server, 1, "Bash", json!({"command": "touch made\u{202e}"}));
    watcher.question();
    let once = setup.command(&["watch", "--once", "--text"]).output().unwrap();
    let shown = crate::text(&once.stdout);
    assert!(shown.contains("touch made\\u{202e}"), "{shown}");
    watch.until("Allow? y yes");
    // An answer within a second is taken as one to the question before.
    std::thread::sleep(Duration::from_secs(1));
    watch.send("n not now");
    assert!(reply_text(&server.receive()).contains("not now"));
    watch.until("answered in toolcrib watch: no");
    watch.send("q");
    watch.end();
}
