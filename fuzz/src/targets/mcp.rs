//! Messages of MCP, as lines: whatever they are, the server goes on, its answers are bounded, and a dry run
//! changes nothing.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcrib::{Call, Caps, Options, Profile, Runtime};
use toolcrib_mcp::{ServeOptions, serve_socket};

/// More than the longest answer, which is the list of tools.
const MAX_ANSWER_BYTES: usize = 100_000;

/// A server that does not answer by then has stopped.
const PATIENCE: Duration = Duration::from_secs(60);

thread_local! {
    static CLIENT: RefCell<Option<Client>> = const { RefCell::new(None) };
}

/// A server in a thread of its own, and the client's end of its socket.
struct Client {
    workspace: TempDir,
    stream: BufReader<UnixStream>,
    last: u64,
}

pub(crate) fn mcp(input: &[u8]) -> String {
    // After a panic the next input gets a server of its own.
    let mut client = CLIENT.take().unwrap_or_else(Client::start);
    let outcome = client.try_on(input);
    CLIENT.set(Some(client));
    outcome
}

impl Client {
    fn start() -> Client {
        let workspace = tempfile::tempdir().expect("a directory");
        let (root, state) = (workspace.path().join("ws"), workspace.path().join("state"));
        fs::create_dir(&root).expect("a directory");
        fs::write(root.join("a.txt"), "one\n").expect("a file");
        // Without a helper there are no commands; files are written without a question.
        let builder = Runtime::builder().root(&root).profile(Profile::Open);
        let runtime = builder.journal(state, Caps::default()).build().expect("a runtime");
        let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
        let session = runtime.session();
        runtime.call(&session, Call::new("Edit", edit), Options::default()).expect("an edit");
        let (ours, theirs) = UnixStream::pair().expect("a socket");
        ours.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let options = ServeOptions { dry_run: true, ..ServeOptions::default() };
        std::thread::spawn(move || serve_socket(runtime, options, theirs));
        let mut client = Client { workspace, stream: BufReader::new(ours), last: 0 };
        let info = json!({"name": "fuzz", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        client.send(begin.to_string().as_bytes());
        client.receive();
        client.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client
    }

    fn try_on(&mut self, input: &[u8]) -> String {
        self.send(input);
        self.last += 1;
        let last = format!("last-{}", self.last);
        let ping = json!({"jsonrpc": "2.0", "id": last, "method": "ping"});
        self.send(ping.to_string().as_bytes());
        let (mut results, mut errors) = (0, 0);
        loop {
            let answer = self.receive();
            if answer["id"] == last.as_str() {
                break;
            }
            results += u32::from(answer.get("result").is_some());
            errors += u32::from(answer.get("error").is_some());
        }
        let root = self.workspace.path().join("ws");
        let files: Vec<_> = fs::read_dir(&root).expect("a directory").flatten().collect();
        assert_eq!(files.len(), 1, "a dry run makes nothing: {files:?}");
        assert_eq!(fs::read(root.join("a.txt")).expect("a file"), b"two\n");
        match (results, errors) {
            (0, 0) => "no answer before the last",
            (0, _) => "errors",
            (_, 0) => "results",
            _ => "both",
        }
        .to_owned()
    }

    fn send(&mut self, line: &[u8]) {
        let stream = self.stream.get_mut();
        stream.write_all(&[line, b"\n"].concat()).expect("the server reads on");
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).expect("the server answers");
        assert!((1..=MAX_ANSWER_BYTES).contains(&read), "an answer of {read} bytes");
        serde_json::from_str(&line).expect("an answer is JSON")
    }
}
