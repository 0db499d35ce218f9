//! `toolcrib serve --store` and `toolcrib store`, with a real PostgreSQL.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_testkit::PostgresServer;

use crate::{PROGRAM, command_directory, isolated_home, text, toolcrib};

/// A database server, and a machine with a workspace.
pub(crate) struct Machine {
    pub(crate) server: PostgresServer,
    top: tempfile::TempDir,
}

impl Machine {
    /// `None` if PostgreSQL is not installed.
    pub(crate) fn new() -> Option<Machine> {
        let server = PostgresServer::start()?;
        server.psql("postgres", "CREATE DATABASE tools");
        let top = command_directory();
        std::fs::create_dir(top.path().join("ws")).unwrap();
        std::fs::write(top.path().join("ws/a.txt"), "one\n").unwrap();
        let machine = Machine { server, top };
        machine.write_private("owner.store", &machine.server.admin_url("tools"));
        let (is_made, said) = machine.run(&["store", "init", &machine.at("owner.store")]);
        assert!(is_made && said.contains("version 3"), "{said}");
        machine.add_tenant("acme");
        Some(machine)
    }

    fn add_tenant(&self, name: &str) -> String {
        let (owner, file) = (self.at("owner.store"), self.at(&format!("{name}.store")));
        let (is_made, said) =
            self.run(&["store", "add-tenant", &owner, name, "--address-file", &file]);
        let address = std::fs::read_to_string(&file).unwrap();
        let password = address.split([':', '@']).nth(2).unwrap();
        assert!(is_made && password.len() == 48 && !said.contains(password), "{said}");
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        file
    }

    fn write_private(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    pub(crate) fn at(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(crate) fn run(&self, words: &[&str]) -> (bool, String) {
        let state = self.at("state");
        let words = [words, &["--state", &state]].concat();
        let done = toolcrib(&self.path("ws"), &words, b"");
        (done.status.success(), text(&done.stdout).to_owned() + text(&done.stderr))
    }

    /// `log verify --store`, until the store has everything.
    fn wait_until_sent(&self, store: &str, records: u64) -> Value {
        loop {
            let (is_right, said) = self.run(&["log", "verify", "--json", "--store", store]);
            let report: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
            assert!(is_right, "{report}");
            if report["store"]["records"] == records {
                assert_eq!(report["store"]["head"], report["head"], "{report}");
                return report;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn serve(&self, more: &[&str]) -> Served {
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--no-monitor", "--state", &self.at("state")])
            .args(more)
            .current_dir(self.path("ws"))
            .envs(isolated_home())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut served = Served { child, stdin, stdout, stderr };
        let client = json!({"name": "test", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        served.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        served.receive();
        served.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        served
    }
}

/// A running server on stdio.
pub(crate) struct Served {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
}

impl Served {
    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({"name": tool, "arguments": arguments});
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
        self.receive()["result"].to_string()
    }

    /// Waits for a line with these words for people.
    fn wait_for(&mut self, words: &str) {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "{words}");
            assert!(!line.contains("postgres://acme:"), "{line}");
        }
    }

    /// Ends it as a client does, and returns what else it wrote for people.
    pub(crate) fn end(mut self) -> String {
        drop(self.stdin.take());
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        self.child.wait().unwrap();
        said
    }
}

#[test]
fn calls_arrive_in_the_store_whichever_side_is_killed() {
    let Some(mut machine) = Machine::new() else { return };
    let store = machine.at("acme.store");
    let read = || json!({"file_path": "a.txt"});
    let mut served = machine.serve(&["--store", &store]);
    (0..3).for_each(|_| drop(served.call("Read", read())));
    machine.wait_until_sent(&store, 3);
    // The server is killed between calls and sending.
    (0..5).for_each(|_| drop(served.call("Read", read())));
    served.child.kill().unwrap();
    served.child.wait().unwrap();
    // The database is killed, and calls go on.
    machine.server.kill();
    let mut served = machine.serve(&["--store", &store]);
    (0..4).for_each(|_| assert!(served.call("Read", read()).contains("one")));
    served.wait_for("the audit log is not being sent");
    machine.server.restart();
    machine.wait_until_sent(&store, 12);
    served.call("Read", read());
    let said = served.end();
    assert!(!said.contains("postgres://acme:"), "{said}");
    // The last records are sent at the end.
    let report = machine.wait_until_sent(&store, 13);
    assert_eq!(report["store"]["unsent"], 0);
    // The store shows that the end of the local log was cut off.
    let log =
        std::fs::read_dir(machine.path("state/audit")).unwrap().flatten().map(|entry| entry.path());
    let log = log
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .unwrap();
    let lines = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, lines.split_inclusive('\n').take(9).collect::<String>()).unwrap();
    let (is_right, said) = machine.run(&["log", "verify", "--text", "--store", &store]);
    assert!(
        !is_right && said.contains("records 10 to 13 are in the store, but not here"),
        "{said}"
    );
    let (is_right, said) = machine.run(&["store", "verify", &machine.at("owner.store"), "--text"]);
    assert!(
        is_right && said.contains("acme") && said.contains("records 1 to 13 are intact"),
        "{said}"
    );
    let other = machine.add_tenant("other");
    let (_, said) = machine.run(&["store", "verify", &other, "--text"]);
    assert!(said.contains("no records"), "{said}");
}

#[test]
fn passwords_are_not_arguments_and_commands_do_not_see_them() {
    let Some(machine) = Machine::new() else { return };
    let store = machine.at("acme.store");
    let address = std::fs::read_to_string(&store).unwrap();
    let password = address.split([':', '@']).nth(2).unwrap().to_owned();
    // In an argument.
    for words in [["store", "verify"], ["store", "init"]] {
        let (is_done, said) = machine.run(&[&words[..], &[address.trim()]].concat());
        assert!(
            !is_done && said.contains("other users can see") && !said.contains(&password),
            "{said}"
        );
    }
    // In a file that others can read.
    let open = machine.path("open.store");
    std::fs::write(&open, &address).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (is_done, said) = machine.run(&["store", "verify", &machine.at("open.store")]);
    assert!(!is_done && said.contains("chmod 600") && !said.contains(&password), "{said}");
    std::fs::remove_file(&open).unwrap();
    // Tools of the agent.
    let mut served = machine.serve(&["--store", &store]);
    let said = served.call("Read", json!({"file_path": store}));
    assert!(said.contains("\"isError\":true") && !said.contains(&password), "{said}");
    let shown = served.call(
        "Bash",
        json!({"command": format!("cat {store}; env; cat /proc/*/cmdline /proc/*/environ")}),
    );
    assert!(!shown.contains(&password), "{shown}");
    served.end();
    let (is_done, said) = machine.run(&["store", "verify", &machine.at("missing.store")]);
    assert!(
        !is_done && said.contains("no such file") && !machine.path("missing.store").exists(),
        "{said}"
    );
    // From the variable and the file of other clients of PostgreSQL.
    let bare = address.trim().replace(&format!(":{password}@"), "@");
    let run = |name: &str, value: &str| {
        let words = ["store", "verify", &bare, "--text"];
        let mut command = Command::new(PROGRAM);
        command.args(words).current_dir(machine.path("ws")).envs(isolated_home());
        let done = command
            .env_remove("PGPASSFILE")
            .env("HOME", machine.path("ws"))
            .env(name, value)
            .output()
            .unwrap();
        (done.status.success(), text(&done.stderr).to_owned())
    };
    let said = run("PGPASSWORD", &password);
    assert!(said.0, "{said:?}");
    machine.write_private("passwords", &format!("*:*:*:acme:{password}\n"));
    let said = run("PGPASSFILE", &machine.at("passwords"));
    assert!(said.0, "{said:?}");
    let (is_done, said) = run("UNRELATED", "");
    assert!(!is_done && said.contains("PGPASSFILE"), "{said}");
}

/// Each workspace of one server has its own log. A connection sends them, and another one asks for the limits.
#[test]
fn many_workspaces_share_two_connections() {
    let Some(machine) = Machine::new() else { return };
    let (state, store) = (machine.at("state"), machine.at("acme.store"));
    for name in ["one", "two"] {
        std::fs::create_dir_all(machine.path("all").join(name)).unwrap();
        std::fs::write(machine.path("all").join(name).join("a.txt"), "x\n").unwrap();
    }
    let socket = machine.at("http.sock");
    let mut child = Command::new(PROGRAM)
        .args(["serve", "--no-monitor", "--no-tools", "Bash", "--state", &state, "--store", &store])
        .args(["--http", &format!("unix:{socket}"), "--workspaces", &machine.at("all")])
        .current_dir(machine.path("ws"))
        .envs(isolated_home())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut first).unwrap();
    let token = std::fs::read_to_string(machine.path("state/http-token")).unwrap();
    for name in ["one", "two"] {
        let client = json!({"name": "test", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
        let session = post(&socket, name, token.trim(), None, &hello);
        let id = session.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned)
        });
        let id = id.unwrap_or_else(|| panic!("{first} {session}"));
        let params = json!({"name": "Read", "arguments": {"file_path": "a.txt"}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let reply = post(&socket, name, token.trim(), Some(id.trim()), &call);
        assert!(reply.contains("200 OK"), "{reply}");
    }
    let names = "SELECT string_agg(workspace, ',' ORDER BY workspace) FROM toolcrib.records";
    while machine.server.psql("tools", names) != "one,two" {
        std::thread::sleep(Duration::from_millis(100));
    }
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'acme'";
    assert_eq!(machine.server.psql("tools", connections), "2");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Sends one request over HTTP, and returns the response.
fn post(socket: &str, workspace: &str, token: &str, session: Option<&str>, body: &Value) -> String {
    use std::io::Read as _;
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let (body, session) = (body.to_string(), session.map(|id| format!("Mcp-Session-Id: {id}\r\n")));
    let request = format!(
        "POST /w/{workspace}/mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\n{}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        session.unwrap_or_default(),
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Without the lease, the agent reads and does not write, and its commands are stopped.
#[test]
fn only_the_machine_with_the_lease_writes() {
    let Some(machine) = Machine::new() else { return };
    let store = machine.at("acme.store");
    let (is_done, said) = machine.run(&["serve", "--store", &store, "--lease"]);
    assert!(!is_done && said.contains("--store-name"), "{said}");
    let flags = ["--store", &store, "--store-name", "shop", "--lease"];
    let mut served = machine.serve(&flags);
    let write = || json!({"file_path": "b.txt", "content": "x"});
    assert!(served.call("Write", write()).contains("\"isError\":false"));
    let command = json!({"command": "sleep 600", "run_in_background": true});
    let started = served.call("Bash", command);
    // Another machine has it now.
    let lease = |holder: &str, time: &str| {
        let change = format!(
            "UPDATE toolcrib.leases SET holder = '{holder}', node = 'node-2', held_until = now() + '{time}'"
        );
        machine.server.psql("tools", &change);
    };
    lease("other", "1 hour");
    let refused = loop {
        let said = served.call("Write", write());
        if said.contains("\"isError\":true") {
            break said;
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    assert!(
        refused.contains("another machine, node-2, has it")
            && refused.contains("Nothing was written"),
        "{refused}"
    );
    assert!(served.call("Bash", json!({"command": "true"})).contains("another machine, node-2"));
    assert!(served.call("Read", json!({"file_path": "a.txt"})).contains("one"));
    if started.contains("\"isError\":false") {
        let id = json!({"bash_id": "bash_1"});
        while served.call("BashOutput", id.clone()).contains("running") {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    // It is given back.
    lease("other", "-1 second");
    while served.call("Write", write()).contains("\"isError\":true") {
        std::thread::sleep(Duration::from_millis(200));
    }
    let said = served.end();
    assert!(
        said.contains("fence 2") && said.contains("is not here: another machine, node-2"),
        "{said}"
    );
    let is_free = "SELECT held_until <= now() FROM toolcrib.leases";
    assert_eq!(machine.server.psql("tools", is_free), "t", "given back at the end");
}
