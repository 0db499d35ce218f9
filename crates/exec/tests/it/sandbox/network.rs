//! The network: off, or all of it; and sockets, which are files too.

use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener};

use super::*;

#[test]
fn nobody_outside_is_reached() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let udp_port = datagrams.local_addr().unwrap().port();
    for bench in Bench::with_every_view() {
        bench.refused(&format!("cat < /dev/tcp/127.0.0.1/{port}"), &["Connection refused"]);
        bench.refused("cat < /dev/tcp/192.0.2.1/80", &["Network is unreachable"]);
        bench.run(&format!("echo x > /dev/udp/127.0.0.1/{udp_port}"));
        assert!(datagrams.recv(&mut [0; 8]).is_err());
        for family in ["AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_BLUETOOTH"] {
            let lines = format!("import socket\nsocket.socket(socket.{family}, socket.SOCK_RAW)");
            bench.python_refused(&lines, &["Operation not permitted"]);
        }
        bench.python_refused(
            "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
            &["Operation not permitted"],
        );
    }
}

#[test]
fn sockets_of_programs_outside_are_not_there() {
    let abstract_name = format!("toolcrib-test-{}", std::process::id());
    let address = {
        use std::os::linux::net::SocketAddrExt as _;
        std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name).unwrap()
    };
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    for bench in Bench::with_every_view() {
        // Connecting to one is no writing, so that it is on a read-only mount does not matter.
        let _stream = UnixListener::bind(bench.path("out/s.sock")).unwrap();
        let _datagram = UnixDatagram::bind(bench.path("out/d.sock")).unwrap();
        for name in ["s.sock", "d.sock"] {
            fs::set_permissions(
                bench.path("out").join(name),
                std::os::unix::fs::PermissionsExt::from_mode(0o777),
            )
            .unwrap();
        }
        for (kind, address) in [
            ("STREAM", format!("{:?}", bench.path("out/s.sock"))),
            ("DGRAM", format!("{:?}", bench.path("out/d.sock"))),
            ("STREAM", format!("'\\0{abstract_name}'")),
        ] {
            bench.python_refused(
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

/// Starts a server in a session, and answers its port.
fn serve(bench: &Bench) -> (Arc<Job>, u16) {
    let job = bench.start(SERVER);
    wrote(&job);
    let said = String::from_utf8_lossy(&job.read(0, 100).1).into_owned();
    let port = said.trim().parse().unwrap_or_else(|_| panic!("{said}"));
    (job, port)
}

#[test]
fn a_server_is_reached_by_later_commands_of_its_session_and_by_nobody_else() {
    for bench in Bench::for_everybody() {
        let (job, port) = serve(&bench);
        let client = format!("cat < /dev/tcp/127.0.0.1/{port}");
        assert_eq!(bench.passes(&client), "hello\n");
        assert_eq!(bench.passes(&client), "hello\n");
        assert_eq!(job.ports(), [port]);
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
        let other = bench.shells.session(10);
        let elsewhere = other.start_within(&bench.sandbox, &bench.command(&client)).unwrap();
        assert!(ran(&elsewhere).output.contains("Connection refused"));
    }
}

#[test]
fn the_network_is_there_when_it_is_allowed() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    for mut bench in Bench::with_every_view() {
        bench.sandbox.network = Network::All;
        bench.passes(&format!("exec 3<> /dev/tcp/127.0.0.1/{port}"));
        server.accept().unwrap();
        assert!(Path::new("/etc/resolv.conf").exists());
        bench.passes("cat /etc/resolv.conf");
    }
}

/// Has somebody make and remove a socket outside, again and again, while something is done.
pub(super) fn while_sockets_come_and_go(bench: &Bench, work: impl FnOnce()) {
    let path = bench.path("out/s.sock");
    let done = std::sync::atomic::AtomicBool::new(false);
    let until = std::time::Instant::now() + LONG;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed)
                && std::time::Instant::now() < until
            {
                let _listener = UnixListener::bind(&path).unwrap();
                fs::remove_file(&path).unwrap();
            }
        });
        work();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn sockets_that_come_and_go_meanwhile_are_in_nobodys_way() {
    let bench = Bench::new();
    while_sockets_come_and_go(&bench, || {
        for _ in 0..100 {
            bench.passes("true");
        }
    });
}
