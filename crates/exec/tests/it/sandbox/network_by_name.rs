//! Hosts by name: commands reach the hosts that a policy allows, and nothing else.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, UdpSocket};

use toolcrib_exec::{Gateway, NetworkExit, NetworkSockets, NoRoute, ProxyExit};
use toolcrib_net::{
    AddressRuling, Attempt, ConnectError, ConnectionPolicy, ConnectionRecord, NamespaceGateway,
    NamespaceSockets, ProxyGateway, Resolver, Ruling,
};

use super::*;

/// Allows the hosts of `ok.test`, which all have one address outside. Names the addresses in `addresses`.
#[derive(Debug)]
pub(super) struct TestNetwork {
    server: SocketAddr,
    addresses: Vec<SocketAddr>,
    pub(super) refusals: Mutex<Vec<String>>,
    pub(super) records: Mutex<Vec<ConnectionRecord>>,
}

impl Resolver for TestNetwork {
    fn resolve(&self, name: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        match name {
            "private.ok.test" => Ok(vec!["10.0.0.1:80".parse().unwrap()]),
            "metadata.ok.test" => Ok(vec!["[::ffff:169.254.169.254]:80".parse().unwrap()]),
            "missing.ok.test" => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(vec![self.server]),
        }
    }
}

impl ConnectionPolicy for TestNetwork {
    fn decide(&self, attempt: &Attempt) -> Ruling {
        let host = attempt.host.to_string();
        let is_named = self.addresses.iter().any(|address| address.ip().to_string() == host);
        if host.ends_with(".ok.test") || is_named {
            Ruling::Allow { rule: "test".to_owned() }
        } else {
            Ruling::Deny { rule: "test".to_owned(), reason: format!("{host} is refused here") }
        }
    }

    fn address_ruling(&self, address: SocketAddr) -> Option<AddressRuling> {
        let is_named = address == self.server || self.addresses.contains(&address);
        is_named.then_some(AddressRuling::Allow)
    }

    fn connected(&self, _: &Attempt, _: &str, _: SocketAddr) {}

    fn refused(&self, _: &Attempt, reason: &str) {
        self.refusals.lock().push(reason.to_owned());
    }

    fn ended(&self, record: &ConnectionRecord) {
        self.records.lock().push(record.clone());
    }
}

#[derive(Debug)]
struct TestGateway(Arc<TestNetwork>);

#[derive(Debug)]
struct TestExit(NamespaceGateway);

impl Gateway for TestGateway {
    fn open(&self, sockets: NetworkSockets) -> io::Result<Arc<dyn NetworkExit>> {
        let NetworkSockets { dns, unbound, more } = sockets;
        let sockets = NamespaceSockets { dns, unbound, more };
        let gateway = NamespaceGateway::start(sockets, self.0.clone(), self.0.clone())?;
        Ok(Arc::new(TestExit(gateway)))
    }

    fn open_proxy(&self) -> io::Result<ProxyExit> {
        let proxy = ProxyGateway::start(self.0.clone(), self.0.clone())?;
        let port = proxy.address().port();
        Ok(ProxyExit { exit: Arc::new(TestProxy(proxy)), port })
    }
}

#[derive(Debug)]
struct TestProxy(ProxyGateway);

impl NetworkExit for TestProxy {
    fn before_connect(&self, peer: SocketAddr) -> Result<SocketAddr, NoRoute> {
        let canonical = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        if canonical == self.0.address() { Ok(peer) } else { Err(NoRoute::Refused) }
    }

    fn connected(&self, job: &str, local: SocketAddr, _: SocketAddr) {
        self.0.connected(job, local);
    }

    fn job_ended(&self, job: &str) {
        self.0.job_ended(job);
    }

    fn before_bind(&self, _: SocketAddr) {}
}

impl NetworkExit for TestExit {
    fn before_connect(&self, peer: SocketAddr) -> Result<SocketAddr, NoRoute> {
        self.0.prepare(peer).map_err(|error| match error {
            ConnectError::Unreachable => NoRoute::Refused,
            ConnectError::NoSocket => NoRoute::NoSocket,
        })
    }

    fn connected(&self, job: &str, local: SocketAddr, peer: SocketAddr) {
        self.0.connected(job, local, peer);
    }

    fn job_ended(&self, job: &str) {
        self.0.job_ended(job);
    }

    fn before_bind(&self, address: SocketAddr) {
        if address.ip().is_unspecified() {
            self.0.release_port(address.port());
        }
    }
}

/// A server outside that greets and repeats what it gets, with as many connections as come.
fn serve() -> SocketAddr {
    let server = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in server.incoming() {
            let mut client = client.unwrap();
            std::thread::spawn(move || {
                let _ = client.write_all(b"hello\n");
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = client.read(&mut buffer) {
                    if client.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// The address of an interface of this machine, if it has one besides loopback.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback())
}

/// Gives a session a gateway.
pub(super) fn with_gateway(mut fixture: Fixture) -> (Fixture, Arc<TestNetwork>) {
    let server = serve();
    let addresses = own_address().map(|own| SocketAddr::new(own, server.port()));
    let network = Arc::new(TestNetwork {
        server,
        addresses: addresses.into_iter().collect(),
        refusals: Mutex::default(),
        records: Mutex::default(),
    });
    let gateway = Arc::new(TestGateway(network.clone()));
    fixture.sandbox.network = Network::List;
    fixture.jobs = fixture.runner.session_with_gateway(200, Some(gateway));
    (fixture, network)
}

/// Fixtures with a gateway, for each user and sandbox.
fn fixtures() -> Vec<(Fixture, Arc<TestNetwork>)> {
    Fixture::for_each_sandbox().into_iter().map(with_gateway).collect()
}

fn python(lines: &str) -> String {
    format!("/usr/bin/python3 - <<'END'\nimport socket, struct\n{lines}\nEND\n")
}

#[test]
fn allowed_hosts_are_reached_by_any_program_on_any_port() {
    for (fixture, network) in fixtures() {
        for port in [22, 80, 443, 5432, 50_000] {
            let script = format!("head -n 1 < /dev/tcp/a.ok.test/{port}");
            assert_eq!(fixture.run_ok(&script), "hello\n");
        }
        let lines = "
s = socket.create_connection(('b.ok.test', 443)); print(s.getpeername()[1], s.recv(6))
s.setblocking(False); s.setblocking(True)
s.sendall(b'x' * 1000000); s.shutdown(socket.SHUT_WR)
total = 0
while data := s.recv(65536): total += len(data)
print(total)
t = socket.socket(socket.AF_INET6); t.connect(('::ffff:' + socket.gethostbyname('b.ok.test'), 443)); print(t.recv(6))
u = socket.socket(); u.setblocking(False); print(u.connect_ex((socket.gethostbyname('c.ok.test'), 8080)) in (0, 115))
u.setblocking(True); print(u.recv(6))";
        let expected = "443 b'hello\\n'\n1000000\nb'hello\\n'\nTrue\nb'hello\\n'\n";
        assert_eq!(fixture.run_ok(&python(lines)), expected);
        let has_bytes = |record: &ConnectionRecord| {
            record.sent == 1_000_000 && record.received == 1_000_006 && record.attempt.port == 443
        };
        eventually("the record of a connection", || network.records.lock().iter().any(has_bytes));
        assert!(network.refusals.lock().is_empty());
        fixture.assert_canary_unchanged();
    }
}

#[test]
fn refusals_are_told_in_the_protocol_of_the_client() {
    for (fixture, network) in fixtures() {
        let lines = "
def ask(port, data):
    s = socket.create_connection(('no.test', port)); s.settimeout(20)
    s.sendall(data)
    reply = b''
    try:
        while part := s.recv(4096): reply += part
    except ConnectionResetError: return 'reset'
    return reply
print(ask(80, b'GET / HTTP/1.1\\r\\nHost: no.test\\r\\n\\r\\n').decode().splitlines())
print(ask(443, bytes.fromhex('160301003e0100003a0303' + '00' * 32 + '00000213010100000f0000000b00090000066e6f2e74657374'))[:7].hex())
reply = ask(22, b'SSH-2.0-test\\r\\n'); print(reply[:16], b'no.test is refused here' in reply)
print(ask(5432, b'\\0\\0\\0\\x08\\x04\\xd2\\x16\\x2f'))";
        let result = fixture.run_ok(&python(lines));
        assert!(result.contains("403 Forbidden"), "{result}");
        assert!(result.contains("no.test is refused here"), "{result}");
        assert!(result.contains("15030300020231"), "{result}");
        assert!(result.contains("b'SSH-2.0-toolcrib' True"), "{result}");
        assert!(result.ends_with("reset\n"), "{result}");
        let denied = |record: &ConnectionRecord| record.address.is_none() && record.sent == 0;
        eventually("the records", || network.records.lock().len() == 4);
        assert!(network.records.lock().iter().all(denied));
    }
}

/// Attempts to reach something that no rule allows. Nothing arrives at the server.
#[test]
fn nothing_else_is_reached() {
    for (fixture, network) in fixtures() {
        let port = network.server.port();
        let datagrams = UdpSocket::bind("0.0.0.0:0").unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let udp = datagrams.local_addr().unwrap().port();
        let own = own_address().map_or("192.0.2.1".to_owned(), |own| own.to_string());
        let lines = format!(
            "
def attempt(name, run):
    try: print(name, run())
    except OSError as error: print(name, type(error).__name__, error.errno)
def talk(host, port, data=b'', family=socket.AF_INET):
    s = socket.socket(family); s.settimeout(20); s.connect((host, port)); s.sendall(data)
    return s.recv(100)
attempt('loopback', lambda: talk('127.0.0.1', {port}))
attempt('literal', lambda: talk('{own}', {port} - 1))
attempt('literal6', lambda: talk('2606:4700::1', 443, family=socket.AF_INET6))
attempt('mapped', lambda: talk('::ffff:{own}', {port} - 1, family=socket.AF_INET6))
attempt('metadata', lambda: talk('169.254.169.254', 80))
attempt('unassigned', lambda: talk('198.19.200.1', 443))
attempt('private', lambda: talk('private.ok.test', 80, b'GET / HTTP/1.1\\r\\nHost: private.ok.test\\r\\n\\r\\n'))
attempt('mapped metadata', lambda: talk('metadata.ok.test', 80, b'GET / HTTP/1.1\\r\\nHost: metadata.ok.test\\r\\n\\r\\n'))
attempt('missing', lambda: talk('missing.ok.test', 80, b'GET / HTTP/1.1\\r\\nHost: missing.ok.test\\r\\n\\r\\n'))
attempt('fronted', lambda: talk('a.ok.test', 80, b'GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n')[:6] and 'greeted')
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
attempt('datagram', lambda: u.sendto(b'x', ('{own}', {udp})))
attempt('udp host', lambda: (u.sendto(b'x', (socket.gethostbyname('a.ok.test'), {udp})), 'stays inside')[1])
"
        );
        let result = fixture.run_ok(&python(&lines));
        let said: Vec<&str> = result.lines().collect();
        assert_eq!(said[0], "loopback ConnectionRefusedError 111");
        for line in &said[1..6] {
            assert!(line.ends_with("OSError 101"), "{line}");
        }
        for (line, status) in said[6..9].iter().zip(["403", "403", "502"]) {
            assert!(line.contains(&format!("HTTP/1.1 {status}")), "{line}");
        }
        assert!(said[10].contains("OSError 101"), "{}", said[10]);
        assert!(datagrams.recv(&mut [0; 8]).is_err());
        let refusals = network.refusals.lock().join("\n");
        assert!(refusals.contains("has the private address 10.0.0.1"), "{refusals}");
        assert!(refusals.contains("has the metadata address"), "{refusals}");
        assert!(refusals.contains("asks for the HTTP host evil.test"), "{refusals}");
    }
}

/// DNS carries nothing out: every name gets an address here, whatever it is, and malformed queries get nothing.
#[test]
fn queries_are_answered_inside() {
    for (fixture, _) in fixtures() {
        let lines = "
def query(name, kind=1, extra=b''):
    labels = b''.join(bytes([len(l)]) + l for l in name.split(b'.'))
    return b'\\xab\\xcd\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' + labels + b'\\0' + struct.pack('>HH', kind, 1) + extra
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20)
for bad in (b'', b'x', b'\\0' * 12, query(b'a.test')[:-1], b'\\xff' * 1400, query(b'a.test')[:12] + b'\\xc0\\x0c' * 100):
    s.sendto(bad, ('127.0.0.1', 53))
codes = []
for name, kind in ((b'a.test', 1), (b'a.test', 28), (b'x' * 63 + b'.tunnel.test', 16), (b'host', 1), (b'10.0.0.1', 1)):
    s.sendto(query(name, kind), ('127.0.0.1', 53)); reply = s.recv(600)
    codes.append((reply[3] & 15, reply[7]))
print(codes)
print(socket.gethostbyname('a.test') == socket.gethostbyname('A.TEST'), socket.gethostbyname('localhost'))
print(open('/etc/resolv.conf').read().strip())
";
        let expected =
            "[(0, 1), (0, 0), (0, 0), (3, 0), (3, 0)]\nTrue 127.0.0.1\nnameserver 127.0.0.1\n";
        assert_eq!(fixture.run_ok(&python(lines)), expected);
        fixture.run("echo x > /etc/resolv.conf");
        assert_eq!(fixture.run_ok("cat /etc/resolv.conf"), "nameserver 127.0.0.1\n");
    }
}

/// An address that a rule names is reached as it is written.
#[test]
fn addresses_that_rules_name_are_reached() {
    for (fixture, network) in fixtures() {
        let Some(address) = network.addresses.first() else { return };
        let script = format!("head -n 1 < /dev/tcp/{}/{}", address.ip(), address.port());
        assert_eq!(fixture.run_ok(&script), "hello\n");
    }
}

/// More hosts than the sockets that are made at a time.
#[test]
fn many_hosts_are_reached() {
    for (fixture, _) in fixtures() {
        let lines = "
for number in range(100):
    s = socket.create_connection((f'h{number}.ok.test', 443)); assert s.recv(6) == b'hello\\n'
print('all')";
        assert_eq!(fixture.run_ok(&python(lines)), "all\n");
    }
}

/// A server of a command can have the port of a host.
#[test]
fn servers_of_commands_are_not_in_the_way() {
    for (fixture, _) in fixtures() {
        let lines = "
assert socket.create_connection(('a.ok.test', 8080)).recv(6) == b'hello\\n'
server = socket.create_server(('', 8080))
client = socket.create_connection(('127.0.0.1', 8080)); server.accept()[0].sendall(b'own'); print(client.recv(3))
server.close()
assert socket.create_connection(('a.ok.test', 8080)).recv(6) == b'hello\\n'
server = socket.create_server(('127.0.0.1', 9090))
assert socket.create_connection(('a.ok.test', 9090)).recv(6) == b'hello\\n'";
        assert_eq!(fixture.run_ok(&python(lines)), "b'own'\n");
    }
}

/// Connections end with the session, also if a command and the host keep them open.
#[test]
fn connections_end_with_the_session() {
    for (fixture, network) in fixtures().into_iter().take(2) {
        let job = fixture.start("exec 3<> /dev/tcp/a.ok.test/443; head -n 1 <&3; sleep 600");
        wait_for_output(&job);
        drop(job);
        let Fixture { jobs, top, .. } = fixture;
        drop(jobs);
        eventually("the end of the connection", || network.records.lock().len() == 1);
        drop(top);
    }
}

/// A flood of connections, and clients that read and write slowly, take nothing from others.
#[test]
fn floods_are_bounded() {
    for (fixture, _) in fixtures().into_iter().take(1) {
        let lines = "
import resource
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]; resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
for round in range(10):
    held = [socket.create_connection(('a.ok.test', 443)) for number in range(200)]
    for s in held: assert s.recv(6) == b'hello\\n'
    for s in held: s.close()
held = [socket.create_connection(('a.ok.test', 443)) for number in range(300)]
print('held')";
        assert_eq!(fixture.run_ok(&python(lines)), "held\n");
        assert_eq!(fixture.run_ok("head -n 1 < /dev/tcp/a.ok.test/80"), "hello\n");
        let other = fixture.start("exec 3<> /dev/tcp/a.ok.test/443; sleep 600");
        assert_eq!(fixture.run_ok("head -n 1 < /dev/tcp/b.ok.test/443"), "hello\n");
        drop(other);
    }
}

/// A TCP socket is connected by `connect` only, so that each connection has its command.
#[test]
fn sending_connects_no_socket() {
    for (fixture, network) in fixtures() {
        let lines = "
import ctypes
FAST_OPEN = 0x20000000
peer = (socket.gethostbyname('a.ok.test'), 443)
socket.create_connection(peer).recv(6)
def sendto(s): s.sendto(b'x', FAST_OPEN, peer)
def sendmsg(s): s.sendmsg([b'x'], [], FAST_OPEN, peer)
def sendmmsg(s):
    class Vector(ctypes.Structure): _fields_ = [('base', ctypes.c_char_p), ('length', ctypes.c_size_t)]
    class Message(ctypes.Structure):
        _fields_ = [('name', ctypes.c_char_p), ('namelen', ctypes.c_uint), ('iov', ctypes.POINTER(Vector)), ('iovlen', ctypes.c_size_t),
            ('control', ctypes.c_void_p), ('controllen', ctypes.c_size_t), ('flags', ctypes.c_int), ('sent', ctypes.c_uint)]
    name = struct.pack('=H', 2) + struct.pack('>H', 443) + socket.inet_aton(peer[0]) + bytes(8)
    message = Message(name, 16, ctypes.pointer(Vector(b'x', 1)), 1)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.sendmmsg(s.fileno(), ctypes.byref(message), 1, FAST_OPEN) < 0: raise OSError(ctypes.get_errno(), '')
for send in sendto, sendmsg, sendmmsg:
    try: send(socket.socket()); print('sent')
    except OSError as error: print(error.errno)";
        assert_eq!(fixture.run_ok(&python(lines)), "95\n95\n95\n");
        eventually("the only connection", || network.records.lock().len() == 1);
    }
}

/// The connections of two commands to one host at the same time are told apart.
#[test]
fn each_connection_belongs_to_the_command_that_made_it() {
    for (fixture, network) in fixtures().into_iter().take(2) {
        let script = |port: u16| {
            python(&format!(
                "
for number in range(40):
    s = socket.socket(); s.setblocking(number % 2 == 0)
    s.connect_ex((socket.gethostbyname('a.ok.test'), 443)); s.setblocking(True); assert s.recv(6) == b'hello\\n'
    s.sendall(bytes({port})); s.close()"
            ))
        };
        let jobs: Vec<_> = [1, 2, 3].map(|bytes| (bytes, fixture.start(&script(bytes)))).into();
        for (_, job) in &jobs {
            assert_eq!(wait_for_result(job).exit, Exit::Code(0));
        }
        eventually("the records", || network.records.lock().len() == 120);
        for record in network.records.lock().iter() {
            let (_, job) =
                jobs.iter().find(|(_, job)| *job.id() == *record.attempt.requester).unwrap();
            let bytes = jobs.iter().find(|(_, other)| other.id() == job.id()).unwrap().0;
            assert_eq!(record.sent, u64::from(bytes), "{record:?}");
        }
    }
}

/// A server outside that never reads, and a command that is killed: its connections end, and the next command
/// reaches the host.
#[test]
fn connections_end_with_their_job() {
    for (fixture, network) in fixtures().into_iter().take(2) {
        let lines = "
held = []
for number in range(30):
    s = socket.create_connection(('a.ok.test', 443)); held.append(s)
    # The server repeats it, and nothing is read here.
    s.setblocking(False)
    try:
        for _ in range(200): s.send(b'x' * 65536)
    except BlockingIOError: pass
print('held', flush=True)
import time; time.sleep(600)";
        let job = fixture.start(&python(lines));
        wait_for_output(&job);
        job.end(toolcrib_exec::Ending::Immediate, toolcrib_exec::Status::Killed);
        eventually("the end of all", || network.records.lock().len() == 30);
        assert_eq!(fixture.run_ok("head -n 1 < /dev/tcp/a.ok.test/443"), "hello\n");
    }
}
