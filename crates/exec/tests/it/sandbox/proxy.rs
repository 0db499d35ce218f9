//! Hosts by name without namespaces: commands reach the proxy of their session, and nothing else.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use toolcrib_exec::Refusal;

use super::network_by_name::{TestNetwork, with_gateway};
use super::*;

/// Sessions without namespaces, whose commands get the port of their proxy in `$PORT`.
fn fixtures() -> Vec<(Fixture, Arc<TestNetwork>)> {
    let with_port = |fixture: Fixture| {
        let (mut fixture, network) = with_gateway(fixture);
        assert_eq!(fixture.runner.sandbox_support().level, Level::Landlock);
        let port = fixture.jobs.proxy_port().unwrap().to_string();
        fixture.variables.push(("PORT".into(), port.into()));
        (fixture, network)
    };
    levels::hobbled_to_landlock_only().into_iter().map(with_port).collect()
}

/// A script that defines `connect`, which opens a tunnel or returns the status of the proxy.
fn python(lines: &str) -> String {
    let tunnel = "import os, socket, struct
port = int(os.environ['PORT'])
def connect(host, to=443):
    s = socket.create_connection(('127.0.0.1', port)); s.settimeout(60)
    s.sendall(f'CONNECT {host}:{to} HTTP/1.1\\r\\n\\r\\n'.encode())
    reply = b''
    while not reply.endswith(b'\\r\\n\\r\\n'): reply += s.recv(1)
    return s
def socks(host, to):
    s = socket.create_connection(('127.0.0.1', port)); s.settimeout(60)
    s.sendall(b'\\5\\1\\0'); assert s.recv(2) == b'\\5\\0'
    s.sendall(b'\\5\\1\\0\\3' + bytes([len(host)]) + host.encode() + struct.pack('>H', to))
    assert s.recv(10)[1] == 0
    return s
def attempt(what):
    try: what(); print('done')
    except OSError as error: print(error.strerror)
";
    format!("/usr/bin/python3 - <<'END'\n{tunnel}{lines}\nEND\n")
}

#[test]
fn hosts_are_reached_through_the_proxy() {
    for (fixture, network) in fixtures() {
        let lines = "
print(connect('a.ok.test').recv(6), socks('b.ok.test', 5432).recv(6))
s = socket.create_connection(('127.0.0.1', port))
s.sendall(b'GET http://a.ok.test/x HTTP/1.1\\r\\nHost: a.ok.test\\r\\nProxy-Connection: x\\r\\n\\r\\n')
reply = b''
while b'close' not in reply: reply += s.recv(4096)
print(reply)";
        let expected = "b'hello\\n' b'hello\\n'\n\
            b'hello\\nGET /x HTTP/1.1\\r\\nHost: a.ok.test\\r\\nConnection: close\\r\\n\\r\\n'\n";
        assert_eq!(fixture.run_ok(&python(lines)), expected);
        let is_known = |host: &str| {
            let records = network.records.lock();
            records.iter().any(|record| {
                record.attempt.host.to_string() == host && &*record.attempt.requester == "sh_1"
            })
        };
        eventually("the records", || is_known("a.ok.test") && is_known("b.ok.test"));
        fixture.assert_canary_unchanged();
    }
}

#[test]
fn other_hosts_are_refused_by_the_proxy() {
    for (fixture, network) in fixtures() {
        let lines = "
s = connect('no.test', 80); s.sendall(b'GET / HTTP/1.1\\r\\nHost: no.test\\r\\n\\r\\n')
print(s.recv(4096).split(b'\\r\\n')[0])
s = connect('a.ok.test', 80); s.sendall(b'GET / HTTP/1.1\\r\\nHost: no.test\\r\\n\\r\\n')
reply = b''
while part := s.recv(4096): reply += part
print(b'403 Forbidden' in reply)
for host in ['private.ok.test', 'metadata.ok.test', '127.0.0.1', '10.0.0.1', '[::1]', 'localhost']:
    s = connect(host, 80); s.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n'); print(host, s.recv(12))";
        let result = fixture.run_ok(&python(lines));
        assert!(result.starts_with("b'HTTP/1.1 403 Forbidden'\nTrue\n"), "{result}");
        let refused = result.lines().filter(|line| line.ends_with(" b'HTTP/1.1 403'")).count();
        assert_eq!(refused, 6, "{result}");
        assert!(!network.refusals.lock().is_empty());
    }
}

#[test]
fn nothing_but_the_proxy_is_reached() {
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = outside.local_addr().unwrap().port();
    for (mut fixture, _) in fixtures() {
        fixture.variables.push(("OTHER".into(), other.to_string().into()));
        let lines = "
other = int(os.environ['OTHER'])
attempt(lambda: socket.create_connection(('127.0.0.1', other)))
attempt(lambda: socket.create_connection(('127.0.0.2', port)))
attempt(lambda: socket.create_connection(('192.0.2.1', port)))
attempt(lambda: socket.socket(socket.AF_INET6).connect(('::1', port)))
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
attempt(lambda: socket.socket(socket.AF_UNIX))
attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
attempt(lambda: socket.socket().bind(('127.0.0.1', 0)))
attempt(lambda: socket.socket().listen())
s = socket.socket(); s.setblocking(False)
print(s.connect_ex(('127.0.0.1', other)) not in (0, 115))
attempt(lambda: socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', other)))
attempt(lambda: socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', port)))";
        let job = fixture.start(&python(lines));
        let result = wait_for_result(&job);
        let expected = "Network is unreachable\n".repeat(4)
            + &"Operation not permitted\n".repeat(4)
            + "Permission denied\nOperation not permitted\nTrue\nOperation not supported\ndone\n";
        assert_eq!(result.output, expected);
        let refusals = job.refusals();
        let direct = SocketAddr::from(([127, 0, 0, 1], other));
        assert!(refusals.contains(&Refusal::WithoutProxy(direct)), "{refusals:?}");
    }
    outside.set_nonblocking(true).unwrap();
    assert!(outside.accept().is_err());
}

/// No job was reported to have made its connection.
#[test]
fn other_programs_do_not_use_the_proxy() {
    let (fixture, network) = fixtures().remove(0);
    let port = fixture.jobs.proxy_port().unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    io::Write::write_all(&mut client, b"CONNECT a.ok.test:443 HTTP/1.1\r\n\r\n").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(client.read(&mut [0; 9]).unwrap_or(0), 0);
    assert!(network.records.lock().is_empty());
}

#[test]
fn an_older_landlock_has_no_proxy() {
    let shim = levels::hobbled_launcher(&["namespaces-refused"]);
    let (fixture, _) = with_gateway(Fixture::with_max_landlock(3, shim));
    assert!(matches!(fixture.jobs.proxy_port(), Err(JobError::NotConfinable)));
    assert!(matches!(fixture.try_to_start("true"), Err(JobError::NotConfinable)));
}
