//! Inspected hosts, with real clients: rules on methods and paths, credentials, trust.

mod attacks;
mod credentials;
mod http2;

use std::path::Path;

use toolcrib::{Injection, InspectionSettings};

use super::*;

/// Logs each request that arrives, and has a git repository that accepts pushes.
const INSPECTED_SERVER: &str = include_str!("inspected_server.py");

/// The rules of the tests. `git.ok.test` has those of the preset `git-read`.
const RULES: &str = r#"
    [[rule]]
    name = "read"
    decision = "allow"
    kind = "network"
    hosts = ["api.ok.test", "h2.ok.test"]
    methods = ["GET", "HEAD"]
    paths = ["/v1/**"]

    [[rule]]
    name = "size"
    decision = "allow"
    kind = "network"
    hosts = ["api.ok.test:443", "h2.ok.test"]
    methods = ["POST"]
    paths = ["/v1/size"]

    [[rule]]
    name = "chat"
    decision = "allow"
    kind = "network"
    hosts = ["api.ok.test:443"]
    methods = ["GET"]
    paths = ["/chat"]
    upgrade = true

    [[rule]]
    name = "private"
    decision = "deny"
    kind = "network"
    hosts = ["api.*.test", "h2.ok.test"]
    paths = ["/v1/private"]
    why = "it is private"

    [[rule]]
    name = "fetch-refs"
    decision = "allow"
    kind = "network"
    hosts = ["git.ok.test:443"]
    methods = ["GET"]
    paths = ["/**/info/refs?service=git-upload-pack"]

    [[rule]]
    name = "fetch"
    decision = "allow"
    kind = "network"
    hosts = ["git.ok.test:443"]
    methods = ["POST"]
    paths = ["/**/git-upload-pack"]

    [[rule]]
    name = "open"
    decision = "allow"
    kind = "network"
    hosts = ["open.ok.test"]
"#;

/// A rule that allows everything to hosts that get a credential, and no rule on requests.
const CREDENTIAL_RULES: &str = r#"
    [[rule]]
    name = "all"
    decision = "allow"
    kind = "network"
    hosts = ["*.ok.test"]
"#;

/// A runtime with inspected hosts.
struct Inspected {
    top: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
    server: Server,
}

impl Inspected {
    fn new() -> Inspected {
        Inspected::with(RULES, Vec::new(), HashMap::new(), Vec::new())
    }

    fn with(
        rules: &str,
        injections: Vec<Injection>,
        ports: HashMap<u16, u16>,
        variables: Vec<(&str, &str)>,
    ) -> Inspected {
        Inspected::on(
            Server::running(INSPECTED_SERVER, "ca.pem"),
            rules,
            injections,
            ports,
            variables,
        )
    }

    fn on(
        server: Server,
        rules: &str,
        injections: Vec<Injection>,
        mut ports: HashMap<u16, u16>,
        variables: Vec<(&str, &str)>,
    ) -> Inspected {
        let top = crate::command_directory();
        let home = top.path().join("ws/home");
        std::fs::create_dir_all(&home).unwrap();
        ports.extend([(80, server.http), (443, server.https)]);
        let addresses: Vec<String> =
            ports.values().map(|port| format!("\"127.0.0.1:{port}\"")).collect();
        let rules = format!(
            "{rules}\n[[rule]]\ndecision = \"allow\"\nkind = \"network\"\nhosts = [{}]\n",
            addresses.join(", ")
        );
        let path = std::env::var_os("PATH").unwrap();
        let mut environment = vec![("PATH".into(), path), ("HOME".into(), home.into_os_string())];
        environment.extend(variables.iter().map(|(name, value)| (name.into(), value.into())));
        let roots = Some(server.certificate.clone().into());
        let runtime = Runtime::builder()
            .root(top.path().join("ws"))
            .journal(top.path().join("state"), Caps::default())
            .profile(Profile::Workspace)
            .rules(Rules::parse(&rules).unwrap())
            .sandbox(SandboxSettings { network: Network::List, ..SandboxSettings::default() })
            .inspection(InspectionSettings { injections, roots })
            .resolver(TestResolver { ports })
            .environment(move || environment.clone())
            .helper(crate::helper())
            .build()
            .unwrap();
        let session = runtime.session();
        Inspected { top, runtime, session, server }
    }

    fn bash(&self, command: &str) -> String {
        let command = command.replace("@CA@", &self.server.certificate);
        let call = Call::new("Bash", json!({"command": command}));
        match self.runtime.call(&self.session, call, Options::default()) {
            Ok(reply) => reply.output().to_owned(),
            Err(error) => error.text().to_string(),
        }
    }

    /// Runs a Python program from a file.
    fn python(&self, program: &str) -> String {
        std::fs::write(self.top.path().join("ws/run.py"), program).unwrap();
        self.bash("/usr/bin/python3 run.py")
    }

    /// The requests that have arrived, as `METHOD PATH`, with their headers.
    fn arrived(&self) -> Vec<(String, Vec<(String, String)>)> {
        let directory = Path::new(&self.server.certificate).parent().unwrap();
        let log = std::fs::read_to_string(directory.join("requests.log")).unwrap_or_default();
        log.lines()
            .map(|line| {
                let (method, path, headers): (String, String, Vec<(String, String)>) =
                    serde_json::from_str(line).unwrap();
                (format!("{method} {path}"), headers)
            })
            .collect()
    }

    fn arrived_lines(&self) -> Vec<String> {
        self.arrived().into_iter().map(|(line, _)| line).collect()
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).exists())
}

#[test]
fn each_request_is_decided_on() {
    let inspected = Inspected::new();
    let reply = inspected.bash(
        "h=$(echo ok.test); curl -sS https://api.$h/v1/items?token=abc https://api.$h/v1/private https://api.$h/other; \
         curl -sS -X DELETE https://api.$h/v1/items; curl -sS -d abcde https://api.$h/v1/size; \
         curl -sS http://api.$h/v1/plain; curl -sS -d x http://api.$h/v1/size",
    );
    assert!(reply.contains("GET /v1/items?token=abc\n"), "{reply}");
    assert!(reply.contains("\n5\n") && reply.contains("GET /v1/plain\n"), "{reply}");
    let refused = "Toolcrib refused DELETE /v1/items on api.ok.test:443: no rule allows DELETE /v1/items on api.ok.test:443 (network:list).";
    assert!(reply.contains(refused), "{reply}");
    assert!(reply.contains("Toolcrib refused POST /v1/size on api.ok.test:80"), "{reply}");
    assert!(reply.contains("[network: api.ok.test:443 allowed by rule:read]"), "{reply}");
    let note = "[network: GET /v1/private on api.ok.test:443 refused: it is private (rule:private); ask the operator to change rule:private, which `toolcrib policy list` shows]";
    assert!(reply.contains(note), "{reply}");
    assert!(reply.contains("ask the operator to run `toolcrib policy allow network --method DELETE --path /v1/items api.ok.test:443`"), "{reply}");
    assert_eq!(
        inspected.arrived_lines(),
        ["GET /v1/items?token=abc", "POST /v1/size", "GET /v1/plain"]
    );
    let logged = inspected.runtime.connections().unwrap();
    let refusal = logged
        .iter()
        .find(|entry| entry.why.as_deref().is_some_and(|why| why.starts_with("GET /other: ")));
    assert_eq!(refusal.unwrap().decision, "refused");
    assert!(!format!("{logged:?}").contains("token"), "queries are not logged");
    crate::eventually(|| {
        let logged = inspected.runtime.connections().unwrap();
        logged
            .iter()
            .any(|entry| entry.decision == "allowed" && !entry.is_open && entry.received > 20)
    });
}

#[test]
fn metadata_names_refused_requests() {
    let inspected = Inspected::new();
    let call = json!({"command": "curl -s -d x https://api.ok.test/v1/items"});
    let reply =
        inspected.runtime.call(&inspected.session, Call::new("Bash", call), Options::default());
    let hosts = reply.unwrap().metadata()["hosts"].clone();
    let refused =
        hosts.as_array().unwrap().iter().find(|host| host["decision"] == "refused").unwrap();
    assert_eq!(
        (&refused["host"], &refused["request"]),
        (&json!("api.ok.test:443"), &json!("POST /v1/items"))
    );
}

/// Clients trust the authority by the files that they see, and by a few variables.
#[test]
fn clients_accept_the_certificate() {
    let inspected = Inspected::new();
    for (program, script) in [
        ("curl", "curl -sS https://api.ok.test/v1/x"),
        ("wget", "wget -nv -O - https://api.ok.test/v1/x"),
        (
            "python3",
            "env -u SSL_CERT_FILE /usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen(\"https://api.ok.test/v1/x\").read().decode())'",
        ),
        (
            "openssl",
            "env -u SSL_CERT_FILE openssl s_client -connect api.ok.test:443 -verify_return_error -quiet <<< $'GET /v1/x HTTP/1.1\\r\\nHost: api.ok.test\\r\\nConnection: close\\r\\n\\r'",
        ),
        (
            "node",
            "node -e 'fetch(\"https://api.ok.test/v1/x\").then(r => r.text()).then(console.log).catch(e => console.log(e.cause))'",
        ),
        (
            "java",
            "cat > Get.java <<'END'\nimport java.net.*; import java.net.http.*;\nclass Get { public static void main(String[] a) throws Exception {\nvar r = HttpRequest.newBuilder(URI.create(\"https://api.ok.test/v1/x\")).build();\nSystem.out.println(HttpClient.newHttpClient().send(r, HttpResponse.BodyHandlers.ofString()).body()); } }\nEND\njava Get.java",
        ),
    ] {
        if is_installed(program) {
            let reply = inspected.bash(script);
            assert!(reply.contains("GET /v1/x\n"), "{program}\n{reply}");
        }
    }
}

#[test]
fn git_fetches_and_does_not_push() {
    let inspected = Inspected::new();
    let reply = inspected.bash(
        "git clone -q https://git.ok.test/repo.git clone && cat clone/file && cd clone && git fetch -q && echo fetched; \
         git -c user.name=t -c user.email=t@t commit -q --allow-empty -m more; git push origin HEAD:main; echo status $?",
    );
    assert!(reply.contains("content\nfetched\n"), "{reply}");
    assert!(reply.contains("403") && !reply.contains("status 0"), "{reply}");
    assert!(
        reply.contains("[network: GET /repo.git/info/refs on git.ok.test:443 refused"),
        "{reply}"
    );
    let arrived = inspected.arrived_lines().join("\n");
    assert!(arrived.contains("POST /repo.git/git-upload-pack"), "{arrived}");
    assert!(!arrived.contains("git-receive-pack"), "{arrived}");
    // The same client reaches the same server where the rule does not restrict it.
    let reply = inspected.bash(
        "GIT_SSL_CAINFO=@CA@ git push -q https://open.ok.test/repo.git HEAD:main && echo pushed",
    );
    assert!(reply.contains("pushed"), "{reply}");
}

#[test]
fn large_bodies_stream_in_both_directions() {
    let inspected = Inspected::new();
    let reply = inspected.bash(
        "curl -sS https://api.ok.test/v1/large -o large && wc -c < large; curl -sS --data-binary @large https://api.ok.test/v1/size; \
         curl -sS -H 'Transfer-Encoding: chunked' --data-binary @large https://api.ok.test/v1/size; \
         curl -sS https://api.ok.test/v1/last https://api.ok.test/v1/again",
    );
    assert!(reply.starts_with("8388608\n8388608\n8388608\nlast\nGET /v1/again\n"), "{reply}");
}

#[test]
fn upgrades_need_a_rule_that_says_so() {
    let inspected = Inspected::new();
    let program = r#"
import socket, ssl, sys
def upgrade(host, path, ca=None):
    tls = ssl.create_default_context(cafile=ca).wrap_socket(socket.create_connection((host, 443)), server_hostname=host)
    tls.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += tls.recv(1000)
    status = head.split(b" ")[1].decode()
    if status == "101":
        tls.sendall(b"hello")
        while not head.endswith(b"echo:hello"):
            head += tls.recv(1000)
    print(path, status)
upgrade("api.ok.test", "/chat")
upgrade("api.ok.test", "/v1/chat")
"#;
    let reply = inspected.python(program);
    assert!(reply.starts_with("/chat 101\n/v1/chat 403\n"), "{reply}");
    assert!(reply.contains("with an upgrade on api.ok.test:443"), "{reply}");
}

/// A host that does not have a trusted certificate is not reached.
#[test]
fn hosts_are_verified() {
    let server = Server::running(INSPECTED_SERVER, "ca.pem");
    let other = Server::running(INSPECTED_SERVER, "ca.pem");
    let ports = HashMap::from([(8443, other.https)]);
    let inspected = Inspected::on(server, RULES, Vec::new(), ports, Vec::new());
    let reply = inspected.bash("curl -sS -w '%{http_code}\\n' https://api.ok.test:8443/v1/x");
    assert!(
        reply.contains("502") && reply.contains("TLS failed: invalid peer certificate"),
        "{reply}"
    );
    let directory = Path::new(&other.certificate).parent().unwrap();
    assert_eq!(std::fs::read_to_string(directory.join("requests.log")).unwrap(), "");
}

/// Hosts without such a rule are not inspected, also in the same session.
#[test]
fn other_hosts_are_not_inspected() {
    let inspected = Inspected::new();
    let reply = inspected.bash(
        "curl -sS --cacert @CA@ -d x https://open.ok.test/any; curl -sS https://open.ok.test/any; echo status $?",
    );
    assert!(reply.starts_with("POST /any\n") && reply.contains("status 60"), "{reply}");
}

/// Without rules on requests and without credentials, commands see the system as it is.
#[test]
fn without_inspected_hosts_nothing_is_mounted_or_set() {
    let inspected = Inspected::with(CREDENTIAL_RULES, Vec::new(), HashMap::new(), Vec::new());
    let reply = inspected.bash("env | grep -c 'CA_CERTS\\|SSL_CERT\\|CA_BUNDLE'; ls /run; grep -c ssl /proc/self/mountinfo");
    assert!(reply.starts_with("0\n0\n"), "{reply}");
    let inspected = Inspected::new();
    let reply = inspected.bash(
        "ls /run/toolcrib; cat /run/toolcrib/* /etc/ssl/certs/ca-certificates.crt | grep -c PRIVATE; \
         openssl x509 -in /run/toolcrib/ca.pem -noout -subject_hash; ls /etc/ssl/certs | grep -c \"$(openssl x509 -in /run/toolcrib/ca.pem -noout -subject_hash)\"; \
         echo x > /run/toolcrib/ca.pem; rm /run/toolcrib/ca-bundle.pem; touch /etc/ssl/certs/x",
    );
    assert!(reply.contains("ca-bundle.pem\nca.pem\n0\nb8ac5978\n1\n"), "{reply}");
    assert_eq!(reply.matches("Read-only file system").count(), 2, "{reply}");
    assert!(reply.contains("Device or resource busy"), "{reply}");
}
