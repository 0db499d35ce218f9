//! Attempts to reach something that no rule allows.

use super::*;

fn python(lines: &str) -> String {
    format!("{PYTHON} - <<'END'\nimport socket, ssl\n{lines}\nEND\n")
}

/// An allowed name whose address is not public is refused, unless a rule names the address.
#[test]
fn names_of_private_addresses_are_refused() {
    let listed = Listed::new();
    for (host, class) in
        [("private.test", "private"), ("metadata.test", "metadata"), ("loopback6.test", "loopback")]
    {
        let reply = listed.bash(&format!("curl -s http://{host}/hello"));
        assert!(reply.contains(&format!("{host}:80 has the {class} address")), "{reply}");
        assert!(!reply.contains("\nhello"), "{reply}");
    }
    // On another port than the rules allow.
    let reply = listed.bash("curl -s http://a.ok.test:8080/hello");
    assert!(reply.contains("a.ok.test:8080 has the loopback address 127.0.0.1"), "{reply}");
}

#[test]
fn a_redirect_to_a_private_host_is_refused() {
    let listed = Listed::new();
    let reply = listed.bash("curl -sL http://a.ok.test/redirect");
    let line = "[network: private.test:80 has the private address 10.0.0.1, and no rule allows that address; ask the operator to run `toolcrib policy allow network 10.0.0.1:80`]";
    assert!(reply.contains(line), "{reply}");
}

#[test]
fn another_host_in_the_first_message_is_refused() {
    let listed = Listed::new();
    let reply = listed.bash("curl -s -H 'Host: evil.test' http://a.ok.test/hello");
    assert!(reply.contains("asks for the HTTP host evil.test"), "{reply}");
    let reply = listed.bash(&python(
        "
context = ssl._create_unverified_context()
try:
    context.wrap_socket(socket.create_connection(('a.ok.test', 443)), server_hostname='evil.test')
except ssl.SSLError as error: print(error.reason)",
    ));
    assert!(reply.contains("TLSV1_ALERT_ACCESS_DENIED"), "{reply}");
    assert!(reply.contains("asks for the TLS server name evil.test"), "{reply}");
}

#[test]
fn addresses_without_a_rule_are_not_reached() {
    let listed = Listed::new();
    let reply = listed.bash(&python(
        "
for family, address in ((2, '169.254.169.254'), (2, '1.1.1.1'), (10, '2606:4700::1111'), (10, '::ffff:10.0.0.1')):
    try: socket.socket(family).connect((address, 80)); print('connected', address)
    except OSError as error: print(error.errno)",
    ));
    assert!(reply.starts_with("101\n101\n101\n101\n"), "{reply}");
    assert!(reply.contains("[network: not reached: connect 169.254.169.254:80"), "{reply}");
}

/// Malformed and huge first messages end the connection, and the next one works.
#[test]
fn malformed_messages_are_refused() {
    let listed = Listed::new();
    let reply = listed.bash(&python(
        "
def send(port, *parts):
    s = socket.create_connection(('a.ok.test', port)); s.settimeout(50)
    try:
        for part in parts: s.sendall(part)
        return s.recv(100)
    except (ConnectionResetError, BrokenPipeError): return b'reset'
hello = b'\\x16\\x03\\x01\\x40\\x00\\x01\\x00\\xff\\xff'
print(send(443, hello + b'x' * 100)[:1], send(443, b'\\x16\\x03\\x01\\xff\\xff')[:1], send(443, b'\\x16\\x03\\x01\\0\\0')[:1])
print(send(80, b'GET / HTTP/1.1\\r\\n' + b'A: b\\r\\n' * 20000)[:12])
print(send(80, b'GET / HTTP/1.1\\r\\nHost: a.ok.test\\r\\nHost: evil.test\\r\\n\\r\\n')[:12])
print(send(80, b'GET /hello HTTP/1.1\\r\\nHost: a.ok.test\\r\\n\\r\\n')[:12])",
    ));
    let mut lines = reply.lines();
    let first = lines.next().unwrap_or_default();
    assert!(first.matches("b'\\x15'").count() == 3, "{reply}");
    assert!(
        lines.next().is_some_and(|line| line.contains("403") || line.contains("reset")),
        "{reply}"
    );
    assert!(lines.next().is_some_and(|line| line.contains("403")), "{reply}");
    assert!(lines.next().is_some_and(|line| line.contains("200")), "{reply}");
}

/// A process that outlives its shell keeps its connection only as long as the session lives.
#[test]
fn connections_do_not_outlive_the_session() {
    let listed = Listed::new();
    let reply =
        listed.bash("(exec 3<> /dev/tcp/a.ok.test/80; sleep 600) > /dev/null 2>&1 &\nsleep 0.2");
    assert!(reply.contains("a.ok.test:80 allowed"), "{reply}");
    let Listed { runtime, session, server, top, .. } = listed;
    drop(session);
    let ended = || runtime.connections().unwrap().iter().any(|entry| entry.host == "a.ok.test");
    crate::eventually(ended);
    drop((server, top));
}

/// The log names a connection as soon as it is made. The runtime may end before the connection does.
#[test]
fn open_connections_are_logged() {
    let listed = Listed::new();
    let script = "exec 3<> /dev/tcp/a.ok.test/80; sleep 600";
    let call = json!({"command": script, "run_in_background": true});
    listed.call("Bash", call, &toolcrib::NoApprover).unwrap();
    let open = listed.connections("a.ok.test");
    assert_eq!((open.len(), open[0].is_open, open[0].job.as_str()), (1, true, "sh_1"));
    listed.call("KillShell", json!({"shell_id": "sh_1"}), &toolcrib::NoApprover).unwrap();
    crate::eventually(|| !listed.connections("a.ok.test")[0].is_open);
    assert_eq!(listed.connections("a.ok.test").len(), 1);
}

/// The resolver outside would take such a name for an address.
#[test]
fn names_that_are_numbers_have_no_address() {
    let listed = Listed::new();
    let reply =
        listed.bash("getent hosts 127.0.0.0x1.ok.test; getent hosts 1.1.1.0x1 || echo none");
    assert!(reply.contains("198.18.0."), "{reply}");
    let reply = listed.bash(&python(
        "
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20)
labels = b''.join(bytes([len(l)]) + l for l in b'1.1.1.0x1'.split(b'.'))
s.sendto(b'\\xab\\xcd\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' + labels + b'\\0\\0\\1\\0\\1', ('127.0.0.1', 53)); print(s.recv(600)[3] & 15)",
    ));
    assert!(reply.starts_with("3\n"), "{reply}");
}
