//! Requests that try to reach the server as something else than what was decided on.

use super::*;

/// Sends bytes on one TLS connection and prints the statuses of the replies.
const RAW_CLIENT: &str = r#"
import socket, ssl, sys, re
CASES = @CASES@
for name, data in CASES:
    tls = ssl.create_default_context().wrap_socket(socket.create_connection(("api.ok.test", 443)), server_hostname="api.ok.test")
    tls.settimeout(30)
    reply = b""
    try:
        tls.sendall(data.encode("latin-1"))
        while True:
            part = tls.recv(65536)
            if not part:
                break
            reply += part
    except OSError as error:
        reply += b" " + type(error).__name__.encode()
    print(name, re.findall(rb"HTTP/1.1 (\d+)", reply))
"#;

/// The ends of heads: the connection ends with the reply.
const END: &str = "Connection: close\r\n\r\n";

/// What a client sends. None of these reaches the server beyond requests that are allowed.
fn cases() -> Vec<(&'static str, String)> {
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: api.ok.test\r\n{END}");
    let smuggled = "DELETE /v1/smuggled HTTP/1.1\r\nHost: api.ok.test\r\n\r\n";
    let post = "POST /v1/size HTTP/1.1\r\nHost: api.ok.test\r\n";
    let length = smuggled.len();
    vec![
        ("dot-dot", get("/v1/../admin")),
        ("encoded-dot-dot", get("/v1/%2e%2e/admin")),
        ("encoded-slash", get("/v1/..%2fadmin")),
        ("double-encoded", get("/v1/%252e%252e/admin")),
        ("two-slashes", get("//v1/x")),
        ("inner-slashes", get("/v1//x")),
        ("backslash", get("/v1/..\\admin")),
        ("parameters", get("/v1/..;/admin")),
        ("private-upper", get("/v1/PRIVATE")),
        ("private-encoded", get("/v1/priv%61te")),
        ("private-parameter", get("/v1/private;x=1")),
        ("encoded-newline", get("/v1/x%0d%0aDELETE%20/v1/y")),
        ("raw-newline", get("/v1/x\r\nX: y")),
        ("other-host", format!("GET /v1/x HTTP/1.1\r\nHost: open.ok.test\r\n{END}")),
        ("other-port", format!("GET /v1/x HTTP/1.1\r\nHost: api.ok.test:80\r\n{END}")),
        ("no-host", format!("GET /v1/x HTTP/1.1\r\n{END}")),
        (
            "two-hosts",
            format!("GET /v1/x HTTP/1.1\r\nHost: api.ok.test\r\nHost: open.ok.test\r\n{END}"),
        ),
        (
            "absolute",
            format!("GET https://open.ok.test/v1/x HTTP/1.1\r\nHost: api.ok.test\r\n{END}"),
        ),
        (
            "absolute-http",
            format!("GET http://api.ok.test/v1/x HTTP/1.1\r\nHost: api.ok.test\r\n{END}"),
        ),
        (
            "connect",
            format!("CONNECT open.ok.test:443 HTTP/1.1\r\nHost: open.ok.test:443\r\n{END}"),
        ),
        ("trace", format!("TRACE /v1/x HTTP/1.1\r\nHost: api.ok.test\r\n{END}")),
        ("asterisk", format!("OPTIONS * HTTP/1.1\r\nHost: api.ok.test\r\n{END}")),
        ("lower-case", format!("get /v1/x HTTP/1.1\r\nHost: api.ok.test\r\n{END}")),
        (
            "override",
            format!(
                "GET /v1/x HTTP/1.1\r\nHost: api.ok.test\r\nX-HTTP-Method-Override: DELETE\r\n{END}"
            ),
        ),
        (
            "rewrite",
            format!("GET /v1/x HTTP/1.1\r\nHost: api.ok.test\r\nX-Original-URL: /admin\r\n{END}"),
        ),
        (
            "two-lengths",
            format!("{post}Content-Length: 0\r\nContent-Length: {length}\r\n\r\n{smuggled}"),
        ),
        (
            "length-and-chunks",
            format!(
                "{post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n{END}0\r\n\r\n{smuggled}"
            ),
        ),
        (
            "chunks-and-length",
            format!(
                "{post}Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n{END}0\r\n\r\n{smuggled}"
            ),
        ),
        (
            "odd-chunked",
            format!(
                "{post}Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n{END}0\r\n\r\n{smuggled}"
            ),
        ),
        (
            "two-codings",
            format!("{post}Transfer-Encoding: gzip, chunked\r\n{END}0\r\n\r\n{smuggled}"),
        ),
        ("folded", format!("{post}X: y\r\n Content-Length: 5\r\n{END}{smuggled}")),
        ("bare-newline", format!("{post}X: y\nContent-Length: {length}\r\n{END}{smuggled}")),
        ("space-before-colon", format!("{post}Content-Length : {length}\r\n{END}{smuggled}")),
        ("negative-length", format!("{post}Content-Length: -1\r\n{END}{smuggled}")),
        (
            "huge-chunk",
            format!("{post}Transfer-Encoding: chunked\r\n{END}fffffffffffffffff\r\n{smuggled}"),
        ),
        (
            "pipelined",
            format!(
                "GET /v1/first HTTP/1.1\r\nHost: api.ok.test\r\n\r\nDELETE /v1/second HTTP/1.1\r\nHost: api.ok.test\r\n{END}"
            ),
        ),
        ("plain-http2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
        (
            "huge-head",
            format!(
                "GET /v1/x HTTP/1.1\r\nHost: api.ok.test\r\nX: {}\r\n{END}",
                "x".repeat(200_000)
            ),
        ),
    ]
}

/// Requests of the cases that are allowed as they are.
const ALLOWED: [&str; 2] = ["GET /v1/first", "POST /v1/size"];

#[test]
fn no_denied_request_reaches_the_server() {
    let inspected = Inspected::new();
    let cases = serde_json::to_string(&cases()).unwrap();
    let reply = inspected.python(&RAW_CLIENT.replace("@CASES@", &cases));
    assert!(reply.contains("pipelined [b'200', b'403']"), "{reply}");
    for name in [
        "dot-dot",
        "encoded-dot-dot",
        "two-slashes",
        "other-host",
        "absolute",
        "connect",
        "trace",
        "override",
    ] {
        assert!(reply.contains(&format!("{name} [b'403']")), "{name}: {reply}");
    }
    let arrived = inspected.arrived();
    let lines: Vec<&String> = arrived.iter().map(|(line, _)| line).collect();
    assert!(lines.iter().all(|line| ALLOWED.contains(&line.as_str())), "{lines:?}\n{reply}");
    // What is left of odd framing is framed anew, once.
    for (line, headers) in &arrived {
        let count = |wanted: &str| {
            headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).count()
        };
        let framings = count("content-length") + count("transfer-encoding");
        assert!(framings <= 1 && count("host") == 1, "{line} {headers:?}");
    }
}

/// The server name of TLS must be the name that was looked up.
#[test]
fn another_server_name_is_refused() {
    let inspected = Inspected::new();
    let program = r#"
import socket, ssl
context = ssl.create_default_context()
try:
    context.wrap_socket(socket.create_connection(("api.ok.test", 443)), server_hostname="open.ok.test")
except ssl.SSLError as error:
    print(error.reason)
plain = socket.create_connection(("api.ok.test", 443))
plain.sendall(b"\0\1\2\3")
try:
    print(plain.recv(10))
except OSError as error:
    print("reset")
"#;
    let reply = inspected.python(program);
    assert!(reply.contains("ACCESS_DENIED"), "{reply}");
    assert!(reply.contains("was asked for the TLS server name open.ok.test"), "{reply}");
    assert!(reply.contains("does not begin with TLS or HTTP"), "{reply}");
    assert!(inspected.arrived().is_empty());
}

/// A program that does not trust the authority is told about with the reason.
#[test]
fn a_client_with_its_own_authorities_is_explained() {
    let inspected = Inspected::new();
    std::fs::copy(&inspected.server.certificate, inspected.top.path().join("ws/own.pem")).unwrap();
    let reply =
        inspected.bash("curl -sS --cacert own.pem --capath /nonexistent https://api.ok.test/v1/x");
    assert!(
        reply.contains("api.ok.test:443 is inspected, and the program did not accept that"),
        "{reply}"
    );
}

/// A connection ends with the command that made it.
#[test]
fn inspected_connections_end_with_their_command() {
    let inspected = Inspected::new();
    inspected
        .bash("timeout 0.5 curl -sS --limit-rate 1k https://api.ok.test/v1/large -o large; true");
    let ended = || {
        let all = inspected.runtime.connections().unwrap();
        all.iter().any(|entry| entry.host == "api.ok.test" && !entry.is_open)
    };
    crate::eventually(ended);
}
