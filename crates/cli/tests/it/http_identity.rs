//! `toolcrib serve --http --identity`: callers with access tokens of an identity provider.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcrib_testkit::{SigningKey, TokenIssuer, now, self_signed_certificate};

use crate::http::{Server, post, read_call, right_headers, status};
use crate::http_sessions::message;
use crate::{command_directory, text, toolcrib};

/// A server, and the issuer that it trusts.
struct Identified {
    server: Server,
    issuer: TokenIssuer,
    key: SigningKey,
}

const SOLE: [&str; 9] = [
    "serve",
    "--root",
    "ws",
    "--state",
    "state",
    "--http",
    "localhost:0",
    "--identity",
    "identity.toml",
];

impl Identified {
    /// A server with one workspace, with more lines for the issuer and for the file.
    fn start(of_issuer: &str, grants: &str, flags: &[&str]) -> Identified {
        Identified::run(&[&SOLE[..], flags].concat(), of_issuer, grants)
    }

    fn run(words: &[&str], of_issuer: &str, grants: &str) -> Identified {
        Identified::run_in(command_directory(), words, of_issuer, grants)
    }

    /// `ISSUER` in the lines for the issuer stands for its URL.
    fn run_in(top: TempDir, words: &[&str], of_issuer: &str, grants: &str) -> Identified {
        for name in ["ws", "all/a", "all/b"] {
            fs::create_dir_all(top.path().join(name)).unwrap();
            fs::write(top.path().join(name).join("a.txt"), format!("canary of {name}\n")).unwrap();
        }
        let ask = "[[rule]]\ndecision = \"ask\"\nkind = \"edit\"\npaths = [\"asked.txt\"]\n";
        fs::write(top.path().join("rules.toml"), ask).unwrap();
        let (chain, secret) = self_signed_certificate();
        write_private(&top.path().join("key.pem"), &secret);
        fs::write(top.path().join("cert.pem"), chain).unwrap();
        let key = SigningKey::ec();
        let issuer = TokenIssuer::start(&[key.jwk("k")]);
        let of_issuer = of_issuer.replace("ISSUER", issuer.url());
        let text = format!("[[issuer]]\nurl = \"{}\"\n{of_issuer}\n{grants}\n", issuer.url());
        write_private(&top.path().join("identity.toml"), &text);
        Identified { server: Server::run(top, words), issuer, key }
    }

    fn resource(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.server.port())
    }

    fn tls_port(&self) -> u16 {
        let rest = self.server.said().split("https://127.0.0.1:").nth(1).unwrap();
        rest.split('/').next().unwrap().parse().unwrap()
    }

    fn sign(&self, claims: &Value) -> String {
        self.key.token(&json!({"alg": "ES256", "kid": "k", "typ": "at+jwt"}), claims)
    }

    fn bearer(&self, subject: &str, audience: &str, scope: &str) -> String {
        format!("Bearer {}", self.sign(&self.issuer.claims(subject, audience, scope)))
    }

    /// The response to a message at a path.
    fn send(&self, path: &str, bearer: &str, message: &Value) -> String {
        let mut headers = right_headers("localhost", bearer);
        headers.retain(|(name, _)| *name != "Mcp-Name" && *name != "Mcp-Method");
        headers.push(("Mcp-Method", message["method"].as_str()));
        headers.push(("Mcp-Name", message["params"]["name"].as_str()));
        self.server.ask(&post(path, &headers, message))
    }

    fn call(&self, path: &str, bearer: &str, tool: &str, arguments: Value) -> String {
        self.send(path, bearer, &call(tool, arguments))
    }

    fn read(&self, bearer: &str) -> String {
        self.server.post(&[("Authorization", Some(bearer))])
    }
}

fn write_private(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

fn call(tool: &str, arguments: Value) -> Value {
    let mut call = read_call("");
    call["params"]["name"] = tool.into();
    call["params"]["arguments"] = arguments;
    call
}

fn challenge(answer: &str) -> &str {
    let mut lines = answer.split("\r\n");
    lines.find_map(|line| line.strip_prefix("www-authenticate: ")).unwrap_or_default()
}

fn json_of(answer: &str) -> Value {
    let mut found = answer.lines().filter_map(|line| {
        let line = line.strip_prefix("data: ").unwrap_or(line);
        serde_json::from_str::<Value>(line).ok().filter(Value::is_object)
    });
    found.next_back().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn a_client_is_told_how_to_get_a_token() {
    let all = Identified::start("", "", &[]);
    let (server, resource) = (&all.server, all.resource());
    let origin = resource.strip_suffix("/mcp").unwrap();
    let metadata = format!("{origin}/.well-known/oauth-protected-resource/mcp");
    let rest = format!("scope=\"read write exec\", resource_metadata=\"{metadata}\"");
    let answer = server.post(&[("Authorization", None)]);
    assert_eq!((status(&answer), challenge(&answer)), ("401", format!("Bearer {rest}").as_str()));
    for path in ["", "/mcp"] {
        let request = format!(
            "GET /.well-known/oauth-protected-resource{path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        );
        let answer = server.ask(&request);
        assert_eq!(status(&answer), "200", "{answer}");
        let document = json_of(&answer);
        assert_eq!(document["resource"], resource.as_str());
        assert_eq!(document["authorization_servers"], json!([all.issuer.url()]));
    }
    let bearer = all.bearer("alice", &resource, "read");
    let answer = all.read(&bearer);
    assert_eq!(status(&answer), "200", "{answer}");
    assert!(answer.contains("canary of ws"), "{answer}");
    // The token of a server without identities has no meaning here.
    assert!(!server.directory.path().join("state/http-token").exists());
}

#[test]
fn other_tokens_are_refused_before_a_tool_runs() {
    let all = Identified::start("", "", &[]);
    let resource = all.resource();
    let with = |name: &str, value: Value| {
        let mut claims = all.issuer.claims("alice", &resource, "read");
        claims[name] = value;
        format!("Bearer {}", all.sign(&claims))
    };
    let right = all.issuer.claims("alice", &resource, "read");
    let unsigned = SigningKey::Unsigned.token(&json!({"alg": "none"}), &right);
    let secret = SigningKey::Secret(all.key.public());
    let secret = secret.token(&json!({"alg": "HS256", "kid": "k"}), &right);
    let stranger = SigningKey::ec().token(&json!({"alg": "ES256", "kid": "k"}), &right);
    for (bearer, problem) in [
        (with("exp", json!(now() - 600)), "expired"),
        (with("nbf", json!(now() + 600)), "not valid yet"),
        (with("aud", json!("https://other.example")), "another audience"),
        (with("aud", json!(resource.strip_suffix("/mcp").unwrap())), "another audience"),
        (with("iss", json!("https://other.example")), "issuer"),
        (format!("Bearer {unsigned}"), "algorithm"),
        (format!("Bearer {secret}"), "algorithm"),
        (format!("Bearer {stranger}"), "signature"),
        ("Bearer nonsense".to_owned(), "not a signed JWT"),
        (format!("Bearer {}", "x".repeat(20_000)), "too long"),
    ] {
        let answer = all.read(&bearer);
        assert_eq!(status(&answer), "401", "{problem}: {answer}");
        let challenge = challenge(&answer);
        assert!(challenge.starts_with("Bearer error=\"invalid_token\", "), "{challenge}");
        assert!(challenge.contains(problem) && challenge.contains("resource_metadata="));
    }
    let bearer = all.bearer("alice", &resource, "read");
    let token = bearer.strip_prefix("Bearer ").unwrap();
    let in_query = all.server.request(&format!("/mcp?access_token={token}"), &[]);
    let twice = all.server.request("/mcp", &[("Authorization", Some(&bearer))]);
    let twice = twice.replacen("Host:", &format!("Authorization: {bearer}\r\nHost:"), 1);
    for request in [in_query, twice] {
        let answer = all.server.ask(&request);
        assert_eq!(status(&answer), "400", "{answer}");
        assert!(challenge(&answer).contains("invalid_request"), "{answer}");
    }
    // The usual checks still apply.
    let evil = [("Authorization", Some(bearer.as_str())), ("Host", Some("evil.example"))];
    assert_eq!(status(&all.server.post(&evil)), "403");
}

#[test]
fn a_token_allows_the_tools_of_its_scopes() {
    let all = Identified::start("", "", &[]);
    let resource = all.resource();
    let arguments = |tool: &str| match tool {
        "Bash" => json!({"command": "echo done"}),
        "Write" => json!({"file_path": "new.txt", "content": "new\n"}),
        "Undo" => json!({"dry_run": true}),
        "Read" => json!({"file_path": "a.txt"}),
        _ => json!({}),
    };
    for (scope, allowed) in [
        ("read", &["Read", "LS", "History"][..]),
        ("write", &["Read", "LS", "History", "Write", "Undo"]),
        ("exec", &["Read", "LS", "History", "Write", "Undo", "Bash", "ListShells"]),
        ("admin", &["Read", "LS", "History", "Write", "Undo", "Bash", "ListShells"]),
    ] {
        let bearer = all.bearer("alice", &resource, scope);
        for (tool, needed) in [
            ("Read", "read"),
            ("LS", "read"),
            ("History", "read"),
            ("Write", "write"),
            ("Undo", "write"),
            ("Bash", "exec"),
            ("shell", "exec"),
            ("ListShells", "exec"),
        ] {
            let answer = all.call("/mcp", &bearer, tool, arguments(tool));
            let is_allowed =
                allowed.contains(&tool) || (tool == "shell" && allowed.contains(&"Bash"));
            let expected = if is_allowed { "200" } else { "403" };
            assert_eq!(status(&answer), expected, "{scope} {tool}: {answer}");
            if !is_allowed {
                let expected = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\", ");
                assert!(challenge(&answer).starts_with(&expected), "{answer}");
            }
        }
        // All of them are listed: the client can ask for more.
        let listed = all.send("/mcp", &bearer, &listing());
        assert!(listed.contains("\"Bash\"") && listed.contains("\"Write\""), "{listed}");
    }
    let none = all.read(&all.bearer("alice", &resource, "openid"));
    assert_eq!(status(&none), "403", "{none}");
    assert!(challenge(&none).contains("scope=\"read write exec\""), "{none}");
}

fn listing() -> Value {
    let mut listing = message("tools/list", json!({}));
    listing["params"]["_meta"] = read_call("")["params"]["_meta"].clone();
    listing
}

#[test]
fn grants_limit_what_a_token_allows() {
    let grants = "[[grant]]\nsubject = \"alice\"\nscopes = [\"read\"]\n\
                  [[grant]]\nclaim = \"groups\"\nvalues = [\"builders\"]\nscopes = [\"exec\"]\n";
    let all = Identified::start("scope_prefix = \"toolcrib:\"", grants, &[]);
    let resource = all.resource();
    let alice = all.bearer("alice", &resource, "toolcrib:exec toolcrib:read");
    assert_eq!(status(&all.read(&alice)), "200");
    let refused = all.call("/mcp", &alice, "Bash", json!({"command": "true"}));
    // Another token would not help, so the client is not told to get one.
    assert_eq!((status(&refused), challenge(&refused)), ("403", ""), "{refused}");
    let listed = all.send("/mcp", &alice, &listing());
    assert!(listed.contains("\"Read\"") && !listed.contains("\"Bash\""), "{listed}");
    let mut claims = all.issuer.claims("bob", &resource, "toolcrib:exec");
    let bob = format!("Bearer {}", all.sign(&claims));
    assert_eq!(status(&all.read(&bob)), "403");
    claims["groups"] = json!(["builders"]);
    let builder = format!("Bearer {}", all.sign(&claims));
    let done = all.call("/mcp", &builder, "Bash", json!({"command": "echo done"}));
    assert!(done.contains("done"), "{done}");
    let unprefixed = all.bearer("alice", &resource, "read exec");
    assert!(challenge(&all.read(&unprefixed)).contains("scope=\"toolcrib:read "));
}

#[test]
fn the_session_of_one_caller_is_of_no_use_to_another() {
    let all = Identified::start("", "", &["--profile", "open"]);
    let resource = all.resource();
    let [alice, bob] = ["alice", "bob"].map(|name| all.bearer(name, &resource, "exec"));
    let send = |bearer: &str, session: Option<&str>, method: &str, message: &Value| {
        let mut headers = right_headers("localhost", bearer);
        headers.retain(|(name, _)| !name.starts_with('M'));
        headers.push(("Mcp-Session-Id", session));
        all.server.ask(&post("/mcp", &headers, message).replacen("POST", method, 1))
    };
    let begin = message(
        "initialize",
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }),
    );
    let begun = send(&alice, None, "POST", &begin);
    let id = begun.split("mcp-session-id: ").nth(1).unwrap().split('\r').next().unwrap();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(status(&send(&alice, Some(id), "POST", &ready)), "202");
    let bash = |command: &str| {
        message("tools/call", json!({"name": "Bash", "arguments": {"command": command}}))
    };
    send(&alice, Some(id), "POST", &bash("export MARK=canary"));
    for method in ["POST", "GET", "DELETE"] {
        let answer = send(&bob, Some(id), method, &bash("echo $MARK"));
        assert_eq!(status(&answer), "404", "{method}: {answer}");
    }
    // Another token of the same caller is as good.
    let again = all.bearer("alice", &resource, "exec approve");
    let answer = send(&again, Some(id), "POST", &bash("echo $MARK"));
    assert!(answer.contains("canary"), "{answer}");
    // The names of shared sessions and the connections are those of each caller, too.
    let shared = |bearer: &str, command: &str| {
        let call = call("Bash", json!({"command": command}));
        let mut headers = right_headers("localhost", bearer);
        headers.retain(|(name, _)| *name != "Mcp-Name");
        headers.extend([("Mcp-Name", Some("Bash")), ("Toolcrib-Session", Some("work"))]);
        all.server.ask(&post("/mcp", &headers, &call))
    };
    shared(&alice, "export MARK=canary");
    assert!(shared(&alice, "echo $MARK").contains("canary"));
    assert!(!shared(&bob, "echo $MARK").contains("canary"));
}

#[test]
fn only_a_caller_with_the_scope_answers_questions() {
    let all = Identified::start("", "", &["--rules", "rules.toml", "--no-monitor"]);
    let resource = all.resource();
    let mut call = call("Write", json!({"file_path": "asked.txt", "content": "new\n"}));
    call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"elicitation": {}});
    let agent = all.bearer("agent", &resource, "write");
    let person = all.bearer("agent", &resource, "write approve");
    let denied = json_of(&all.send("/mcp", &agent, &call));
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    let asked = json_of(&all.send("/mcp", &person, &call));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    call["params"]["requestState"] = asked["result"]["requestState"].clone();
    call["params"]["inputResponses"] =
        json!({"permission": {"action": "accept", "content": {"answer": "once"}}});
    let refused = all.send("/mcp", &agent, &call);
    assert_eq!(status(&refused), "403", "{refused}");
    assert!(challenge(&refused).contains("scope=\"write approve\""), "{refused}");
    let file = all.server.directory.path().join("ws/asked.txt");
    assert!(!file.exists());
    let written = all.send("/mcp", &person, &call);
    assert!(file.exists(), "{written}");
}

#[test]
fn no_form_of_an_answer_goes_without_the_scope() {
    let all = Identified::start("", "", &["--rules", "rules.toml", "--no-monitor"]);
    let resource = all.resource();
    let person = all.bearer("agent", &resource, "write approve");
    let agent = all.bearer("agent", &resource, "write");
    let send = |bearer: &str, session: Option<&str>, message: &Value| {
        let mut headers = right_headers("localhost", bearer);
        headers.retain(|(name, _)| !name.starts_with('M'));
        headers.push(("Mcp-Session-Id", session));
        all.server.ask(&post("/mcp", &headers, message))
    };
    let begin = message(
        "initialize",
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"},
        }),
    );
    let begun = send(&person, None, &begin);
    let id = begun.split("mcp-session-id: ").nth(1).unwrap().split('\r').next().unwrap();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(status(&send(&person, Some(id), &ready)), "202");
    let answer = json!({
        "jsonrpc": "2.0",
        "id": 0,
        "result": {"action": "accept", "content": {"answer": "once"}},
    });
    let mut with_params = answer.clone();
    with_params["params"] = json!(5);
    let error = json!({"jsonrpc": "2.0", "id": 0, "error": {"code": 1, "message": "no"}});
    for answer in [answer, with_params, error] {
        let refused = send(&agent, Some(id), &answer);
        assert_eq!(status(&refused), "403", "{answer}: {refused}");
        assert!(challenge(&refused).contains("scope=\"approve\""), "{refused}");
        assert_eq!(status(&send(&person, Some(id), &answer)), "202", "{answer}");
    }
}

#[test]
fn the_audit_log_names_the_caller() {
    let all = Identified::start("", "", &[]);
    let bearer = all.bearer("alice", &all.resource(), "read");
    assert_eq!(status(&all.read(&bearer)), "200");
    let top = all.server.directory.path();
    let export = |format: &str| {
        let words = ["log", "export", "--root", "ws", "--state", "state", "--format", format];
        let done = toolcrib(top, &words, b"");
        let line = text(&done.stdout).lines().next().unwrap_or_else(|| panic!("{done:?}"));
        assert!(!line.contains(bearer.strip_prefix("Bearer ").unwrap()));
        serde_json::from_str::<Value>(line).unwrap()
    };
    let record = export("jsonl");
    let expected = json!({"issuer": all.issuer.url(), "subject": "alice"});
    assert_eq!(record["principal"], expected, "{record}");
    let actor = export("ocsf")["actor"].clone();
    assert_eq!(actor["user"]["uid"], "alice", "{actor}");
    assert_eq!(actor["idp"]["name"], all.issuer.url());
    assert_eq!(actor["process"]["user"]["uid"], record["user"].to_string());
}

#[test]
fn tools_do_not_see_the_files_of_the_operator() {
    let all = Identified::run(
        &[
            "serve",
            "--root",
            ".",
            "--state",
            "state",
            "--http",
            "localhost:0",
            "--identity",
            "identity.toml",
        ],
        "",
        "",
    );
    let bearer = all.bearer("alice", &all.resource(), "exec");
    let answer = all.call("/mcp", &bearer, "Read", json!({"file_path": "identity.toml"}));
    assert!(!answer.contains("[[issuer]]"), "{answer}");
    let answer = all.call("/mcp", &bearer, "Bash", json!({"command": "cat identity.toml"}));
    assert!(!answer.contains("[[issuer]]"), "{answer}");
}

const MANY: [&str; 9] = [
    "serve",
    "--state",
    "state",
    "--http",
    "localhost:0",
    "--workspaces",
    "all",
    "--identity",
    "identity.toml",
];

#[test]
fn grants_say_who_may_use_which_workspace() {
    let grants = "[[grant]]\nsubject = \"alice\"\nscopes = [\"write\"]\nworkspaces = [\"a\"]\n\
                  [[grant]]\nsubject = \"*\"\nscopes = [\"read\"]\nworkspaces_claim = \"rooms\"\n";
    let all = Identified::run(&MANY, "", grants);
    let origin = format!("http://127.0.0.1:{}", all.server.port());
    let resource = |id: &str| format!("{origin}/w/{id}/mcp");
    let read = |path: &str, bearer: &str| {
        all.server.ask(&all.server.request(path, &[("Authorization", Some(bearer))]))
    };
    let alice = all.bearer("alice", &resource("a"), "write");
    let answer = read("/w/a/mcp", &alice);
    assert!(answer.contains("canary of all/a"), "{answer}");
    // A token is for one workspace.
    assert_eq!(status(&read("/w/b/mcp", &alice)), "401");
    // Somebody without a grant does not learn which workspaces exist.
    for id in ["b", "missing"] {
        let bearer = all.bearer("alice", &resource(id), "admin");
        let answer = read(&format!("/w/{id}/mcp"), &bearer);
        assert_eq!((status(&answer), challenge(&answer)), ("403", ""), "{answer}");
    }
    let mut claims = all.issuer.claims("bob", &resource("b"), "admin");
    claims["rooms"] = json!(["b", "missing"]);
    let bob = format!("Bearer {}", all.sign(&claims));
    assert!(read("/w/b/mcp", &bob).contains("canary of all/b"));
    let write = json!({"file_path": "new.txt", "content": "new\n"});
    assert_eq!(status(&all.call("/w/b/mcp", &bob, "Write", write.clone())), "403");
    assert_eq!(status(&all.call("/w/a/mcp", &alice, "Write", write)), "200");
    claims["aud"] = json!(resource("missing"));
    assert_eq!(status(&read("/w/missing/mcp", &format!("Bearer {}", all.sign(&claims)))), "404");
    // Metadata are for each workspace.
    let answer = read("/w/a/mcp", "Basic x");
    let metadata = format!("{origin}/.well-known/oauth-protected-resource/w/a/mcp");
    assert!(challenge(&answer).contains(&metadata), "{answer}");
    let request =
        "GET /.well-known/oauth-protected-resource/w/a/mcp HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(json_of(&all.server.ask(request))["resource"], resource("a").as_str());
}

#[test]
fn one_audience_can_be_for_all_workspaces() {
    let grants = "[[grant]]\nsubject = \"alice\"\nscopes = [\"read\"]\nworkspaces = [\"*\"]\n";
    let all = Identified::run(&MANY, "audience = \"toolcrib\"", grants);
    let bearer = all.bearer("alice", "toolcrib", "read");
    for id in ["a", "b"] {
        let path = format!("/w/{id}/mcp");
        let request = all.server.request(&path, &[("Authorization", Some(&bearer))]);
        assert_eq!(status(&all.server.ask(&request)), "200", "{id}");
    }
}

#[test]
fn other_machines_need_identities_and_encryption() {
    let top = tempfile::tempdir().unwrap();
    write_private(&top.path().join("identity.toml"), "[[issuer]]\nurl = \"http://127.0.0.1:1\"\n");
    let (chain, secret) = self_signed_certificate();
    fs::write(top.path().join("cert.pem"), chain).unwrap();
    write_private(&top.path().join("key.pem"), &secret);
    fs::write(top.path().join("open.pem"), secret).unwrap();
    let tls = ["--tls-cert", "cert.pem", "--tls-key"];
    let (identity, public) = ("identity.toml", "https://tools.example");
    for (flags, problem) in [
        (vec![], "needs --identity"),
        (vec!["--public-url", public], "needs --identity"),
        ([&["--public-url", public][..], &tls, &["key.pem"]].concat(), "needs --identity"),
        (vec!["--identity", identity], "--public-url https://HOST"),
        (
            vec!["--identity", identity, "--public-url", "http://tools.example"],
            "without encryption",
        ),
        (vec!["--identity", identity, "--public-url", "http://localhost"], "--public-url https://"),
        (vec!["--identity", "missing.toml", "--public-url", public], "missing.toml"),
        (
            [&["--identity", identity, "--public-url", public][..], &tls, &["open.pem"]].concat(),
            "chmod 600",
        ),
        (vec!["--identity", identity, "--token-file", "x"], "cannot be used with"),
        (vec!["--identity", identity, "--tls-cert", "cert.pem"], "--tls-key"),
    ] {
        let words = [&["serve", "--http", "0.0.0.0:0", "--state", "state"], &flags[..]].concat();
        let output = toolcrib(top.path(), &words, b"");
        assert!(text(&output.stderr).contains(problem), "{flags:?}: {output:?}");
    }
}

#[test]
fn a_proxy_in_front_decides_the_url() {
    let words = [
        "serve",
        "--root",
        "ws",
        "--state",
        "state",
        "--http",
        "0.0.0.0:0",
        "--identity",
        "identity.toml",
        "--public-url",
        "https://tools.example",
    ];
    let all = Identified::run(&words, "", "");
    let bearer = all.bearer("alice", "https://tools.example/mcp", "read");
    let port =
        all.server.said().split("http://0.0.0.0:").nth(1).unwrap().split('/').next().unwrap();
    let ask = |host: &str| {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        let request = post("/mcp", &right_headers(host, &bearer), &read_call("a.txt"));
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = ask("tools.example");
    assert!(answer.contains("canary of ws"), "{answer}");
    assert_eq!(status(&ask("evil.example")), "403");
}

#[test]
fn connections_are_encrypted_with_the_certificate() {
    let flags = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let all = Identified::start("", "", &flags);
    let port = all.tls_port();
    let chain = fs::read(all.server.directory.path().join("cert.pem")).unwrap();
    let bearer = all.bearer("alice", &format!("https://127.0.0.1:{port}/mcp"), "read");
    let host = format!("localhost:{port}");
    let request = post("/mcp", &right_headers(&host, &bearer), &read_call("a.txt"));
    let answer = over_tls(port, &chain, &request).unwrap();
    assert!(answer.contains("canary of ws"), "{answer}");
    // A client checks the certificate.
    assert!(over_tls(port, self_signed_certificate().0.as_bytes(), &request).is_err());
    // Without TLS there is no answer, and other clients are still served.
    let mut plain = TcpStream::connect(("127.0.0.1", port)).unwrap();
    plain.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"));
    assert!(over_tls(port, &chain, &request).unwrap().contains("canary of ws"));
}

fn over_tls(port: u16, chain: &[u8], request: &str) -> Result<String, std::io::Error> {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName};

    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(chain).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    let mut stream = rustls::StreamOwned::new(connection, stream);
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    // The server may close without the last message of TLS.
    let _ = stream.read_to_end(&mut answer);
    Ok(String::from_utf8(answer).unwrap())
}

/// Puts a new version of the files of a secret in place as Kubernetes does: in a new directory, to which `..data` points then.
fn renew(secret: &Path, version: &str, key: &str) {
    let made = secret.join(version);
    fs::create_dir_all(&made).unwrap();
    write_private(&made.join("tls.key"), key);
    write_private(&made.join("token"), &format!("canary-token-{version}\n"));
    symlink(version, secret.join("..new")).unwrap();
    let former = fs::read_link(secret.join("..data"));
    fs::rename(secret.join("..new"), secret.join("..data")).unwrap();
    if let Ok(former) = former {
        fs::remove_dir_all(secret.join(former)).unwrap();
    }
}

#[test]
fn renewed_secrets_are_hidden_as_the_first_ones_were() {
    let top = command_directory();
    let secret = top.path().join("secret");
    let (chain, key) = self_signed_certificate();
    renew(&secret, "..v1", &key);
    for name in ["tls.key", "token"] {
        symlink(Path::new("..data").join(name), secret.join(name)).unwrap();
    }
    fs::write(top.path().join("tls.crt"), &chain).unwrap();
    let words = [
        "serve",
        "--root",
        ".",
        "--state",
        "state",
        "--http",
        "localhost:0",
        "--identity",
        "identity.toml",
        "--tls-cert",
        "tls.crt",
        "--tls-key",
        "secret/tls.key",
    ];
    let of_issuer = "jwks_url = \"ISSUER/keys\"\nbearer_file = \"secret/token\"";
    let all = Identified::run_in(top, &words, of_issuer, "");
    let port = all.tls_port();
    let bearer = all.bearer("alice", &format!("https://127.0.0.1:{port}/mcp"), "exec");
    let ask = |tool: &str, arguments: Value| {
        let host = format!("localhost:{port}");
        let mut headers = right_headers(&host, &bearer);
        headers.retain(|(name, _)| *name != "Mcp-Name");
        headers.push(("Mcp-Name", Some(tool)));
        let request = post("/mcp", &headers, &call(tool, arguments));
        over_tls(port, chain.as_bytes(), &request).unwrap()
    };
    let shows = |answer: &str| answer.contains("PRIVATE KEY") || answer.contains("canary-token");
    for version in ["..v1", "..v2", "..v3"] {
        if version != "..v1" {
            // The certificate stays the same, so that connections do not depend on when it is read.
            renew(&secret, version, &key);
        }
        for directory in ["", "..data/", &format!("{version}/")] {
            for name in ["tls.key", "token"] {
                let file = format!("secret/{directory}{name}");
                let answer = ask("Read", json!({"file_path": file}));
                assert!(!shows(&answer), "{version} {file}: {answer}");
            }
        }
        let command = "cat secret/* secret/..*/*; grep -r . secret; cat ws/a.txt";
        let answer = ask("Bash", json!({"command": command}));
        assert!(answer.contains("canary of ws") && !shows(&answer), "{version}: {answer}");
        let answer = ask("Grep", json!({"pattern": "canary-token", "output_mode": "content"}));
        assert!(!answer.contains("canary-token-"), "{version}: {answer}");
    }
}

#[test]
fn a_secret_behind_a_symlink_needs_a_directory_of_its_own() {
    let top = tempfile::tempdir().unwrap();
    let (chain, secret) = self_signed_certificate();
    fs::write(top.path().join("cert.pem"), chain).unwrap();
    fs::create_dir(top.path().join("keys")).unwrap();
    fs::create_dir(top.path().join("all")).unwrap();
    write_private(&top.path().join("keys/key.pem"), &secret);
    symlink("keys/key.pem", top.path().join("key.pem")).unwrap();
    let grant = "[[grant]]\nsubject = \"alice\"\nscopes = [\"read\"]\nworkspaces = [\"a\"]\n";
    for (place, grant) in [(["--root", "."], ""), (["--workspaces", "all"], grant)] {
        let identity = format!("[[issuer]]\nurl = \"http://127.0.0.1:1\"\n{grant}");
        write_private(&top.path().join("identity.toml"), &identity);
        let words = ["serve", "--http", "localhost:0", "--state", "state", "--identity"];
        let tls = ["identity.toml", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
        let output = toolcrib(top.path(), &[&words[..], &tls, &place].concat(), b"");
        assert!(!output.status.success());
        let problem = text(&output.stderr);
        assert!(problem.contains("a directory of its own"), "{problem}");
        assert!(problem.contains("keys/key.pem"), "{problem}");
    }
}

#[test]
fn a_server_waits_for_an_issuer_that_is_down() {
    let all = Identified::start("", "", &[]);
    let bearer = all.bearer("alice", &all.resource(), "read");
    assert_eq!(status(&all.read(&bearer)), "200");
    all.issuer.set_down(true);
    assert_eq!(status(&all.read(&bearer)), "200", "its keys are known");
}
