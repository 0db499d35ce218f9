//! Hosts by name, through the library: rules, questions, replies, the log, and real clients.

mod attacks;
mod clients;
#[cfg(feature = "inspect")]
mod inspected;
mod questions;
mod upstream;

use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use toolcrib::{
    Approver, Call, Caps, Error, Network, Options, Profile, Reply, Resolver, Rules, Runtime,
    SandboxSettings, Session, UpstreamProxies,
};

/// Serves HTTP and HTTPS with content for package managers, and prints its ports.
const SERVER: &str = include_str!("network/server.py");

/// Programs of the tests that are on every machine.
const PYTHON: &str = "/usr/bin/python3";

/// A server outside, which ends with the test.
struct Server {
    child: Child,
    http: u16,
    https: u16,
    _content: tempfile::TempDir,
    certificate: String,
}

impl Server {
    fn start() -> Server {
        Server::running(SERVER, "cert.pem")
    }

    /// Runs a program that prints two ports. `certificate` is the file that clients trust.
    fn running(program: &str, certificate: &str) -> Server {
        let content = crate::command_directory();
        let mut child = Command::new(PYTHON)
            .args(["-c", program])
            .current_dir(content.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ports: Vec<u16> = line.split_whitespace().map(|port| port.parse().unwrap()).collect();
        let [http, https] = ports.as_slice() else { panic!("{line}") };
        let certificate = content.path().join(certificate).display().to_string();
        Server { http: *http, https: *https, child, _content: content, certificate }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every name of `test` is the server, on the ports of HTTP and HTTPS. Some names are elsewhere.
#[derive(Debug)]
struct TestResolver {
    ports: HashMap<u16, u16>,
}

impl Resolver for TestResolver {
    fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let address = |ip: [u8; 4]| Ok(vec![SocketAddr::from((ip, port))]);
        match name {
            "private.test" => address([10, 0, 0, 1]),
            "metadata.test" => address([169, 254, 169, 254]),
            "loopback6.test" => {
                Ok(vec![SocketAddr::from(([0, 0, 0, 0, 0, 0xffff, 0x7f00, 1], port))])
            }
            "missing.test" => Err(io::Error::other("no such host")),
            _ => {
                let port = self.ports.get(&port).copied().unwrap_or(port);
                Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))])
            }
        }
    }
}

/// A runtime that reaches listed hosts.
struct Listed {
    top: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
    server: Server,
    /// Connections that the recorder received.
    recorded: Recorded,
}

/// Keeps the connections that it receives.
#[derive(Clone, Default)]
struct Recorded(std::sync::Arc<parking_lot::Mutex<Vec<toolcrib::ConnectionEntry>>>);

impl toolcrib::Recorder for Recorded {
    fn connection(&self, connection: &toolcrib::ConnectionEntry) {
        self.0.lock().push(connection.clone());
    }

    fn record(&self, _: toolcrib::Record) {}
}

/// The rules of the tests: hosts of `ok.test`, and the address of the servers on these ports.
fn rules(ports: &HashMap<u16, u16>) -> String {
    let addresses: Vec<String> =
        ports.values().map(|port| format!("\"127.0.0.1:{port}\"")).collect();
    format!(
        r#"
        [[rule]]
        name = "tests"
        decision = "allow"
        kind = "network"
        hosts = ["*.ok.test", "private.test", "metadata.test", "loopback6.test", "missing.test"]

        [[rule]]
        name = "server"
        decision = "allow"
        kind = "network"
        hosts = [{}]

        [[rule]]
        name = "never"
        decision = "deny"
        kind = "network"
        hosts = ["no.ok.test"]
        why = "it is not for agents"
        "#,
        addresses.join(", ")
    )
}

impl Listed {
    fn new() -> Listed {
        Listed::exposing(&[])
    }

    /// With ports that are reachable from outside.
    fn exposing(expose: &[u16]) -> Listed {
        Listed::with(expose, UpstreamProxies::default(), &[])
    }

    /// With proxies outside, which the environment names, too, and with other ports of `test` and their servers.
    fn with(expose: &[u16], proxies: UpstreamProxies, other_ports: &[(u16, u16)]) -> Listed {
        let server = Server::start();
        let top = crate::command_directory();
        for directory in ["ws", "home"] {
            std::fs::create_dir_all(top.path().join(directory)).unwrap();
        }
        let mut ports = HashMap::from([(80, server.http), (443, server.https)]);
        ports.extend(other_ports.iter().copied());
        let settings = SandboxSettings {
            network: Network::List,
            expose: expose.to_vec(),
            ..SandboxSettings::default()
        };
        let path = std::env::var_os("PATH").unwrap();
        let home = top.path().join("ws/home");
        std::fs::create_dir_all(&home).unwrap();
        let environment = vec![
            ("PATH".into(), path),
            ("HOME".into(), home.into_os_string()),
            ("https_proxy".into(), "http://proxy.test:3128".into()),
            ("NO_PROXY".into(), "ok.test".into()),
        ];
        let recorded = Recorded::default();
        let runtime = Runtime::builder()
            .root(top.path().join("ws"))
            .journal(top.path().join("state"), Caps::default())
            .recorder(recorded.clone())
            .profile(Profile::Workspace)
            .rules(Rules::parse(&rules(&ports)).unwrap())
            .sandbox(settings)
            .resolver(TestResolver { ports })
            .upstream_proxies(proxies)
            .environment(move || environment.clone())
            .helper(crate::helper())
            .build()
            .unwrap();
        let session = runtime.session();
        Listed { top, runtime, session, server, recorded }
    }

    fn call(&self, tool: &str, args: Value, approver: &dyn Approver) -> Result<Reply, Error> {
        let options = Options { approver, ..Options::default() };
        self.runtime.call(&self.session, Call::new(tool, args), options)
    }

    /// The text of the reply, or of the error.
    fn bash_asking(&self, command: &str, approver: &dyn Approver) -> String {
        let command = command.replace("@CA@", &self.server.certificate);
        match self.call("Bash", json!({"command": command}), approver) {
            Ok(reply) => reply.output().to_owned(),
            Err(error) => error.text().to_string(),
        }
    }

    fn bash(&self, command: &str) -> String {
        self.bash_asking(command, &toolcrib::NoApprover)
    }

    /// The logged connections to a host, once there are some.
    fn connections(&self, host: &str) -> Vec<toolcrib::ConnectionEntry> {
        let found = || -> Vec<toolcrib::ConnectionEntry> {
            let all = self.runtime.connections().unwrap().into_iter();
            all.filter(|entry| entry.host == host).collect()
        };
        crate::eventually(|| !found().is_empty());
        found()
    }
}

#[test]
fn a_reply_has_one_line_per_host_and_the_log_every_connection() {
    let listed = Listed::new();
    let reply = listed.bash(
        "curl -s http://a.ok.test/hello; curl -s http://a.ok.test/hello; /bin/echo; curl -s http://no.ok.test/x",
    );
    // The rule denies the command before it starts.
    assert!(reply.contains("it is not for agents"), "{reply}");
    let script = "h=$(echo ok.test); curl -s http://a.$h/hello; curl -s http://a.$h/hello; curl -s http://no.$h/; curl -s http://missing.test/; true";
    let reply = listed.bash(script);
    assert_eq!(reply.matches("hello\n").count(), 2, "{reply}");
    assert!(reply.contains("refused the connection to no.ok.test:80"), "{reply}");
    assert_eq!(
        reply.matches("[network: a.ok.test:80 allowed by rule:tests]").count(),
        1,
        "{reply}"
    );
    let refused = "[network: no.ok.test:80 refused: it is not for agents (rule:never); ask the operator to change rule:never, which `toolcrib policy list` shows]";
    assert!(reply.contains(refused), "{reply}");
    assert!(
        reply.contains("[network: missing.test:80 cannot be resolved: no such host]"),
        "{reply}"
    );
    let allowed = listed.connections("a.ok.test");
    crate::eventually(|| listed.connections("a.ok.test").len() == 2);
    assert_eq!((allowed[0].decision.as_str(), allowed[0].rule.as_str()), ("allowed", "rule:tests"));
    assert!(allowed[0].received > 6 && allowed[0].sent > 10, "{allowed:?}");
    assert!(allowed[0].address.as_ref().unwrap().starts_with("127.0.0.1:"));
    let refused = listed.connections("no.ok.test");
    assert_eq!(refused[0].decision, "refused");
    assert_eq!(listed.connections("missing.test")[0].decision, "failed");
    let recorded = listed.recorded.0.lock();
    let of = |host: &str| -> Vec<(&str, bool)> {
        let entries = recorded.iter().filter(|entry| entry.host == host);
        entries.map(|entry| (entry.decision.as_str(), entry.is_open)).collect()
    };
    assert_eq!(of("no.ok.test"), [("refused", false)]);
    let allowed = of("a.ok.test");
    assert_eq!(allowed.iter().filter(|(_, is_open)| *is_open).count(), 2, "{allowed:?}");
    assert_eq!(allowed.len(), 4, "each has a beginning and an end");
}

#[test]
fn metadata_names_hosts_and_decisions() {
    let listed = Listed::new();
    let call = json!({"command": "h=$(echo other.test); curl -s http://$h/; curl -s http://a.ok.test/hello"});
    let reply = listed.call("Bash", call, &toolcrib::NoApprover).unwrap();
    let hosts = &reply.metadata()["hosts"];
    assert_eq!(hosts[0]["host"], "other.test:80");
    assert_eq!(hosts[0]["decision"], "refused");
    assert_eq!(hosts[0]["rule"], "network:list");
    assert_eq!(hosts[1]["decision"], "allowed");
    assert_eq!(reply.metadata()["network"], "list");
}

#[test]
fn a_refusal_says_what_would_allow_it() {
    let listed = Listed::new();
    let reply = listed.bash("h=$(echo other.test); curl -s https://$h/");
    let line = "[network: other.test:443 refused: no rule allows other.test:443 (network:list); ask the operator to run `toolcrib policy allow network other.test:443`]";
    assert!(reply.contains(line), "{reply}");
    let reply = listed.bash("curl -sS --max-time 20 \"https://other.test:${PORT:-444}/\"");
    assert!(reply.contains("policy allow network other.test:444`]"), "{reply}");
    let reply = listed.bash("curl -sS https://other.test/");
    assert!(reply.contains("was not allowed: no rule allows other.test:443"), "{reply}");
    assert!(reply.contains("run `toolcrib policy allow network other.test:443`"), "{reply}");
}

#[test]
fn a_job_in_the_background_is_told_about_with_its_output() {
    let listed = Listed::new();
    let call = json!({"command": "curl -s http://a.ok.test/hello", "run_in_background": true});
    let started = listed.call("Bash", call, &toolcrib::NoApprover).unwrap();
    let id = started.metadata()["bash_id"].as_str().unwrap().to_owned();
    let call = json!({"bash_id": id, "wait_for": "exit"});
    let reply = listed.call("BashOutput", call, &toolcrib::NoApprover).unwrap();
    assert!(reply.output().contains("hello"), "{}", reply.output());
    assert!(reply.output().contains("[network: a.ok.test:80 allowed by rule:tests]"));
}

#[test]
fn sessions_do_not_share_their_hosts() {
    let listed = Listed::new();
    let other = listed.runtime.session();
    listed.bash("curl -s http://a.ok.test/hello");
    let call = Call::new("Bash", json!({"command": "exec 3<> /dev/tcp/198.18.0.1/80"}));
    let error = listed.runtime.call(&other, call, Options::default()).unwrap_err();
    assert!(error.text().to_string().contains("Network is unreachable"), "{error}");
    assert!(listed.top.path().join("ws").is_dir());
}

/// A command that names loopback starts without a question. It reaches servers of the session, and none of this machine.
#[test]
fn own_loopback_needs_no_rule() {
    let listed = Listed::new();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().port();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script =
        format!("mkdir -p site; echo served > site/x; exec {PYTHON} -m http.server -d site {free}");
    let call = json!({"command": script, "run_in_background": true});
    let started = listed.call("Bash", call, &toolcrib::NoApprover).unwrap();
    let id = started.metadata()["bash_id"].clone();
    let call = json!({"bash_id": id, "wait_for": "port", "filter": free.to_string()});
    listed.call("BashOutput", call, &toolcrib::NoApprover).unwrap();
    let reply = listed.bash(&format!(
        "curl -s http://127.0.0.1:{free}/x http://localhost:{free}/x http://0.0.0.0:{free}/x"
    ));
    assert_eq!(reply.matches("served").count(), 3, "{reply}");
    let reply =
        listed.bash(&format!("PORT=$(echo {free}); curl -s \"http://localhost:${{PORT}}/x\""));
    assert!(reply.contains("served"), "{reply}");
    let reply = listed
        .bash(&format!("curl -sS http://127.0.0.1:{taken}/ || curl -sS http://localhost:{taken}/"));
    assert!(reply.contains("localhost is that of this session's commands"), "{reply}");
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err(), "the server of this machine has a connection");
}

/// A port that is free, and that the kernel gives to no connection meanwhile: those have ports above 32767. Tests run in
/// processes of their own, so that each begins elsewhere.
fn free_port_beside(taken: u16) -> u16 {
    let first = 10_000 + u16::try_from(std::process::id() % 20_000).unwrap();
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (first..32_768).find(|port| *port != taken && is_free(port)).unwrap()
}

/// A server of a command is reachable from outside on the ports that the operator opens, and on no others.
#[test]
fn exposed_ports_are_reachable_from_outside() {
    let open = free_port_beside(0);
    let closed = free_port_beside(open);
    let listed = Listed::exposing(&[open]);
    let serve = |port: u16| {
        let script = format!(
            "mkdir -p site; echo served > site/x; exec {PYTHON} -m http.server -d site {port}"
        );
        let call = json!({"command": script, "run_in_background": true});
        let started = listed.call("Bash", call, &toolcrib::NoApprover).unwrap();
        let id = started.metadata()["bash_id"].clone();
        let call = json!({"bash_id": id, "wait_for": "port", "filter": port.to_string()});
        listed.call("BashOutput", call, &toolcrib::NoApprover).unwrap().output().to_owned()
    };
    let get = |port: u16| {
        let url = format!("http://127.0.0.1:{port}/x");
        let got = Command::new("curl").args(["-s", "--max-time", "20", &url]).output().unwrap();
        String::from_utf8_lossy(&got.stdout).into_owned()
    };
    let reply = serve(open);
    let expected =
        format!("[listens on port {open}: http://127.0.0.1:{open} on this machine leads to it]");
    assert!(reply.contains(&expected), "{reply}");
    assert_eq!(get(open), "served\n");
    assert!(serve(closed).contains("only commands of this session can reach it; expose = ["));
    assert_eq!(get(closed), "");
}

/// Only a TCP server opens its port outside.
#[test]
fn a_datagram_socket_exposes_no_port() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listed = Listed::exposing(&[port]);
    listed.bash(&format!(
        "{PYTHON} -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind((\"127.0.0.1\", {port}))'"
    ));
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}
