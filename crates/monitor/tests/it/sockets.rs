//! Servers and clients on sockets in a directory.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::channel;
use std::time::Duration;

use toolcrib_monitor::protocol::{Event, Server};
use toolcrib_monitor::{Client, Monitor, Notice, RequestErrorKind, ServerNotice, Servers, sockets};

const LONG: Duration = Duration::from_secs(60);

fn server(program: &str) -> Server {
    Server { program: program.to_owned(), pid: 1, ..Server::default() }
}

#[test]
fn a_client_says_hello_and_gets_events() {
    let top = tempfile::tempdir().unwrap();
    let directory = top.path().join("run");
    let monitor = Monitor::new(server("serve"), None);
    let listening = monitor.listen(&directory).unwrap();
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&directory), mode(&listening.socket().path)), (0o700, 0o600));
    assert_eq!(sockets(&directory), [listening.socket().clone()]);

    let (sender, notices) = channel();
    let client = Client::connect(listening.socket(), move |notice| {
        let _ = sender.send(notice);
    })
    .unwrap();
    assert_eq!(client.hello().unwrap(), server("serve"));
    assert_eq!(client.subscribe(None).unwrap().seq, 0);
    assert_eq!(client.subscribe(None).unwrap_err().kind, RequestErrorKind::Invalid);
    monitor.name_client("agent 1.0");
    let named = Server { client: Some("agent 1.0".to_owned()), ..server("serve") };
    let event = Event::ClientNamed(named);
    assert_eq!(notices.recv_timeout(LONG).unwrap(), Notice::Event { seq: 1, event });

    assert!(!monitor.has_active_viewer());
    client.visible(true).unwrap();
    assert!(monitor.has_active_viewer());
    drop(client);
    assert_eq!(notices.recv_timeout(LONG).unwrap(), Notice::Closed);
}

#[test]
fn all_servers_of_a_directory_are_joined_as_they_come_and_go() {
    let top = tempfile::tempdir().unwrap();
    let directory = top.path().join("run");
    let early = Monitor::new(server("serve"), None);
    let early_socket = early.listen(&directory).unwrap();
    let stale = directory.join("999999-00.sock");
    drop(UnixListener::bind(&stale).unwrap());

    let (sender, notices) = channel();
    let servers = Servers::join(&[top.path().join("other"), directory.clone()], move |notice| {
        let _ = sender.send(notice);
    })
    .unwrap();
    let next = || notices.recv_timeout(LONG).unwrap();
    assert!(matches!(next(), ServerNotice::Joined { info, .. } if info.program == "serve"));
    while stale.exists() {
        // The socket of an ended process is removed.
        std::thread::sleep(Duration::from_millis(5));
    }

    let late = Monitor::new(server("run"), None);
    let late_socket = late.listen(&directory).unwrap();
    assert!(matches!(next(), ServerNotice::Joined { info, .. } if info.program == "run"));
    servers.visible(true);
    // Nobody waits for the replies.
    while !(early.has_active_viewer() && late.has_active_viewer()) {
        std::thread::sleep(Duration::from_millis(5));
    }

    late.name_client("x");
    let id = late_socket.socket().server.clone();
    assert!(matches!(next(), ServerNotice::Event { server, seq: 1, .. } if server == id));
    assert!(servers.client(&id).is_some());
    drop((early_socket, late_socket));
}

#[test]
fn servers_that_are_stopped_delay_no_other() {
    let top = tempfile::tempdir().unwrap();
    let directory = top.path().join("run");
    let monitor = Monitor::new(server("serve"), None);
    let listening = monitor.listen(&directory).unwrap();
    // They are connected to, but never reply.
    let stopped = ["0-01", "0-02", "0-03", "0-04"]
        .map(|name| UnixListener::bind(directory.join(format!("{name}.sock"))).unwrap());
    let (sender, notices) = channel();
    let joining = directory.clone();
    let joined = std::thread::spawn(move || {
        Servers::join(&[joining], move |notice| {
            let _ = sender.send(notice);
        })
    });
    let first = notices.recv_timeout(LONG).unwrap();
    let id = listening.socket().server.clone();
    assert!(matches!(first, ServerNotice::Joined { server, .. } if server == id));
    let servers = joined.join().unwrap().unwrap();
    servers.visible(true);
    while !monitor.has_active_viewer() {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(stopped);
}

#[test]
fn invalid_lines_are_answered_and_endless_ones_end_the_connection() {
    let top = tempfile::tempdir().unwrap();
    let monitor = Monitor::new(server("serve"), None);
    let listening = monitor.listen(&top.path().join("run")).unwrap();
    let mut stream = UnixStream::connect(&listening.socket().path).unwrap();
    stream.write_all(b"{\"id\": 7, \"method\": \"no_such\"}\nnot json\n").unwrap();
    let mut read = [0; 4096];
    let mut text = String::new();
    while text.lines().count() < 2 || !text.ends_with('\n') {
        let count = stream.read(&mut read).unwrap();
        text += std::str::from_utf8(&read[..count]).unwrap();
    }
    assert!(text.starts_with("{\"id\":7,\"error\":{\"kind\":\"invalid\""), "{text}");
    let long = vec![b'x'; 9 << 20];
    // The server stops reading at the limit.
    let _ = stream.write_all(&long);
    let _ = stream.write_all(b"\n");
    assert!(matches!(stream.read(&mut read), Ok(0) | Err(_)));
}

#[test]
fn a_client_that_does_not_read_delays_nobody_and_learns_what_it_missed() {
    let top = tempfile::tempdir().unwrap();
    let monitor = Monitor::new(server("serve"), None);
    let listening = monitor.listen(&top.path().join("run")).unwrap();
    let mut slow = UnixStream::connect(&listening.socket().path).unwrap();
    slow.write_all(b"{\"id\": 1, \"method\": \"subscribe\"}\n").unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(slow));
    // Only later events can be missed.
    assert!(lines.next().unwrap().unwrap().starts_with("{\"id\":1,"));
    let long = "x".repeat(1_000);
    for number in 0..20_000 {
        monitor.name_client(&format!("{long} {number}"));
    }
    let missed = lines.find_map(|line| {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        line["missed"].as_u64().filter(|_| line.get("event").is_none() && line.get("id").is_none())
    });
    assert!(missed.is_some_and(|missed| missed > 0), "{missed:?}");
}

#[test]
fn clients_beyond_the_limit_are_disconnected() {
    let top = tempfile::tempdir().unwrap();
    let monitor = Monitor::new(server("serve"), None);
    let listening = monitor.listen(&top.path().join("run")).unwrap();
    let clients: Vec<Client> =
        (0..16).map(|_| Client::connect(listening.socket(), |_| {}).unwrap()).collect();
    clients.iter().for_each(|client| drop(client.hello().unwrap()));
    let refused = Client::connect(listening.socket(), |_| {}).unwrap();
    assert_eq!(refused.hello().unwrap_err().kind, RequestErrorKind::Io);
    drop(clients);
    // The places become free as the threads end.
    while Client::connect(listening.socket(), |_| {}).unwrap().hello().is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_client_that_looks_while_a_server_starts_does_not_remove_its_socket() {
    let top = tempfile::tempdir().unwrap();
    let directory = top.path().join("run");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                for socket in sockets(&directory) {
                    drop(Client::connect(&socket, |_| {}));
                }
            }
        });
        for _ in 0..2_000 {
            let monitor = Monitor::new(server("serve"), None);
            let listening = monitor.listen(&directory).unwrap();
            let is_there = listening.socket().path.exists();
            drop(listening);
            if !is_there {
                is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            assert!(is_there);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
