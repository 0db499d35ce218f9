//! Limits of tenants with `toolcrib store quota` and `toolcrib serve --store`.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::store::Machine;
use crate::{PROGRAM, isolated_home, wait_until_serving};

/// A server over HTTP.
struct Node<'m> {
    machine: &'m Machine,
    child: Child,
    token: String,
}

/// A response: its status, its head and the message in its body.
struct Response {
    status: u16,
    head: String,
    message: Value,
}

impl Response {
    fn text(&self) -> String {
        self.message["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    fn retry_after(&self) -> Option<u64> {
        let line =
            self.head.lines().find(|line| line.to_ascii_lowercase().starts_with("retry-after:"))?;
        line.split(": ").nth(1)?.trim().parse().ok()
    }
}

impl<'m> Node<'m> {
    fn start(machine: &'m Machine) -> Node<'m> {
        let socket = machine.at("node.sock");
        let _ = std::fs::remove_file(&socket);
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--no-monitor", "--http", &format!("unix:{socket}")])
            .args(["--store", &machine.at("acme.store"), "--store-name", "shop"])
            .args(["--state", &machine.at("state"), "--root", &machine.at("ws")])
            .envs(isolated_home())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until_serving(&mut child);
        let token = std::fs::read_to_string(machine.path("state/http-token")).unwrap();
        Node { machine, child, token: token.trim().to_owned() }
    }

    /// A request with the protocol in which each is for itself.
    fn request(&self, id: &Value, tool: &str, arguments: &Value, connection: &str) -> String {
        let params = json!({
            "name": tool,
            "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        });
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let body = body.to_string();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
             Mcp-Name: {tool}\r\nToolcrib-Session: s\r\nConnection: {connection}\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        )
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.machine.path("node.sock")).unwrap()
    }

    fn call(&self, tool: &str, arguments: Value) -> Response {
        let mut stream = self.connect();
        let request = self.request(&json!(1), tool, &arguments, "close");
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        parsed(&response)
    }

    fn read(&self) -> Response {
        self.call("Read", json!({"file_path": "a.txt"}))
    }

    fn bash(&self, command: &str) -> Response {
        self.call("Bash", json!({"command": command}))
    }
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn parsed(response: &str) -> Response {
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{response}"));
    let start = body.find("{\"").unwrap_or_else(|| panic!("{response}"));
    let mut values = serde_json::Deserializer::from_str(&body[start..]).into_iter();
    let message = values.next().unwrap().unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head: head.to_owned(), message }
}

impl Machine {
    fn quota(&self, words: &[&str]) -> (bool, String) {
        let store = self.at("owner.store");
        self.run(&[&["store", "quota", &store, "--tenant", "acme"], words].concat())
    }

    fn set(&self, limit: &str) {
        let (is_done, said) = self.quota(&["--clear", "--set", limit]);
        assert!(is_done, "{said}");
    }
}

/// Repeats a call until its response is as wanted.
fn until(mut call: impl FnMut() -> Response, wanted: impl Fn(&Response) -> bool) -> Response {
    loop {
        let response = call();
        if wanted(&response) {
            return response;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn the_owner_sets_limits_and_the_tenant_sees_them() {
    let Some(machine) = Machine::new() else { return };
    let (is_done, said) = machine.quota(&[]);
    assert!(is_done && said.contains("There are no limits"), "{said}");
    let (is_done, said) =
        machine.quota(&["--set", "calls-per-minute=600", "--set", "command-seconds-per-day=3600"]);
    assert!(is_done && said.contains("acme: calls-per-minute=600, 0 used this minute"), "{said}");
    let (is_done, said) = machine.quota(&["--workspace", "shop", "--set", "commands=4"]);
    assert_eq!((is_done, said.trim()), (true, "acme shop: commands=4, 0 used now"));
    let (is_done, said) = machine.run(&["store", "quota", &machine.at("acme.store"), "--json"]);
    let listed: Value = serde_json::from_str(&said).unwrap();
    let first = json!({"tenant": "acme", "workspace": null, "limit": "calls-per-minute", "value": 600, "used": 0});
    assert!(is_done && listed["quotas"].as_array().unwrap().len() == 3, "{said}");
    assert_eq!(listed["quotas"][0], first);
    // Only those of the tenant, not those of the workspace.
    let (is_done, said) = machine.quota(&["--clear", "--set", "commands=9"]);
    assert!(is_done && said.contains("commands=9") && said.contains("commands=4"), "{said}");
    assert!(!said.contains("calls-per-minute"), "{said}");
    let tenant = machine.at("acme.store");
    let raise = ["store", "quota", &tenant, "--tenant", "acme", "--set", "commands=1000"];
    let (is_done, said) = machine.run(&raise);
    assert!(!is_done && said.contains("only the owner of the store sets quotas"), "{said}");
    let owner = machine.at("owner.store");
    for (words, expected) in [
        (&["--set", "commands=1"][..], "need --tenant"),
        (&["--tenant", "nobody", "--set", "commands=1"], "no such tenant"),
        (&["--tenant", "acme", "--set", "calls=1"], "the limits are calls-per-minute, commands"),
        (&["--tenant", "acme", "--set", "commands=-1"], "not a number"),
        (&["--tenant", "acme", "--set", "commands"], "not LIMIT=N"),
        (&["--tenant", "acme", "--clear", "--dry-run"], "no dry run"),
    ] {
        let (is_done, said) = machine.run(&[&["store", "quota", &owner], words].concat());
        assert!(!is_done && said.contains(expected), "{words:?}: {said}");
    }
}

#[test]
fn calls_beyond_a_limit_are_answered_with_429() {
    let Some(machine) = Machine::new() else { return };
    let node = Node::start(&machine);
    assert_eq!(node.read().status, 200);
    machine.set("calls-per-minute=0");
    let refused = until(|| node.read(), |response| response.status == 429);
    let seconds = refused.retry_after().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert!(refused.head.contains("application/json"), "{}", refused.head);
    let expected = json!({"jsonrpc": "2.0", "id": 1, "error": {
        "code": -32_000,
        "message": format!("the tenant has reached its limit calls-per-minute=0: try again in {seconds} s"),
        "data": {"status": 429, "limit": "calls-per-minute", "retry_after_seconds": seconds},
    }});
    assert_eq!(refused.message, expected);
    // The connection, which may be a session, stays.
    let mut stream = node.connect();
    for (id, connection) in [(json!("one"), "keep-alive"), (json!("two"), "close")] {
        let request = node.request(&id, "Read", &json!({"file_path": "a.txt"}), connection);
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        while !response.contains("\"status\":429") {
            let mut bytes = [0; 4_096];
            let read = stream.read(&mut bytes).unwrap();
            assert_ne!(read, 0, "{response}");
            response += std::str::from_utf8(&bytes[..read]).unwrap();
        }
        assert!(response.contains(&format!("\"id\":{id}")), "{response}");
    }
    // Arguments that are no object: the protocol has another way for them, and the limit holds there, too.
    let odd = node.call("Read", json!(["a.txt"]));
    assert!(odd.message.to_string().contains("calls-per-minute=0"), "{}", odd.message);
    // Other requests are answered.
    machine.set("calls-per-minute=1000");
    let again = until(|| node.read(), |response| response.status == 200);
    assert!(again.text().contains("one"), "{}", again.message);
    // The limit of another workspace does not concern this one.
    let (is_done, said) = machine.quota(&["--workspace", "other", "--set", "calls-per-minute=0"]);
    assert!(is_done, "{said}");
    let (is_done, said) = machine.quota(&["--workspace", "shop", "--set", "calls-per-minute=0"]);
    assert!(is_done, "{said}");
    let refused = until(|| node.read(), |response| response.status == 429);
    let said = refused.message["error"]["message"].as_str().unwrap();
    assert!(said.starts_with("the workspace has reached"), "{said}");
}

#[test]
fn commands_are_limited_by_number_and_by_time() {
    let Some(machine) = Machine::new() else { return };
    machine.set("commands=1");
    let node = Node::start(&machine);
    let started = node.call("Bash", json!({"command": "sleep 1000", "run_in_background": true}));
    assert!(started.text().contains("sh_1"), "{}", started.message);
    let refused = node.bash("echo hi");
    assert_eq!((refused.status, refused.retry_after()), (429, Some(5)), "{}", refused.message);
    let said = refused.message["error"]["message"].as_str().unwrap();
    assert!(said.contains("commands=1: try again when a command has ended"), "{said}");
    // Other calls go on, also the one that makes room.
    assert!(node.read().text().contains("one"));
    let used = || machine.quota(&[]).1;
    while !used().contains("commands=1, 1 used now") {
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(node.call("KillShell", json!({"shell_id": "sh_1"})).status, 200);
    let ran = until(|| node.bash("echo hi"), |response| response.status == 200);
    assert!(ran.text().contains("hi"), "{}", ran.message);
    // Several calls at once: one of them gets the place, and the others fail in one way or the other.
    let ran = std::thread::scope(|scope| {
        let call = || node.bash("until test -e go; do sleep 0.05; done; echo ran");
        let calls: Vec<_> = (0..4).map(|_| scope.spawn(call)).collect();
        while calls.iter().filter(|call| call.is_finished()).count() < 3 {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::fs::write(machine.path("ws/go"), "").unwrap();
        let responses: Vec<Response> = calls.into_iter().map(|call| call.join().unwrap()).collect();
        responses.iter().filter(|response| response.text().contains("ran")).count()
    });
    assert_eq!(ran, 1);
    // The time of the commands of a day.
    machine.set("command-seconds-per-day=5000");
    let used = |said: String| {
        let used = said.split("command-seconds-per-day=5000, ").nth(1).unwrap().to_owned();
        used.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    until(|| node.bash("sleep 2"), |_| used(machine.quota(&[]).1) > 1);
    machine.set("command-seconds-per-day=1");
    let refused = until(|| node.bash("echo hi"), |response| response.status == 429);
    assert_eq!(refused.message["error"]["data"]["limit"], "command-seconds-per-day");
    assert!(refused.retry_after().unwrap() <= 86_400, "{}", refused.head);
    assert!(node.read().text().contains("one"));
}

/// On stdio, a call beyond a limit is a call that fails, which the model reads.
#[test]
fn calls_on_stdio_fail_beyond_a_limit() {
    let Some(machine) = Machine::new() else { return };
    machine.set("calls-per-minute=0");
    let mut served = machine.serve(&["--store", &machine.at("acme.store")]);
    let said = served.call("Read", json!({"file_path": "a.txt"}));
    assert!(said.contains("\"isError\":true"), "{said}");
    assert!(said.contains("the tenant has reached its limit calls-per-minute=0"), "{said}");
    assert!(said.contains("The call was not run."), "{said}");
    machine.set("calls-per-minute=1000");
    while served.call("Read", json!({"file_path": "a.txt"})).contains("isError\":true") {
        std::thread::sleep(Duration::from_millis(200));
    }
    served.end();
}

/// Without this, the next server waits half a minute for the place of a command that has ended.
#[test]
fn the_commands_of_a_server_that_ended_do_not_count() {
    let Some(machine) = Machine::new() else { return };
    machine.set("commands=1");
    let mut served = machine.serve(&["--store", &machine.at("acme.store")]);
    let started = served.call("Bash", json!({"command": "sleep 1000", "run_in_background": true}));
    assert!(started.contains("sh_1"), "{started}");
    let used = || machine.quota(&[]).1;
    while !used().contains("commands=1, 1 used now") {
        std::thread::sleep(Duration::from_millis(200));
    }
    served.end();
    assert!(used().contains("commands=1, 0 used now"), "{}", used());
}
