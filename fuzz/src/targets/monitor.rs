//! Lines on the monitor socket: a server answers every request line and stays usable, and a client reads every server
//! line without an error that ends it.

use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::LazyLock;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use toolcrib::{Access, Question, SessionApprovals};
use toolcrib_monitor::protocol::{Event, Server};
use toolcrib_monitor::{Asked, ListeningSocket, Monitor, RequestLine, ServerLine, State};

/// Longer than a server takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Request lines of one input. Others are ignored.
const MAX_LINES: usize = 20;

struct Running {
    _directory: tempfile::TempDir,
    socket: ListeningSocket,
    _asked: Asked,
}

static SERVER: LazyLock<Mutex<Running>> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a directory");
    let monitor = Monitor::new(Server::default(), None);
    monitor.set_id("1-fuzz");
    let socket = monitor.listen(&directory.path().join("run")).expect("a socket");
    let accesses = [Access::Command("make".to_owned())];
    let asks = SessionApprovals::default();
    let asked = Asked::open(&monitor, &question(&accesses, &asks));
    Mutex::new(Running { _directory: directory, socket, _asked: asked })
});

fn question<'a>(accesses: &'a [Access], asks: &'a SessionApprovals) -> Question<'a> {
    Question {
        call: 1,
        session: 1,
        tool: "Bash",
        description: None,
        accesses,
        directory: "/w".as_ref(),
        rule: "profile:cautious:command",
        why: "it asks",
        remedy: "",
        asks,
        always: None,
        always_directory: None,
        never: None,
        preview: None,
    }
}

/// Each line is sent to a server, and read as a line of a server.
pub(crate) fn monitor(input: &[u8]) -> String {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').take(MAX_LINES).collect();
    let read = lines.iter().filter(|line| is_server_line(line)).count();
    let (requests, errors) = send(&lines);
    format!("{requests} requests, {errors} errors, {read} server lines")
}

/// Whether a line is one of a server. What was read is written again as the same.
fn is_server_line(line: &[u8]) -> bool {
    if let Ok(state) = serde_json::from_slice::<State>(line) {
        let again = serde_json::to_vec(&state).expect("it is JSON");
        assert_eq!(serde_json::from_slice::<State>(&again).expect("it is a state"), state);
    }
    let Ok(read) = serde_json::from_slice::<ServerLine>(line) else { return false };
    if let ServerLine::Event { event: Event::QuestionOpened(question), .. } = &read {
        assert!(question.accesses.len() <= line.len(), "bounded by the line");
    }
    let again = serde_json::to_vec(&read).expect("it is JSON");
    assert_eq!(serde_json::from_slice::<ServerLine>(&again).expect("it is a line"), read);
    true
}

/// Sends lines to a server. Returns the number of requests with a result and with an error.
fn send(lines: &[&[u8]]) -> (usize, usize) {
    let server = SERVER.lock();
    let mut stream = UnixStream::connect(&server.socket.socket().path).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut replies = BufReader::new(stream.try_clone().expect("a handle"));
    let (mut requests, mut errors) = (0, 0);
    for line in lines {
        let id = serde_json::from_slice::<RequestLine>(line).map(|request| request.id);
        stream.write_all(&[line, &b"\n"[..]].concat()).expect("it reads");
        let reply = reply(&mut replies);
        if reply.get("error").is_some() {
            errors += 1;
        } else {
            let id = id.expect("only a request has a result");
            assert_eq!(reply["id"], id, "the reply has the id of its request");
            requests += 1;
        }
    }
    stream.write_all(b"{\"id\":77,\"method\":\"hello\"}\n").expect("it reads");
    assert_eq!(reply(&mut replies)["id"], 77, "the connection still works");
    (requests, errors)
}

/// The next line that is not an event.
fn reply(replies: &mut impl BufRead) -> Value {
    loop {
        let mut line = String::new();
        replies.read_line(&mut line).expect("a reply");
        let reply: Value = serde_json::from_str(&line).expect("it is JSON");
        if reply.get("id").is_some() {
            return reply;
        }
    }
}
