//! The network, off or on, and Unix sockets.

use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener};

use super::*;

#[test]
fn servers_outside_cannot_be_reached() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let udp_port = datagrams.local_addr().unwrap().port();
    for fixture in Fixture::for_each_sandbox() {
        fixture
            .assert_refused(&format!("cat < /dev/tcp/127.0.0.1/{port}"), &["Connection refused"]);
        fixture.assert_refused("cat < /dev/tcp/192.0.2.1/80", &["Network is unreachable"]);
        fixture.run(&format!("echo x > /dev/udp/127.0.0.1/{udp_port}"));
        assert!(datagrams.recv(&mut [0; 8]).is_err());
        for family in ["AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_BLUETOOTH"] {
            let lines = format!("import socket\nsocket.socket(socket.{family}, socket.SOCK_RAW)");
            fixture.assert_python_refused(&lines, &["Operation not permitted"]);
        }
        fixture.assert_python_refused(
            "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
            &["Operation not permitted"],
        );
    }
}

#[test]
fn unix_sockets_of_programs_outside_cannot_be_reached() {
    let abstract_name = format!("toolcrib-test-{}", std::process::id());
    let address = {
        use std::os::linux::net::SocketAddrExt as _;
        std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name).unwrap()
    };
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    for fixture in Fixture::for_each_sandbox() {
        // Connecting is not a write, so a read-only mount does not prevent it.
        let _stream = UnixListener::bind(fixture.path("out/s.sock")).unwrap();
        let _datagram = UnixDatagram::bind(fixture.path("out/d.sock")).unwrap();
        for name in ["s.sock", "d.sock"] {
            fs::set_permissions(
                fixture.path("out").join(name),
                std::os::unix::fs::PermissionsExt::from_mode(0o777),
            )
            .unwrap();
        }
        for (kind, address) in [
            ("STREAM", format!("{:?}", fixture.path("out/s.sock"))),
            ("DGRAM", format!("{:?}", fixture.path("out/d.sock"))),
            ("STREAM", format!("'\\0{abstract_name}'")),
        ] {
            fixture.assert_python_refused(
                &format!("import socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_{kind})\ns.connect({address})"),
                &["refused", "Permission denied", "No such file", "Operation not permitted"],
            );
        }
    }
}

const SERVER: &str = "exec /usr/bin/python3 -u -c '
import socket
s = socket.create_server((\"127.0.0.1\", 0)); print(s.getsockname()[1])
while True:
    c, _ = s.accept(); c.sendall(b\"hello\\n\"); c.close()'";

/// Starts a server in a session. Returns its job and its port.
fn serve(fixture: &Fixture) -> (Arc<Job>, u16) {
    let job = fixture.start(SERVER);
    wait_for_output(&job);
    let said = String::from_utf8_lossy(&job.read(0, 100).1).into_owned();
    let port = said.trim().parse().unwrap_or_else(|_| panic!("{said}"));
    (job, port)
}

#[test]
fn a_server_is_reachable_only_within_its_session() {
    for fixture in Fixture::for_each_user() {
        let (job, port) = serve(&fixture);
        let client = format!("cat < /dev/tcp/127.0.0.1/{port}");
        assert_eq!(fixture.run_ok(&client), "hello\n");
        assert_eq!(fixture.run_ok(&client), "hello\n");
        assert_eq!(job.ports(), [port]);
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
        let other = fixture.runner.session(10);
        let command = fixture.command(&client);
        let elsewhere = other
            .start(&command, StartOptions::sandboxed(&fixture.sandbox, fixture.guard.clone()))
            .unwrap();
        assert!(wait_for_result(&elsewhere).output.contains("Connection refused"));
    }
}

#[test]
fn the_network_is_available_when_it_is_on() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    for mut fixture in Fixture::for_each_sandbox() {
        fixture.sandbox.network = Network::All;
        fixture.run_ok(&format!("exec 3<> /dev/tcp/127.0.0.1/{port}"));
        server.accept().unwrap();
        assert!(Path::new("/etc/resolv.conf").exists());
        fixture.run_ok("cat /etc/resolv.conf");
    }
}

/// Python code that changes to the directory `$1` and defines a client for Unix sockets.
const LOCAL: &str = r#"
import os, socket, sys
os.chdir(sys.argv[1])
def connect(name):
    try:
        s = socket.socket(socket.AF_UNIX); s.connect(name); return "reached"
    except OSError as error:
        return type(error).__name__
"#;

/// A program outside cannot be reached, whatever the name of its socket is.
#[test]
fn unix_sockets_outside_are_out_of_reach_under_any_name() {
    use std::os::unix::ffi::OsStrExt as _;
    for network in [Network::None, Network::All] {
        for mut fixture in Fixture::for_each_sandbox() {
            fixture.sandbox.network = network;
            fs::create_dir(fixture.path("ws/d")).unwrap();
            let odd = fixture.path("ws/d").join(std::ffi::OsStr::from_bytes(b"odd\xff\n"));
            let listeners: Vec<UnixListener> = [
                fixture.path("ws/d/plain"),
                fixture.path("ws/d/bound"),
                fixture.path("out/outside"),
                odd,
            ]
            .iter()
            .map(|path| UnixListener::bind(path).unwrap())
            .collect();
            fs::rename(fixture.path("ws/d/bound"), fixture.path("ws/d/renamed")).unwrap();
            fs::hard_link(fixture.path("ws/d/plain"), fixture.path("ws/d/linked")).unwrap();
            fixture.chown_all(if fixture.run_ok("id -u") == "0\n" { 0 } else { NOBODY });
            let lines = format!(
                "{LOCAL}
names = [b'plain', b'./plain', b'renamed', b'linked', b'odd\\xff\\n', os.environb[b'T'] + b'/out/outside', b'/proc/self/cwd/plain']
print([(name, r) for name in names if (r := connect(name)) != 'PermissionError'])
os.symlink('plain', 'symlink'); print(connect('symlink')); os.unlink('symlink')
for pair in (socket.socketpair, socket.socket):
    try:
        pair(socket.AF_UNIX, socket.SOCK_DGRAM); print('datagram')
    except PermissionError: print('refused')
"
            );
            let script = format!("/usr/bin/python3 - d <<'END'{lines}END");
            let expected = "[]\nPermissionError\nrefused\nrefused\n";
            assert_eq!(fixture.run_ok(&script), expected, "{network:?}");
            drop(listeners);
        }
    }
}

#[test]
fn unix_sockets_of_the_session_are_reachable() {
    for network in [Network::None, Network::All] {
        for mut fixture in Fixture::for_each_sandbox() {
            fixture.sandbox.network = network;
            let lines = format!(
                "{LOCAL}
server = socket.socket(socket.AF_UNIX); server.bind('mine'); server.listen()
print(connect('mine'), connect(os.getcwd() + '/mine'))
os.rename('mine', 'moved'); print(connect('moved'))
s = socket.socket(socket.AF_UNIX); s.bind('/tmp/in-tmp'); s.listen(); print(connect('/tmp/in-tmp'))
a = socket.socket(socket.AF_UNIX); a.bind(b'\\0own-abstract'); a.listen(); print(connect(b'\\0own-abstract'))
client = socket.socket(socket.AF_UNIX); client.setblocking(False); client.connect('moved')
import multiprocessing as m
with m.Manager() as manager: print(manager.list([1]))
"
            );
            let script = format!("/usr/bin/python3 - . <<'END'{lines}END");
            let expected = "reached reached\nreached\nreached\nreached\n[1]\n";
            assert_eq!(fixture.run_ok(&script), expected, "{network:?}");
            fixture.run_ok("rm -f moved");
        }
    }
}
