//! Requests of other sites, other users and broken clients.

use std::io::{Read, Write};
use std::time::Duration;

use serde_json::json;

use super::{RunningPage, User};

#[test]
fn a_ticket_is_used_once_and_a_wrong_one_never() {
    let user = User::new();
    let page = RunningPage::start_without_token(&user);
    assert_eq!(page.sign_in("").status(), 403);
    assert_eq!(page.sign_in(&page.ticket[1..]).status(), 403);
    let first = page.sign_in(&page.ticket);
    assert_eq!(first.status(), 200);
    assert_eq!(page.sign_in(&page.ticket).status(), 403, "it was used");
    for bearer in [None, Some("Bearer "), Some("Basic x"), Some(page.ticket.as_str())] {
        let answer = page.send("GET", "/api/calls", &[("Authorization", bearer)], "");
        assert_eq!(answer.status(), 401, "{bearer:?}");
    }
    let ticket_as_token = format!("Bearer {}", page.ticket);
    let answer = page.send("GET", "/api/calls", &[("Authorization", Some(&ticket_as_token))], "");
    assert_eq!(answer.status(), 401);
    assert_eq!(
        page.send("GET", "/api/calls?token=x", &[("Authorization", None)], "").status(),
        401
    );
}

#[test]
fn a_rebound_name_is_refused_even_with_the_token() {
    let user = User::new();
    let page = RunningPage::start(&user);
    let port = page.port;
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{port}@evil.example"),
        format!("[::1]:{port}"),
    ] {
        for path in ["/", "/api/calls"] {
            let answer = page.send("GET", path, &[("Host", Some(&host))], "");
            assert_eq!(answer.status(), 421, "{host} {path}");
        }
    }
    assert_eq!(page.send("GET", "/", &[("Host", None)], "").status(), 421);
    let local = format!("localhost:{port}");
    assert_eq!(page.send("GET", "/api/calls", &[("Host", Some(&local))], "").status(), 200);
}

#[test]
fn requests_of_other_sites_are_refused() {
    let user = User::new();
    let page = RunningPage::start(&user);
    let body = json!({"visible": false}).to_string();
    let post = |replaced: &[(&str, Option<&str>)]| {
        page.send("POST", "/api/visible", replaced, &body).status()
    };
    assert_eq!(post(&[]), 200);
    assert_eq!(post(&[("Origin", None)]), 403);
    assert_eq!(post(&[("Origin", Some("null"))]), 403);
    assert_eq!(post(&[("Origin", Some("http://evil.example"))]), 403);
    assert_eq!(post(&[("Origin", Some("http://127.0.0.1:1"))]), 403);
    for site in ["cross-site", "same-site", "nonsense"] {
        assert_eq!(post(&[("Sec-Fetch-Site", Some(site))]), 403, "{site}");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        assert_eq!(post(&[("Content-Type", Some(kind))]), 415, "{kind}");
    }
    assert_eq!(post(&[("Content-Type", None)]), 415);
    let stream =
        |replaced: &[(&str, Option<&str>)]| page.send("GET", "/api/events", replaced, "").status();
    assert_eq!(stream(&[]), 403, "a stream needs a sign of our page");
    assert_eq!(stream(&[("Origin", Some("http://evil.example"))]), 403);
    assert_eq!(stream(&[("Sec-Fetch-Site", Some("cross-site"))]), 403);
    let frame = [("Sec-Fetch-Site", Some("cross-site")), ("Sec-Fetch-Dest", Some("iframe"))];
    assert_eq!(page.send("GET", "/", &frame, "").status(), 403);
}

#[test]
fn other_methods_paths_and_targets_are_refused() {
    let user = User::new();
    let page = RunningPage::start(&user);
    for method in ["HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PATCH", "CONNECT"] {
        let answer = page.send(method, "/api/calls", &[], "");
        assert!([405, 400].contains(&answer.status()), "{method}: {}", answer.0);
        assert!(!answer.head().to_ascii_lowercase().contains("access-control"), "{method}");
    }
    for path in [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/../app.js",
        "//etc/passwd",
        "/index.html",
        "/app.js/",
        "/api/../api/calls",
        "/api/calls/../../rules",
        "/api/changes/..%2f..%2fetc",
        "/api//calls",
    ] {
        let status = page.get(path).status();
        assert!([400, 404].contains(&status), "{path}: {status}");
    }
    let absolute = format!("{}/api/calls", page.origin());
    assert_eq!(page.get(&absolute).status(), 400);
    assert_eq!(page.post("/api/calls", &json!({})).status(), 404);
    assert_eq!(page.get("/api/session").status(), 404);
}

#[test]
fn oversized_and_malformed_requests_are_refused() {
    let user = User::new();
    let page = RunningPage::start(&user);
    let long = "a".repeat(9_000);
    assert_eq!(page.get(&format!("/api/calls?text={long}")).status(), 414);
    let huge = "a".repeat(64 << 10);
    let status = page.send("GET", "/", &[("X-Long", Some(&huge))], "").status();
    assert!([431, 400, 0].contains(&status), "{status}");
    let body = format!("{{\"add\": \"{}\"}}", "x".repeat(300 << 10));
    assert_eq!(page.send("POST", "/api/rules", &[], &body).status(), 413);
    for body in ["", "{", "[]", "{\"visible\": 1}", "{\"visible\": true, \"more\": 1}"] {
        assert_eq!(page.send("POST", "/api/visible", &[], body).status(), 400, "{body}");
    }
    for head in [
        format!("GET / HTTP/1.1\nHost: {}\n\n", page.host()),
        format!("GET / HTTP/1.1\r\nHost: {0}\r\nHost: {0}\r\n\r\n", page.host()),
        "GET /\r\n\r\n".to_owned(),
        "\u{0}\u{1}\u{2}\r\n\r\n".to_owned(),
    ] {
        let answer = page.exchange(head.as_bytes());
        assert!([400, 0].contains(&answer.status()), "{head:?}: {}", answer.0);
    }
    assert_eq!(page.get("/api/calls").status(), 200, "the page still works");
}

/// Idle connections, and clients that read nothing, keep nobody else out.
#[test]
fn idle_and_slow_clients_block_nobody() {
    let user = User::new();
    let page = RunningPage::start(&user);
    let idle: Vec<_> = (0..200).map(|_| page.connect()).collect();
    assert_eq!(page.get("/api/calls").status(), 200);
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut stream = page.connect();
        let (host, origin, token) = (page.host(), page.origin(), &page.token);
        let request = format!(
            "GET /api/events HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        slow.push(stream);
    }
    for _ in 0..20 {
        let mut stream = page.connect();
        stream.write_all(b"POST /api/visible HTTP/1.1\r\nContent-").unwrap();
        slow.push(stream);
    }
    assert_eq!(page.get("/api/calls").status(), 200);
    // Connections without the token are closed after a while.
    let mut oldest = &idle[0];
    oldest.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
    assert_eq!(oldest.read(&mut [0; 10]).unwrap_or(0), 0);
    assert_eq!(page.get("/").status(), 200);
}

/// A command in the sandbox has another network, or none.
#[test]
fn commands_in_the_sandbox_cannot_reach_the_page() {
    let user = User::new();
    let page = RunningPage::start(&user);
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{} && echo reached", page.port);
    for network in ["none", "list"] {
        let arguments = json!({"command": connect}).to_string();
        let output = user.run(&["call", "Bash", &arguments, "--json", "--network-access", network]);
        let text = crate::text(&output.stdout);
        assert!(!text.contains("\\nreached") && !text.contains("\"reached"), "{network}: {text}");
        assert!(text.contains("\"success\":false"), "{network}: {text}");
    }
    let list = json!({"command": "ls -la $XDG_RUNTIME_DIR/toolcrib; cat $XDG_RUNTIME_DIR/toolcrib/page.lock"});
    let reply = user.call("Bash", &list).to_string();
    assert!(!reply.contains("page.control"), "{reply}");
}

/// Another user of the machine who has seen the address cannot use its ticket.
#[test]
fn a_ticket_of_another_user_is_refused() {
    let user = User::new();
    let page = RunningPage::start_without_token(&user);
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{0}; body='{{\"ticket\":\"{1}\"}}'; \
         printf 'POST /api/session HTTP/1.1\\r\\nHost: 127.0.0.1:{0}\\r\\nOrigin: http://127.0.0.1:{0}\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\nConnection: close\\r\\n\\r\\n%s' ${{#body}} \"$body\" >&3; cat <&3",
        page.port, page.ticket
    );
    let output = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", &script])
        .output();
    // Only root can become another user.
    let Ok(output) = output else { return };
    if !output.status.success() {
        return;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("HTTP/1.1 403"), "{text}");
    assert_eq!(page.sign_in(&page.ticket).status(), 200, "it was not used");
}
