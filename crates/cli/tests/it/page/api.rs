//! The page as a browser loads it.

use std::io::{BufRead, BufReader, Write};

use super::{RunningPage, User};

#[test]
fn every_response_has_the_security_headers() {
    let user = User::new();
    let page = RunningPage::start(&user);
    for path in ["/", "/app.js", "/worker.js", "/app.css", "/favicon.svg", "/api/calls", "/none"] {
        let head = page.get(path).head().to_ascii_lowercase();
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self';",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'; trusted-types toolcrib",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
        ] {
            assert!(head.contains(header), "{path}: {header}\n{head}");
        }
        assert!(!head.contains("access-control-") && !head.contains("set-cookie"), "{head}");
    }
}

#[test]
fn files_are_served_without_a_token_and_contain_no_ticket() {
    let user = User::new();
    let page = RunningPage::start_without_token(&user);
    for (path, kind) in
        [("/", "text/html"), ("/app.js", "text/javascript"), ("/app.css", "text/css")]
    {
        let answer = page.send("GET", path, &[("Authorization", None)], "");
        assert_eq!(answer.status(), 200, "{path}");
        assert!(answer.head().contains(kind) && !answer.0.contains(&page.ticket), "{path}");
    }
    assert_eq!(page.sign_in(&page.ticket).status(), 200, "loading files does not use the ticket");
}

#[test]
fn the_stream_starts_with_the_state_and_resumes() {
    let user = User::new();
    let page = RunningPage::start(&user);
    let stream = |more: &str| {
        let mut stream = page.connect();
        let (host, origin, token) = (page.host(), page.origin(), &page.token);
        let request = format!(
            "GET /api/events HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nAuthorization: Bearer {token}\r\n{more}\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        assert!(lines.next().unwrap().ends_with("200 OK"));
        let wanted = lines.filter(|line| line.starts_with("id: ") || line.starts_with("event: "));
        wanted.take(2).collect::<Vec<String>>()
    };
    let first = stream("");
    assert_eq!(first[1], "event: state");
    // An id of an earlier process is older than all events.
    assert_eq!(stream("Last-Event-ID: 5\r\n")[1], "event: state");
    assert_eq!(stream("Last-Event-ID: 99999999999999999\r\n")[1], "event: state");
}

#[test]
fn another_port_than_that_of_the_running_page_is_an_error() {
    let user = User::new();
    let page = RunningPage::start(&user);
    let other = if page.port == 1024 { 1025 } else { 1024 };
    let refused = user.run(&["page", "--print", "--port", &other.to_string()]);
    let errors = crate::text(&refused.stderr);
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{errors}");
    let (port, process) = (format!("at port {}", page.port), format!("kill {}", page.child.id()));
    assert!(errors.contains(&port) && errors.contains(&process), "{errors}");
    let same = user.run(&["page", "--print", "--port", &page.port.to_string()]);
    assert!(same.status.success() && !same.stdout.is_empty());
}
