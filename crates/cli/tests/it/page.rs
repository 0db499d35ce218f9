//! `toolcrib page`: its API with real logs and servers.

mod api;
mod attacks;
mod changes;
mod live;
mod rules;
mod timeline;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{PROGRAM, text};

/// A user with a workspace, logs and sockets of their own.
pub(crate) struct User {
    directory: tempfile::TempDir,
}

impl User {
    fn new() -> User {
        let directory = crate::command_directory();
        for name in ["ws", "run", "state", "config"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(directory.path().join("run"), private).unwrap();
        User { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn workspace(&self) -> PathBuf {
        self.path("ws").canonicalize().unwrap()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(words)
            .current_dir(self.path("ws"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Makes a call, and returns its reply.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let output = self.run(&["call", tool, &arguments.to_string(), "--json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn write(&self, file: &str, content: &str) {
        std::fs::write(self.path("ws").join(file), content).unwrap();
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path("ws").join(file)).unwrap()
    }
}

/// A running page.
pub(crate) struct RunningPage {
    child: Child,
    port: u16,
    ticket: String,
    token: String,
}

impl RunningPage {
    fn start(user: &User) -> RunningPage {
        let mut page = RunningPage::start_without_token(user);
        let answer = page.sign_in(&page.ticket);
        page.token = answer.json()["token"].as_str().unwrap().to_owned();
        page
    }

    fn start_without_token(user: &User) -> RunningPage {
        let mut child = user.command(&["page", "--print"]).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (port, ticket) = parse_address(&line);
        RunningPage { child, port, ticket, token: String::new() }
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn origin(&self) -> String {
        format!("http://{}", self.host())
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.host()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
        stream
    }

    /// Sends a raw request, and reads until the server closes the connection.
    fn exchange(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses a request without reading it may reset the connection.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[], &body.to_string())
    }

    fn sign_in(&self, ticket: &str) -> Answer {
        self.post("/api/session", &json!({"ticket": ticket}))
    }

    /// Sends a request with the right headers, some of them replaced or left out.
    fn send(
        &self,
        method: &str,
        path: &str,
        replaced: &[(&str, Option<&str>)],
        body: &str,
    ) -> Answer {
        let (host, origin, bearer) = (self.host(), self.origin(), format!("Bearer {}", self.token));
        let length = body.len().to_string();
        let mut headers = vec![
            ("Host", Some(host.as_str())),
            ("Origin", Some(origin.as_str()).filter(|_| method != "GET")),
            ("Authorization", Some(bearer.as_str())),
            ("Content-Type", Some("application/json").filter(|_| method != "GET")),
            ("Content-Length", Some(length.as_str()).filter(|_| method != "GET")),
            ("Connection", Some("close")),
        ];
        for &(name, value) in replaced {
            headers.retain(|(other, _)| *other != name);
            headers.push((name, value));
        }
        let lines: String = headers
            .iter()
            .filter_map(|(name, value)| value.map(|value| format!("{name}: {value}\r\n")))
            .collect();
        self.exchange(format!("{method} {path} HTTP/1.1\r\n{lines}\r\n{body}").as_bytes())
    }
}

impl Drop for RunningPage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn parse_address(line: &str) -> (u16, String) {
    let rest = line.trim().strip_prefix("http://127.0.0.1:").unwrap();
    let (port, ticket) = rest.split_once("/#").unwrap();
    (port.parse().unwrap(), ticket.to_owned())
}

/// A response, as text.
pub(crate) struct Answer(String);

impl Answer {
    /// 0 if there was no response.
    fn status(&self) -> u16 {
        self.0.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    fn head(&self) -> &str {
        self.0.split("\r\n\r\n").next().unwrap()
    }

    fn body(&self) -> &str {
        self.0.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }

    fn json(&self) -> Value {
        serde_json::from_str(self.body()).unwrap_or_else(|_| panic!("{}", self.0))
    }
}

#[test]
fn a_second_start_prints_a_new_address_of_the_first() {
    let user = User::new();
    let first = RunningPage::start(&user);
    let second = user.run(&["page", "--print"]);
    assert!(second.status.success());
    let (port, ticket) = parse_address(text(&second.stdout));
    assert_eq!(port, first.port);
    assert!(ticket != first.ticket && !ticket.starts_with('/'));
    assert_eq!(first.sign_in(&ticket).status(), 200);
    // After a crash, the lock is free and the socket is replaced.
    drop(first);
    let third = RunningPage::start(&user);
    assert_eq!(third.get("/api/workspaces").status(), 200);
}

#[test]
fn only_the_user_can_access_the_files_of_the_page() {
    let user = User::new();
    let _page = RunningPage::start(&user);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&user.path("run/toolcrib")), 0o700);
    assert_eq!(mode(&user.path("run/toolcrib/page.lock")), 0o600);
    assert_eq!(mode(&user.path("run/toolcrib/page.control")), 0o600);
}
