//! `toolcrib serve --http`: accepted and refused requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{PROGRAM, isolated_home, text, toolcrib};

pub(crate) struct Server {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) child: Child,
    /// Its first line on stderr.
    said: String,
    pub(crate) token: String,
}

impl Server {
    pub(crate) fn start(address: &str, flags: &[&str]) -> Server {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("ws")).unwrap();
        std::fs::write(directory.path().join("ws/a.txt"), "one\n").unwrap();
        let words = ["serve", "--root", "ws", "--state", "state", "--http", address];
        Server::run(directory, &[&words, flags].concat())
    }

    /// Starts a server with these words in a directory.
    pub(crate) fn run(directory: tempfile::TempDir, words: &[&str]) -> Server {
        let (child, said) = serve(directory.path(), words);
        let file = said.split("the token is in ").nth(1).map(str::trim);
        let token = file.map(|file| std::fs::read_to_string(file).unwrap().trim().to_owned());
        Server { directory, child, said, token: token.unwrap_or_default() }
    }

    /// Its first line on stderr.
    pub(crate) fn said(&self) -> &str {
        &self.said
    }

    pub(crate) fn port(&self) -> &str {
        let rest = self.said.split("http://127.0.0.1:").nth(1).unwrap();
        rest.split('/').next().unwrap()
    }

    /// Sends a raw request. Reads the head of the response, and the part of the body that comes at once.
    pub(crate) fn ask(&self, request: &str) -> String {
        exchange(self.connect(), request)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(format!("127.0.0.1:{}", self.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
        stream
    }

    /// Sends a POST request for a call that reads the file, with some headers replaced.
    pub(crate) fn post(&self, replaced: &[(&str, Option<&str>)]) -> String {
        self.ask(&self.request("/mcp", replaced))
    }

    pub(crate) fn request(&self, path: &str, replaced: &[(&str, Option<&str>)]) -> String {
        let (host, bearer) = (format!("localhost:{}", self.port()), self.bearer());
        let mut headers = right_headers(&host, &bearer);
        for &(name, value) in replaced {
            headers.retain(|(other, _)| *other != name);
            headers.push((name, value));
        }
        post(path, &headers, &read_call("a.txt"))
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(top: &Path, words: &[&str]) -> (Child, String) {
    let mut child = Command::new(PROGRAM)
        .args(words)
        .current_dir(top)
        .envs(isolated_home())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    (child, said)
}

pub(crate) fn read_call(file: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "Read",
            "arguments": {"file_path": file},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    })
}

pub(crate) fn right_headers<'a>(host: &'a str, bearer: &'a str) -> Vec<(&'a str, Option<&'a str>)> {
    vec![
        ("Host", Some(host)),
        ("Authorization", Some(bearer)),
        ("Content-Type", Some("application/json")),
        ("Accept", Some("application/json, text/event-stream")),
        ("MCP-Protocol-Version", Some("2026-07-28")),
        ("Mcp-Method", Some("tools/call")),
        ("Mcp-Name", Some("Read")),
        ("Connection", Some("close")),
    ]
}

pub(crate) fn post(path: &str, headers: &[(&str, Option<&str>)], body: &Value) -> String {
    post_text(path, headers, &body.to_string())
}

fn post_text(path: &str, headers: &[(&str, Option<&str>)], body: &str) -> String {
    let mut request = format!("POST {path} HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        if let Some(value) = value {
            request += &format!("{name}: {value}\r\n");
        }
    }
    request + "\r\n" + body
}

fn exchange(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A server that refuses a request without reading it may reset the connection. The response before that counts.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

pub(crate) fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or(answer)
}

#[test]
fn requests_with_the_token_are_served() {
    let server = Server::start("localhost:0", &[]);
    let answer = server.post(&[]);
    assert_eq!(status(&answer), "200", "{answer}");
    assert!(answer.contains(r#""text":"     1\tone\n""#), "{answer}");
    let own = format!("http://127.0.0.1:{}", server.port());
    assert_eq!(status(&server.post(&[("Origin", Some(&own))])), "200");
    assert_eq!(status(&server.post(&[("Sec-Fetch-Site", Some("same-origin"))])), "200");
}

#[test]
fn requests_through_a_named_proxy_are_served() {
    let server = Server::start(
        "localhost:0",
        &["--allow-host", "127.0.0.1:4711", "--allow-host", "tools.example"],
    );
    for (expected, host) in [
        ("200", "127.0.0.1:4711"),
        ("200", "tools.example"),
        ("200", "tools.example:443"),
        ("403", "127.0.0.1:4712"),
        ("403", "tools.example:4711"),
    ] {
        assert_eq!(status(&server.post(&[("Host", Some(host))])), expected, "{host}");
    }
    let directory = tempfile::tempdir().unwrap();
    let words = ["serve", "--http", "0", "--state", "state", "--allow-host", "https://x"];
    let output = toolcrib(directory.path(), &words, b"");
    assert!(text(&output.stderr).contains("`https://x` is not a host name"), "{output:?}");
}

#[test]
fn other_requests_are_refused_before_a_tool_runs() {
    let server = Server::start("localhost:0", &[]);
    let cut = server.bearer().len() - 1;
    let short = server.bearer()[..cut].to_owned();
    let basic = format!("Basic {}", server.token);
    for (expected, name, value) in [
        ("401", "Authorization", None),
        ("401", "Authorization", Some("")),
        ("401", "Authorization", Some("Bearer")),
        ("401", "Authorization", Some(short.as_str())),
        ("401", "Authorization", Some(basic.as_str())),
        ("403", "Origin", Some("https://evil.example")),
        ("403", "Origin", Some("null")),
        ("403", "Origin", Some("http://localhost.evil.example")),
        ("403", "Origin", Some("http://127.0.0.1:80.evil.example")),
        ("403", "Origin", Some("http://localhost:1")),
        ("403", "Host", Some("evil.example")),
        ("403", "Host", Some("localhost.evil.example")),
        ("403", "Host", Some("127.0.0.1:1")),
        ("403", "Host", Some("")),
        ("400", "Host", None),
        ("403", "Sec-Fetch-Site", Some("cross-site")),
        ("403", "Sec-Fetch-Site", Some("same-site")),
        ("400", "Toolcrib-Session", Some("not a name")),
        ("415", "Content-Type", Some("text/plain")),
        ("415", "Content-Type", Some("application/x-www-form-urlencoded")),
        ("415", "Content-Type", None),
    ] {
        let answer = server.post(&[(name, value)]);
        assert_eq!(status(&answer), expected, "{name}: {value:?}: {answer}");
        assert!(!answer.contains("one") && !answer.contains(&server.token), "{answer}");
    }
    let in_the_address = format!("/mcp?token={}", server.token);
    let answer = server.ask(&server.request(&in_the_address, &[("Authorization", None)]));
    assert_eq!(status(&answer), "401");
    assert_eq!(status(&server.ask(&server.request("/", &[]))), "404");
}

#[test]
fn ambiguous_requests_are_refused() {
    let server = Server::start("localhost:0", &[]);
    let own = format!("http://localhost:{}", server.port());
    let right = server.request("/mcp", &[("Origin", Some(&own))]);
    assert_eq!(status(&server.ask(&right)), "200");
    let with = |line: &str| right.replacen("\r\n", &format!("\r\n{line}\r\n"), 1);
    for line in [
        "Host: evil.example",
        "Host: localhost",
        "Origin: https://evil.example",
        "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site",
        "Content-Type: text/plain",
        "Toolcrib-Session: a\r\nToolcrib-Session: b",
    ] {
        let answer = server.ask(&with(line));
        assert_eq!(status(&answer), "400", "{line}: {answer}");
    }
    let absolute = right.replacen("POST /mcp", "POST http://evil.example/mcp", 1);
    assert_eq!(status(&server.ask(&absolute)), "400");
    let own_absolute = right.replacen("POST /mcp", &format!("POST {own}/mcp"), 1);
    assert_eq!(status(&server.ask(&own_absolute)), "400");
    assert_eq!(status(&server.ask(&right.replacen("\r\nHost", "\nHost", 1))), "400");
    assert_eq!(status(&server.ask(&right.replacen("\r\n\r\n", "\r\n\n", 1))), "400");
    let mut headers = right.lines().filter(|line| !line.starts_with("Content-Length"));
    let head: String =
        headers.by_ref().take_while(|line| !line.is_empty()).map(|l| format!("{l}\r\n")).collect();
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    let body = read_call("a.txt").to_string();
    let whole = format!("{chunked}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    assert_eq!(status(&server.ask(&whole)), "200");
    let bad = server.ask(&format!("{chunked}zz\r\n{body}\r\n0\r\n\r\n"));
    assert_eq!(status(&bad), "400", "{bad}");
}

/// Neither requests without the token nor incomplete requests block other connections.
#[test]
fn connections_without_the_token_do_not_block_others() {
    let server = Server::start("localhost:0", &[]);
    let over = AtomicBool::new(false);
    let half = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ";
    let whole = "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n";
    std::thread::scope(|scope| {
        for (connections, sent) in [(80, whole), (80, whole), (100, half), (100, half)] {
            let (server, over) = (&server, &over);
            scope.spawn(move || {
                let mut open: Vec<TcpStream> = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    open.resize_with(connections, || server.connect());
                    // Connections that the server has closed are opened again.
                    open.retain_mut(|stream| {
                        let _ = stream.set_nonblocking(true);
                        let sent = stream.write_all(sent.as_bytes()).is_ok();
                        sent && !matches!(stream.read(&mut [0; 4096]), Ok(0))
                    });
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
        let answers: Vec<String> = (0..20).map(|_| server.post(&[])).collect();
        over.store(true, Ordering::Relaxed);
        for answer in answers {
            assert_eq!(status(&answer), "200", "{answer}");
        }
    });
}

#[test]
fn a_refusal_ends_its_connection() {
    let server = Server::start("localhost:0", &[]);
    // Without `Connection: close`: the server ends the connection.
    let answer = server.ask("GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(status(&answer), "401");
    let answer = server.ask(&server.request("/", &[("Connection", None)]));
    assert_eq!(status(&answer), "404");
}

/// The protocol's own suite tests this only in a server with test tools.
#[test]
fn unsupported_methods_are_not_found() {
    let server = Server::start("localhost:0", &[]);
    let (host, bearer) = (format!("localhost:{}", server.port()), server.bearer());
    for method in [
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "completion/complete",
        "subscriptions/listen",
        "tasks/get",
        "logging/setLevel",
        "no/such/method",
    ] {
        let mut headers = right_headers(&host, &bearer);
        headers.retain(|(name, _)| !["Mcp-Method", "Mcp-Name"].contains(name));
        headers.extend([("Mcp-Method", Some(method)), ("Mcp-Name", Some("x"))]);
        let mut call = read_call("a.txt");
        call["method"] = method.into();
        let params = call["params"].as_object_mut().unwrap();
        params.retain(|name, _| name == "_meta");
        for name in ["name", "uri", "taskId"] {
            params.insert(name.to_owned(), "x".into());
        }
        params.insert("level".to_owned(), "info".into());
        params.insert("notifications".to_owned(), json!({"toolsListChanged": true}));
        params.insert("ref".to_owned(), json!({"type": "ref/prompt", "name": "x"}));
        params.insert("argument".to_owned(), json!({"name": "x", "value": "x"}));
        let answer = server.ask(&post("/mcp", &headers, &call));
        assert_eq!(status(&answer), "404", "{method}: {answer}");
        assert!(answer.contains(r#""code":-32601"#), "{method}: {answer}");
    }
}

#[test]
fn a_preflight_request_is_refused() {
    let server = Server::start("localhost:0", &[]);
    let port = server.port();
    let answer = server.ask(&format!(
        "OPTIONS /mcp HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: https://evil.example\r\n\
         Access-Control-Request-Method: POST\r\nConnection: close\r\n\r\n"
    ));
    assert_eq!(status(&answer), "401");
    assert!(!answer.to_ascii_lowercase().contains("access-control-allow"), "{answer}");
}

#[test]
fn a_body_that_is_no_message_gets_an_error_of_json_rpc() {
    let server = Server::start("localhost:0", &[]);
    let bearer = server.bearer();
    let mut headers = right_headers("localhost", &bearer);
    headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("mcp-"));
    for (body, code, says) in [
        ("{", "-32700", "not valid JSON"),
        ("", "-32700", "not valid JSON"),
        ("5", "-32600", "not a message of MCP"),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "-32600", "Batches are not supported"),
    ] {
        let answer = server.ask(&post_text("/mcp", &headers, body));
        assert_eq!(status(&answer), "400", "{body}: {answer}");
        assert!(answer.contains(code) && answer.contains(says), "{body}: {answer}");
    }
}

#[test]
fn an_unknown_session_is_not_found() {
    let server = Server::start("localhost:0", &[]);
    let bearer = server.bearer();
    let mut headers = right_headers("localhost", &bearer);
    headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("mcp-"));
    headers.push(("Mcp-Session-Id", Some("guessed")));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(status(&server.ask(&post("/mcp", &headers, &list))), "404");
}

#[test]
fn an_endless_head_is_refused() {
    let server = Server::start("localhost:0", &[]);
    let head = format!("POST /mcp HTTP/1.1\r\nX: {}", "x".repeat(1 << 20));
    assert_eq!(status(&server.ask(&head)), "431");
    assert_eq!(status(&server.post(&[])), "200", "the next is served");
}

#[test]
fn no_tool_shows_the_token() {
    let server = Server::start("localhost:0", &["--token-file", "ws/token"]);
    let body = read_call("token");
    let bearer = server.bearer();
    let answer = server.ask(&post("/mcp", &right_headers("localhost", &bearer), &body));
    assert!(answer.contains(r#""isError":true"#), "{answer}");
    assert!(!answer.contains(&server.token), "{answer}");
}

#[test]
fn a_unix_socket_is_served() {
    let server = Server::start("unix:socket", &[]);
    let path = server.directory.path().join("socket");
    let bearer = server.bearer();
    for (token, expected) in [(bearer.as_str(), "200"), ("Bearer x", "401")] {
        let request = post("/mcp", &right_headers("localhost", token), &read_call("a.txt"));
        let answer = exchange(UnixStream::connect(&path).unwrap(), &request);
        assert_eq!(status(&answer), expected, "{answer}");
    }
}

#[test]
fn a_token_file_that_others_can_access_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path();
    let made = Server::start("localhost:0", &[]).token.clone();
    let write = |name: &str, mode: u32| {
        let path = top.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &made).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    write("group", 0o640);
    write("real", 0o600);
    std::os::unix::fs::symlink("real", top.join("link")).unwrap();
    write("named", 0o600);
    std::fs::hard_link(top.join("named"), top.join("twice")).unwrap();
    write("shared/token", 0o600);
    std::fs::set_permissions(top.join("shared"), std::fs::Permissions::from_mode(0o1777)).unwrap();
    let fifo = Command::new("mkfifo").arg(top.join("fifo")).status().unwrap();
    assert!(fifo.success());
    for (file, problem) in [
        ("group", "chmod 600"),
        ("link", "is a symlink"),
        ("twice", "hard link"),
        ("shared/token", "which other users can write"),
        ("shared/new", "which other users can write"),
        ("fifo", "not a regular file"),
    ] {
        let words = ["serve", "--http", "0", "--state", "state", "--token-file", file];
        let output = toolcrib(top, &words, b"");
        assert_eq!(output.status.code(), Some(2), "{file}");
        let said = text(&output.stderr);
        assert!(said.contains(problem) && said.contains(file), "{file}: {said}");
    }
    assert!(!top.join("shared/new").exists());
}

#[test]
fn an_address_that_others_can_reach_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let output = toolcrib(directory.path(), &["serve", "--http", address], b"");
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        assert!(said.contains("other machines") && said.contains("ssh -L"), "{said}");
    }
}
