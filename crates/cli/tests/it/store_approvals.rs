//! Approval questions of `toolcrib serve --http --store`, answered with `toolcrib store approve` and `deny`, on two machines.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::store::Machine;
use crate::{PROGRAM, isolated_home, wait_until_serving};

/// A server of the workspace `shop`, with files and a state of its own.
struct Node<'m> {
    calls: Calls<'m>,
    child: Child,
}

/// Calls of the server, also while it is killed.
#[derive(Clone, Copy)]
struct Calls<'m> {
    machine: &'m Machine,
    name: &'m str,
}

impl<'m> Node<'m> {
    fn start(machine: &'m Machine, name: &'m str) -> Node<'m> {
        Node::start_with(machine, name, &[])
    }

    fn start_with(machine: &'m Machine, name: &'m str, more: &[&str]) -> Node<'m> {
        let (root, rules) = (machine.path(name).join("ws"), machine.path("rules.toml"));
        std::fs::create_dir_all(&root).unwrap();
        let rule = "[[rule]]\ndecision = \"ask\"\nkind = \"edit\"\npaths = [\"asked*\"]\n";
        std::fs::write(&rules, rule).unwrap();
        let socket = machine.path(&format!("{name}.sock"));
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--no-monitor", "--http", &format!("unix:{}", socket.display())])
            .args(["--store", &machine.at("acme.store"), "--store-name", "shop"])
            .arg("--state")
            .arg(machine.path(&format!("{name}.state")))
            .arg("--rules")
            .arg(&rules)
            .arg("--root")
            .arg(&root)
            .args(more)
            .envs(isolated_home())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until_serving(&mut child);
        Node { calls: Calls { machine, name }, child }
    }

    /// Ends it as a service manager does.
    fn terminate(&mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl<'m> std::ops::Deref for Node<'m> {
    type Target = Calls<'m>;

    fn deref(&self) -> &Calls<'m> {
        &self.calls
    }
}

impl Calls<'_> {
    /// Writes a file, with the protocol in which each request is for itself. Without a response the node has died.
    fn write(&self, file: &str, content: &str, capabilities: &Value) -> Option<Value> {
        self.write_with(file, content, capabilities, &json!({}))
    }

    fn write_with(
        &self,
        file: &str,
        content: &str,
        capabilities: &Value,
        more: &Value,
    ) -> Option<Value> {
        let token = self.machine.path(&format!("{}.state/http-token", self.name));
        let token = std::fs::read_to_string(token).unwrap();
        let mut params = json!({
            "name": "Write",
            "arguments": {"file_path": file, "content": content},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            },
        });
        let more = more.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(more);
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let body = call.to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
             Mcp-Name: Write\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            token.trim(),
            body.len()
        );
        let socket = self.machine.path(&format!("{}.sock", self.name));
        let mut stream = UnixStream::connect(socket).ok()?;
        stream.write_all(request.as_bytes()).ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).ok()?;
        let start = response.find("{\"jsonrpc\"")?;
        let mut values = serde_json::Deserializer::from_str(&response[start..]).into_iter();
        let message: Value = values.next()?.ok()?;
        Some(message["result"].clone())
    }

    fn has(&self, file: &str) -> bool {
        self.machine.path(self.name).join("ws").join(file).exists()
    }
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The questions that wait.
fn waiting(machine: &Machine) -> Vec<Value> {
    let (is_done, said) = machine.run(&["store", "approvals", &machine.at("acme.store"), "--json"]);
    assert!(is_done, "{said}");
    let report: Value = serde_json::from_str(&said).unwrap();
    report["approvals"].as_array().unwrap().clone()
}

/// Waits for the only question, and returns its id.
fn wait_for_question(machine: &Machine) -> String {
    for _ in 0..1_000 {
        if let [one] = waiting(machine).as_slice() {
            return one["id"].as_str().unwrap().to_owned();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("no question is in the store");
}

fn answer(machine: &Machine, word: &str, id: &str, more: &[&str]) -> (bool, String) {
    machine.run(&[&["store", word, &machine.at("acme.store"), id], more].concat())
}

fn is_error(result: &Value) -> bool {
    result["isError"] == true
}

fn nobody() -> Value {
    json!({})
}

#[test]
fn an_answer_in_the_store_reaches_the_call_or_its_retry_on_another_machine() {
    let Some(machine) = Machine::new() else { return };
    let (mut a, b) = (Node::start(&machine, "a"), Node::start(&machine, "b"));
    // The waiting call gets it.
    std::thread::scope(|scope| {
        let call = scope.spawn(|| a.write("asked-1", "x\n", &nobody()));
        let id = wait_for_question(&machine);
        let (_, shown) = machine.run(&["store", "approvals", &machine.at("acme.store")]);
        assert!(
            shown.contains(&id) && shown.contains("acme shop") && shown.contains("asked-1"),
            "{shown}"
        );
        assert!(answer(&machine, "approve", &id, &[]).0);
        let result = call.join().unwrap().unwrap();
        assert!(!is_error(&result) && a.has("asked-1"), "{result}");
        let (is_done, said) = answer(&machine, "deny", &id, &[]);
        assert!(!is_done && said.contains("was answered before: yes"), "{said}");
    });
    // The machine dies while its call waits; the answer comes after that.
    std::thread::scope(|scope| {
        let calls = a.calls;
        let call = scope.spawn(move || calls.write("asked-2", "x\n", &nobody()));
        let id = wait_for_question(&machine);
        a.kill();
        assert_eq!(call.join().unwrap(), None);
        assert!(answer(&machine, "approve", &id, &[]).0);
    });
    assert!(waiting(&machine).is_empty());
    // Another call of the same tool is asked about.
    std::thread::scope(|scope| {
        let call = scope.spawn(|| b.write("asked-2", "y\n", &nobody()));
        let id = wait_for_question(&machine);
        assert!(answer(&machine, "deny", &id, &["--message", "use\u{1b} x"]).0);
        let result = call.join().unwrap().unwrap().to_string();
        assert!(result.contains("the answer was no") && !b.has("asked-2"), "{result}");
    });
    let result = b.write("asked-2", "x\n", &nobody()).unwrap();
    assert!(!is_error(&result) && b.has("asked-2"), "{result}");
    assert!(waiting(&machine).is_empty());
    // Once: the same call again is asked about again.
    std::fs::remove_file(machine.path("b/ws/asked-2")).unwrap();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| b.write("asked-2", "x\n", &nobody()));
        let id = wait_for_question(&machine);
        assert!(answer(&machine, "deny", &id, &[]).0);
        assert!(is_error(&call.join().unwrap().unwrap()) && !b.has("asked-2"));
    });
}

/// A client that asks its own user has the question, too, and the first answer counts.
#[test]
fn a_client_and_the_operator_answer_the_same_question() {
    let Some(machine) = Machine::new() else { return };
    let (a, b) = (Node::start(&machine, "a"), Node::start(&machine, "b"));
    let asks = json!({"elicitation": {"form": {}}});
    let asked = a.write("asked-1", "x\n", &asks).unwrap();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let id = wait_for_question(&machine);
    let yes = json!({
        "requestState": asked["requestState"],
        "inputResponses": {"permission": {"action": "accept", "content": {"answer": "once"}}},
    });
    // The operator is faster, and says no.
    assert!(answer(&machine, "deny", &id, &["--message", "not today"]).0);
    let result = a.write_with("asked-1", "x\n", &asks, &yes).unwrap();
    assert!(
        is_error(&result) && result.to_string().contains("not today") && !a.has("asked-1"),
        "{result}"
    );
    // The client is faster.
    let asked = a.write("asked-2", "x\n", &asks).unwrap();
    let id = wait_for_question(&machine);
    let yes =
        json!({"requestState": asked["requestState"], "inputResponses": yes["inputResponses"]});
    let result = a.write_with("asked-2", "x\n", &asks, &yes).unwrap();
    assert!(!is_error(&result) && a.has("asked-2"), "{result}");
    let (is_done, said) = answer(&machine, "deny", &id, &[]);
    assert!(!is_done && said.contains("yes, by client on"), "{said}");
    // The state of a machine that has died is no answer on another one, which asks again.
    let asked = a.write("asked-3", "x\n", &asks).unwrap();
    let id = wait_for_question(&machine);
    let yes =
        json!({"requestState": asked["requestState"], "inputResponses": yes["inputResponses"]});
    let again = b.write_with("asked-3", "x\n", &asks, &yes).unwrap();
    assert_eq!(again["resultType"], "input_required", "{again}");
    assert!(answer(&machine, "approve", &id, &[]).0);
    let result = b.write_with("asked-3", "x\n", &asks, &yes).unwrap();
    assert!(!is_error(&result) && b.has("asked-3"), "{result}");
}

#[test]
fn without_the_store_a_call_says_that_it_could_not_ask_there() {
    let Some(mut machine) = Machine::new() else { return };
    machine.server.kill();
    let a = Node::start(&machine, "a");
    let result = a.write("asked-1", "x\n", &nobody()).unwrap().to_string();
    assert!(result.contains("The question is not in the store"), "{result}");
    // The client is asked as without a store.
    let asks = json!({"elicitation": {"form": {}}});
    let asked = a.write("asked-1", "x\n", &asks).unwrap();
    let yes = json!({
        "requestState": asked["requestState"],
        "inputResponses": {"permission": {"action": "accept", "content": {"answer": "once"}}},
    });
    let result = a.write_with("asked-1", "x\n", &asks, &yes).unwrap();
    assert!(!is_error(&result) && a.has("asked-1"), "{result}");
    drop(a);
    machine.server.restart();
}

/// The lease of a machine that was killed has not ended yet. Calls on the other machine fail until then, and use up no answer.
#[test]
fn a_machine_without_the_lease_does_not_use_up_an_answer() {
    let Some(machine) = Machine::new() else { return };
    let mut a = Node::start_with(&machine, "a", &["--lease"]);
    while is_error(&a.write("plain", "x\n", &nobody()).unwrap()) {
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::scope(|scope| {
        let calls = a.calls;
        let call = scope.spawn(move || calls.write("asked-1", "x\n", &nobody()));
        let id = wait_for_question(&machine);
        a.kill();
        assert_eq!(call.join().unwrap(), None);
        assert!(answer(&machine, "approve", &id, &[]).0);
    });
    let b = Node::start_with(&machine, "b", &["--lease"]);
    let refused = b.write("asked-1", "x\n", &nobody()).unwrap().to_string();
    assert!(refused.contains("does not have its lease"), "{refused}");
    machine.server.psql("tools", "UPDATE toolcrib.leases SET held_until = now()");
    let result = loop {
        let result = b.write("asked-1", "x\n", &nobody()).unwrap();
        if !result.to_string().contains("does not have its lease") {
            break result;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(!is_error(&result) && b.has("asked-1"), "{result}");
    assert!(waiting(&machine).is_empty());
}

/// Also while a call waits for its answer, which does not keep the server.
#[test]
fn a_terminated_server_gives_its_lease_back_and_sends_its_records() {
    let Some(machine) = Machine::new() else { return };
    let mut a = Node::start_with(&machine, "a", &["--lease"]);
    let mut calls = 1;
    while is_error(&a.write("plain", "x\n", &nobody()).unwrap()) {
        calls += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::scope(|scope| {
        let waits = a.calls;
        let call = scope.spawn(move || waits.write("asked-1", "x\n", &nobody()));
        wait_for_question(&machine);
        a.terminate();
        drop(call.join().unwrap());
    });
    let is_free = "SELECT held_until <= now() FROM toolcrib.leases";
    assert_eq!(machine.server.psql("tools", is_free), "t");
    let records = machine.server.psql("tools", "SELECT count(*) FROM toolcrib.records");
    assert!(records.parse::<usize>().unwrap() >= calls, "{records} of {calls}");
    // The question stays for the same call on another machine.
    assert_eq!(waiting(&machine).len(), 1);
}
