//! Sessions over HTTP: one for each client, with an end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Server, post, read_call, right_headers, status};

/// A client on one open connection.
pub(crate) struct Client<'a> {
    server: &'a Server,
    path: String,
    stream: BufReader<TcpStream>,
    /// The header of its protocol session or of a shared session.
    pub(crate) headers: Vec<(&'static str, String)>,
    version: Option<&'static str>,
}

impl<'a> Client<'a> {
    /// A client of the protocol version without sessions.
    fn modern(server: &'a Server) -> Self {
        Client::modern_at(server, "/mcp")
    }

    pub(crate) fn modern_at(server: &'a Server, path: &str) -> Self {
        let (stream, path) = (BufReader::new(server.connect()), path.to_owned());
        Client { server, path, stream, headers: Vec::new(), version: Some("2026-07-28") }
    }

    /// The same connection, for another path.
    pub(crate) fn moved_to(self, path: &str) -> Self {
        Client { path: path.to_owned(), ..self }
    }

    /// The same client on a new connection. A refusal ends the old one.
    pub(crate) fn reconnected(self) -> Self {
        Client { stream: BufReader::new(self.server.connect()), ..self }
    }

    /// A client that starts a session.
    fn with_session(server: &'a Server) -> Self {
        Client::with_session_at(server, "/mcp")
    }

    pub(crate) fn with_session_at(server: &'a Server, path: &str) -> Self {
        let mut client = Client { version: None, ..Client::modern_at(server, path) };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let begun = client.send("POST", &message("initialize", params));
        let id = begun.split("mcp-session-id: ").nth(1).unwrap().split('\r').next().unwrap();
        client.headers.push(("Mcp-Session-Id", id.to_owned()));
        client.send("POST", &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub(crate) fn named(mut self, name: &str) -> Self {
        self.headers.push(("Toolcrib-Session", name.to_owned()));
        self
    }

    /// Sends a message and reads the whole response.
    pub(crate) fn send(&mut self, method: &str, message: &Value) -> String {
        let bearer = self.server.bearer();
        let mut headers = right_headers("localhost", &bearer);
        headers.retain(|(name, _)| !name.starts_with("M") && *name != "Connection");
        if let Some(version) = self.version {
            headers.push(("MCP-Protocol-Version", Some(version)));
            headers.push(("Mcp-Method", message["method"].as_str()));
            headers.push(("Mcp-Name", message["params"]["name"].as_str()));
        }
        headers.extend(self.headers.iter().map(|(name, value)| (*name, Some(value.as_str()))));
        let request = post(&self.path, &headers, message).replacen("POST", method, 1);
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        self.answer()
    }

    fn answer(&mut self) -> String {
        let (mut head, mut length) = (String::new(), None);
        while !head.ends_with("\r\n\r\n") {
            let before = head.len();
            assert!(self.stream.read_line(&mut head).unwrap() > 0, "{head}");
            let line = head[before..].to_ascii_lowercase();
            length =
                line.strip_prefix("content-length: ").map(|n| n.trim().parse().unwrap()).or(length);
        }
        let mut body = vec![0; length.unwrap_or(0)];
        self.stream.read_exact(&mut body).unwrap();
        while length.is_none() && !head.starts_with("HTTP/1.1 202") {
            let mut size = String::new();
            self.stream.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).unwrap();
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                break;
            }
        }
        head + &String::from_utf8(body).unwrap()
    }

    /// The text of a call's reply.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> String {
        let mut params = json!({"name": tool, "arguments": arguments});
        if self.version.is_some() {
            params["_meta"] = read_call("")["params"]["_meta"].clone();
        }
        let answer = self.send("POST", &message("tools/call", params));
        let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
        let found = data.filter_map(|data| serde_json::from_str::<Value>(data).ok()).next_back();
        let found = found.unwrap_or_else(|| panic!("{answer}"));
        found["result"]["content"][0]["text"].as_str().unwrap_or(&answer).to_owned()
    }

    pub(crate) fn bash(&mut self, command: &str) -> String {
        self.call("Bash", json!({"command": command}))
    }
}

pub(crate) fn message(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn server() -> Server {
    let server = Server::start("localhost:0", &["--profile", "open"]);
    std::fs::create_dir(server.directory.path().join("ws/sub")).unwrap();
    server
}

/// Changes the shell state of a session.
const MOVE: &str = "cd sub && export MARK=marked";
const SHOW: &str = "echo \"$(basename \"$PWD\") $MARK\"";
const WRITE: &str = "a.txt";

#[test]
fn two_clients_have_two_sessions() {
    let server = server();
    for client in [Client::modern, Client::with_session] {
        let (mut one, mut two) = (client(&server), client(&server));
        one.bash(MOVE);
        assert!(one.bash(SHOW).contains("sub marked"));
        let other = two.bash(SHOW);
        assert!(other.contains("ws") && !other.contains("marked"), "{other}");
        // Each session has its own set of read files.
        let file = json!({"file_path": server.directory.path().join("ws").join(WRITE)});
        one.call("Read", file.clone());
        let mut write = file;
        write["content"] = "new\n".into();
        let refused = two.call("Write", write.clone());
        assert!(refused.contains("read"), "{refused}");
        assert!(one.call("Write", write).contains("a.txt"));
        let started = json!({"command": "sleep 60", "run_in_background": true});
        let started = one.call("Bash", started);
        let id = started.split_whitespace().find(|word| word.starts_with("sh_")).unwrap();
        let id = id.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        assert!(one.call("ListShells", json!({})).contains(id));
        assert!(!two.call("ListShells", json!({})).contains(id));
    }
}

#[test]
fn clients_that_name_a_session_share_it() {
    let server = server();
    let mut one = Client::modern(&server).named("work");
    let mut two = Client::with_session(&server).named("work");
    one.bash(MOVE);
    assert!(two.bash(SHOW).contains("sub marked"));
    // Also on another connection, after the first one was closed.
    drop(one);
    assert!(Client::modern(&server).named("work").bash(SHOW).contains("sub marked"));
    assert!(!Client::modern(&server).named("other").bash(SHOW).contains("marked"));
}

#[test]
fn the_commands_of_a_session_end_with_it() {
    let server = server();
    let beat = server.directory.path().join("ws/beat");
    let command = "while :; do date +%s%N > beat; sleep 0.05; done";
    let in_background = json!({"command": command, "run_in_background": true});
    let begin = |client: &mut Client<'_>| {
        client.call("Bash", in_background.clone());
        while !std::fs::read(&beat).is_ok_and(|beat| !beat.is_empty()) {
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let wait_for_the_end = || {
        for _ in 0..120 {
            let before = std::fs::read(&beat).unwrap();
            std::thread::sleep(Duration::from_millis(500));
            if std::fs::read(&beat).unwrap() == before {
                return std::fs::remove_file(&beat).unwrap();
            }
        }
        panic!("the command of a session that has ended still runs");
    };
    let mut closed = Client::with_session(&server);
    begin(&mut closed);
    assert_eq!(status(&closed.send("DELETE", &json!({}))), "202");
    wait_for_the_end();
    let mut gone = Client::modern(&server);
    begin(&mut gone);
    drop(gone);
    wait_for_the_end();
    // A call that waits for its command also ends.
    let mut waiting = Client::with_session(&server);
    let mut other =
        Client { headers: waiting.headers.clone(), version: None, ..Client::modern(&server) };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let params = json!({"name": "Bash", "arguments": {"command": command}});
            waiting.send("POST", &message("tools/call", params))
        });
        while !std::fs::read(&beat).is_ok_and(|beat| !beat.is_empty()) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(status(&other.send("DELETE", &json!({}))), "202");
        wait_for_the_end();
    });
}

#[test]
fn unclosed_sessions_take_bounded_memory() {
    let server = server();
    let memory = || {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let first = Client::with_session(&server);
    let mut recent = Client::with_session(&server);
    let mut begin = Client { version: None, ..Client::modern(&server) };
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let mut measured = 0;
    for number in 0..2_000 {
        assert_eq!(status(&begin.send("POST", &message("initialize", params.clone()))), "200");
        if number % 50 == 0 {
            assert!(recent.bash("echo still here").contains("still here"));
        }
        if number == 200 {
            measured = memory();
        }
    }
    // Each takes about 50 kB while it exists.
    let grown = memory().saturating_sub(measured);
    assert!(grown < 40_000, "{grown} kB for 1,800 sessions");
    let mut first = first;
    let answer = first.send("POST", &message("tools/list", json!({})));
    assert_eq!(status(&answer), "404", "the oldest idle session made room: {answer}");
}
