//! `toolcrib serve --shared`: several clients and one server process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_monitor::protocol::{AnswerWord, Answerer, Event};
use toolcrib_monitor::{GivenAnswer, Notice, sockets};

use crate::{PROGRAM, text};

/// The limit of every wait.
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
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(top.path().join("runtime"), private).unwrap();
        std::fs::write(top.path().join("ws/a.txt"), "one\n").unwrap();
        Setup { top }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// The directory with the sockets.
    fn run_directory(&self) -> PathBuf {
        self.path("runtime/toolcrib")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(words)
            .current_dir(self.path("ws"))
            .env("HOME", self.path("home"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_RUNTIME_DIR", self.path("runtime"))
            .env_remove("SHELL");
        command
    }

    fn client(&self, flags: &[&str]) -> Client {
        Client::start(self.command(&[&["serve", "--shared"], flags].concat()))
    }

    /// The processes of the running servers: each has a monitor socket.
    fn servers(&self) -> Vec<u32> {
        let id = |name: String| name.split_once('-').unwrap().0.parse().unwrap();
        let sockets = sockets(&self.run_directory());
        let live = sockets.into_iter().map(|socket| id(socket.server));
        live.filter(|process| is_running(*process)).collect()
    }

    /// The process of the only server.
    #[track_caller]
    fn server(&self) -> u32 {
        let servers = self.servers();
        let [server] = servers.as_slice() else { panic!("{servers:?}") };
        *server
    }

    /// The files of shared servers.
    fn shared_files(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.run_directory()) else { return Vec::new() };
        let files = entries.map(|entry| entry.unwrap().path());
        files.filter(|path| path.to_str().unwrap().contains(".shared")).collect()
    }

    fn socket(&self) -> PathBuf {
        let is_socket = |path: &PathBuf| path.extension().is_some_and(|end| end == "shared");
        self.shared_files().into_iter().find(is_socket).unwrap()
    }

    /// The commands of a server that `toolcrib jobs` lists.
    fn jobs(&self, server: u32) -> usize {
        let listed = self.command(&["jobs", "--json"]).output().unwrap();
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        listed.as_array().unwrap().iter().filter(|job| job["runtime"] == server).count()
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // No server outlives its directory. All clients have ended, unless the test has failed.
        if !std::thread::panicking() {
            wait_until("the servers end", || self.servers().is_empty());
        }
    }
}

/// A client over stdio.
struct Client {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    name: &'static str,
}

impl Client {
    fn start(mut command: Command) -> Client {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let stdin = process.stdin.take();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        Client { process, stdin, stdout, name: "test" }
    }

    fn send(&mut self, tool: &str, arguments: Value) {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
        });
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        writeln!(self.stdin.as_mut().unwrap(), "{call}").unwrap();
    }

    /// The text of a reply.
    fn receive(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let reply: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
        let content = reply["result"]["content"][0]["text"].as_str();
        content.unwrap_or_else(|| panic!("{reply}")).to_owned()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> String {
        self.send(tool, arguments);
        self.receive()
    }

    fn read(&mut self) -> String {
        self.call("Read", json!({"file_path": "a.txt"}))
    }

    /// Ends the input, or only waits if it has ended. Returns the exit code and the messages.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        self.wait()
    }

    fn wait(&mut self) -> (Option<i32>, String) {
        let code = self.process.wait().unwrap().code();
        let mut messages = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
        (code, messages)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process runs. One that has ended may not have been waited for.
fn is_running(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
    status.is_ok_and(|status| !status.rsplit_once(") ").unwrap().1.starts_with('Z'))
}

fn kill(process: u32) {
    let killed = Command::new("kill").args(["-KILL", &process.to_string()]).status().unwrap();
    assert!(killed.success());
}

#[test]
fn clients_share_one_process_and_have_sessions_of_their_own() {
    let setup = Setup::new();
    let mut first = setup.client(&[]);
    assert!(first.read().contains("one"));
    let server = setup.server();
    let mut second = setup.client(&[]);
    assert!(second.read().contains("one"));
    assert_eq!(setup.server(), server);
    assert_ne!(server, first.process.id());
    // A session sees the changes of the other.
    let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    assert!(second.call("Edit", edit).contains("Edited"));
    let noted = first.call("LS", json!({}));
    assert!(noted.contains("changed since this session saw it: a.txt"), "{noted}");
    // Each has its own jobs.
    let sleep = json!({"command": "sleep 1000", "run_in_background": true});
    first.call("Bash", sleep);
    // The login shell of the session may run for a moment, too.
    wait_until("only its job runs", || setup.jobs(server) == 1);
    assert!(first.call("ListShells", json!({})).contains("sleep 1000"));
    let others = second.call("ListShells", json!({}));
    assert!(!others.contains("sleep 1000"), "{others}");
    let log = setup.command(&["log"]).output().unwrap();
    assert!(text(&log.stdout).contains("Edit: a.txt"), "{log:?}");
    // A long message passes in both directions.
    let long = "0123456789abcdef\n".repeat(200_000);
    second.call("Write", json!({"file_path": "long.txt", "content": long}));
    assert_eq!(std::fs::read_to_string(setup.path("ws/long.txt")).unwrap(), long);
    let (code, messages) = first.end();
    assert_eq!((code, messages.as_str()), (Some(0), ""));
    wait_until("the job of the session ends", || setup.jobs(server) == 0);
    assert!(second.read().contains("two"));
    assert_eq!(second.end().0, Some(0));
    wait_until("the server ends", || !is_running(server));
    wait_until("its files are removed", || setup.shared_files().is_empty());
    // The next client starts a new one.
    let mut third = setup.client(&[]);
    assert!(third.read().contains("two"));
    assert_ne!(setup.server(), server);
}

#[test]
fn a_question_names_the_client_that_made_the_call() {
    let setup = Setup::new();
    let [mut first, mut second] = ["first", "second"].map(|name| {
        let mut client = setup.client(&["--profile", "cautious"]);
        client.name = name;
        client
    });
    let (sender, notices) = std::sync::mpsc::channel();
    first.call("ListShells", json!({}));
    // The last name that the server learns.
    second.call("ListShells", json!({}));
    let socket = sockets(&setup.run_directory()).pop().unwrap();
    let viewer = toolcrib_monitor::Client::connect(&socket, move |notice| {
        let _ = sender.send(notice);
    });
    let viewer = viewer.unwrap();
    viewer.subscribe(None).unwrap();
    viewer.visible(true).unwrap();
    first.send("Write", json!({"file_path": "b.txt", "content": "b"}));
    let question = loop {
        let notice = notices.recv_timeout(LONG).unwrap();
        if let Notice::Event { event: Event::QuestionOpened(question), .. } = notice {
            break question;
        }
    };
    assert_eq!(question.client.as_deref(), Some("first 1"));
    let answer = GivenAnswer {
        question: question.id.clone(),
        digest: question.digest.clone(),
        answer: AnswerWord::Once,
        minutes: None,
        message: None,
        by: Answerer::Watch,
    };
    viewer.answer(answer).unwrap();
    first.receive();
    assert!(setup.path("ws/b.txt").exists());
}

#[test]
fn clients_with_other_settings_do_not_join() {
    let setup = Setup::new();
    let (mut usual, mut reader) = (setup.client(&[]), setup.client(&["--profile", "read-only"]));
    let denied = reader.call("Write", json!({"file_path": "b.txt", "content": "b"}));
    assert!(!setup.path("ws/b.txt").exists(), "{denied}");
    assert!(usual.read().contains("one"));
    let written = usual.call("Write", json!({"file_path": "b.txt", "content": "b"}));
    assert!(setup.path("ws/b.txt").exists(), "{written}");
    assert_eq!(setup.servers().len(), 2);
    // The server reads changed rules again, for all clients.
    let rule = "[[rule]]\ndecision = \"deny\"\nkind = \"read\"\npaths = [\"a.txt\"]\n";
    std::fs::create_dir_all(setup.path("config/toolcrib")).unwrap();
    std::fs::write(setup.path("config/toolcrib/rules.toml"), rule).unwrap();
    let mut later = setup.client(&[]);
    wait_until("the rule applies", || later.read().contains("a rule denies it"));
    assert!(usual.read().contains("a rule denies it"));
    std::fs::write(setup.path("config/toolcrib/new.toml"), "").unwrap();
    let (new, rules) = ("config/toolcrib/new.toml", "config/toolcrib/rules.toml");
    std::fs::rename(setup.path(new), setup.path(rules)).unwrap();
    wait_until("the rule is gone", || usual.read().contains("one"));
    // An invalid file is an error at the start of a client, also if a server runs.
    std::fs::write(setup.path(rules), "[[rule]]\ndecision = \"maybe\"\n").unwrap();
    let (code, messages) = setup.client(&[]).end();
    assert!(code == Some(2) && messages.contains("maybe"), "{code:?}: {messages}");
    std::fs::write(setup.path(rules), "# none\n").unwrap();
    assert_eq!(setup.servers().len(), 2);
    // Commands get its variables.
    let mut command = setup.command(&["serve", "--shared"]);
    command.env("SOME_SETTING", "other");
    let mut other = Client::start(command);
    let echoed = other.call("Bash", json!({"command": "echo \"[$SOME_SETTING]\""}));
    assert!(echoed.contains("[other]"), "{echoed}");
    assert_eq!(setup.servers().len(), 3);
    // The terminal of a client makes no difference, and no other client gets it.
    let mut command = setup.command(&["serve", "--shared"]);
    command.env("TERM_PROGRAM", "unusual");
    let mut same = Client::start(command);
    let echoed = same.call("Bash", json!({"command": "echo \"[$SOME_SETTING$TERM_PROGRAM]\""}));
    assert!(echoed.contains("[]"), "{echoed}");
    assert_eq!(setup.servers().len(), 3);
}

#[test]
fn clients_that_start_at_once_start_one_server() {
    let setup = Setup::new();
    let mut clients: Vec<Client> = (0..8).map(|_| setup.client(&[])).collect();
    for client in &mut clients {
        assert!(client.read().contains("one"));
    }
    setup.server();
    for client in clients {
        assert_eq!(client.end(), (Some(0), String::new()));
    }
}

#[test]
fn a_killed_server_ends_its_clients_and_is_replaced() {
    let setup = Setup::new();
    let mut clients = [setup.client(&[]), setup.client(&[])];
    for client in &mut clients {
        assert!(client.read().contains("one"));
    }
    let server = setup.server();
    kill(server);
    for client in &mut clients {
        let (code, messages) = client.wait();
        assert_eq!(code, Some(1), "{messages}");
        let expected = format!("the shared server (process {server}) has closed the connection");
        assert!(messages.contains(&expected), "{messages}");
    }
    let stale = setup.socket();
    // A process that the server was starting has the socket until its program runs.
    wait_until("the socket is closed", || UnixStream::connect(&stale).is_err());
    let mut next = setup.client(&[]);
    assert!(next.read().contains("one"));
    assert_ne!(setup.server(), server);
    assert_eq!(setup.socket(), stale);
}

#[test]
fn a_killed_client_ends_only_its_own_session() {
    let setup = Setup::new();
    let mut first = setup.client(&[]);
    first.read();
    let server = setup.server();
    let mut second = setup.client(&[]);
    second.read();
    first.send("Bash", json!({"command": "sleep 1000"}));
    wait_until("the command starts", || setup.jobs(server) == 1);
    // The first client has started the server.
    kill(first.process.id());
    wait_until("the command ends", || setup.jobs(server) == 0);
    assert!(second.read().contains("one"));
    assert_eq!(setup.server(), server);
}

#[test]
fn the_error_of_a_server_that_does_not_start_is_shown() {
    let setup = Setup::new();
    std::fs::write(setup.path("file"), "").unwrap();
    let state = setup.path("file").display().to_string();
    let output = |words: &[&str]| {
        let mut command = setup.command(words);
        command.args(["--state", &state]).stdin(Stdio::null()).output().unwrap()
    };
    let (alone, shared) = (output(&["serve"]), output(&["serve", "--shared"]));
    assert!(text(&alone.stderr).starts_with("error: "), "{alone:?}");
    assert_eq!(text(&shared.stderr), text(&alone.stderr));
    assert_eq!((shared.status.code(), alone.status.code()), (Some(2), Some(2)));
    assert!(shared.stdout.is_empty());
    assert!(setup.shared_files().is_empty());
    let both = output(&["serve", "--shared", "--http", "0"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(text(&both.stderr).contains("cannot be used with"), "{both:?}");
}

/// Connects to a socket, and prints the first line that the other end writes.
const CONNECT: &str = "import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
print(s.makefile().readline())";

#[test]
fn a_confined_command_cannot_connect() {
    let setup = Setup::new();
    let mut client = setup.client(&[]);
    client.read();
    let socket = setup.socket();
    let private = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((private(&setup.run_directory()), private(&socket)), (0o700, 0o600));
    let connect =
        |socket: &Path| Command::new("python3").args(["-c", CONNECT]).arg(socket).output().unwrap();
    let outside = connect(&socket);
    assert!(text(&outside.stdout).contains("welcome"), "{outside:?}");
    std::fs::write(setup.path("ws/connect.py"), CONNECT).unwrap();
    let command = format!(
        "python3 connect.py {}; ls -A {}",
        socket.display(),
        setup.run_directory().display()
    );
    let inside = client.call("Bash", json!({"command": command}));
    assert!(inside.contains("Error"), "{inside}");
    assert!(!inside.contains("welcome") && !inside.contains(".shared\n"), "{inside}");
    // The name of a socket in the workspace gives no access either.
    std::fs::hard_link(&socket, setup.path("ws/link")).unwrap();
    assert!(text(&connect(&setup.path("ws/link")).stdout).contains("welcome"));
    let inside = client.call("Bash", json!({"command": "python3 connect.py link"}));
    assert!(inside.contains("Error") && !inside.contains("welcome"), "{inside}");
}
