//! MCP messages as lines: whatever they are, the server continues, its responses are bounded, and a dry run changes
//! nothing.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcrib::{Call, Caps, Options, Profile, Runtime};
use toolcrib_mcp::{ServeOptions, serve_socket};

/// More than the longest response, which is the list of tools.
const MAX_RESPONSE_BYTES: usize = 100_000;

/// A server that does not respond within this time has hung.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

thread_local! {
    static CLIENT: RefCell<Option<Client>> = const { RefCell::new(None) };
}

/// A server in its own thread, and the client's end of its socket.
struct Client {
    workspace: TempDir,
    stream: BufReader<UnixStream>,
    last: u64,
}

pub(crate) fn mcp(input: &[u8]) -> String {
    // After a panic the next input gets a new server.
    let mut client = CLIENT.take().unwrap_or_else(Client::start);
    let outcome = client.run(input);
    CLIENT.set(Some(client));
    outcome
}

impl Client {
    fn start() -> Client {
        let workspace = tempfile::tempdir().expect("a directory");
        let (root, state) = (workspace.path().join("ws"), workspace.path().join("state"));
        fs::create_dir(&root).expect("a directory");
        fs::write(root.join("a.txt"), "one\n").expect("a file");
        // Without a helper there are no commands. This profile writes files without approval.
        let builder = Runtime::builder().root(&root).profile(Profile::Open);
        let runtime = builder.journal(state, Caps::default()).build().expect("a runtime");
        let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
        let session = runtime.session();
        runtime.call(&session, Call::new("Edit", edit), Options::default()).expect("an edit");
        let (ours, theirs) = UnixStream::pair().expect("a socket");
        ours.set_read_timeout(Some(RESPONSE_TIMEOUT)).expect("a timeout");
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

    fn run(&mut self, input: &[u8]) -> String {
        self.send(input);
        self.last += 1;
        let last = format!("last-{}", self.last);
        let ping = json!({"jsonrpc": "2.0", "id": last, "method": "ping"});
        self.send(ping.to_string().as_bytes());
        let (mut results, mut errors) = (0, 0);
        loop {
            let response = self.receive();
            if response["id"] == last.as_str() {
                break;
            }
            results += u32::from(response.get("result").is_some());
            errors += u32::from(response.get("error").is_some());
        }
        let root = self.workspace.path().join("ws");
        let files: Vec<_> = fs::read_dir(&root).expect("a directory").flatten().collect();
        assert_eq!(files.len(), 1, "a dry run creates nothing: {files:?}");
        assert_eq!(fs::read(root.join("a.txt")).expect("a file"), b"two\n");
        match (results, errors) {
            (0, 0) => "no response before the last",
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
        let read = self.stream.read_line(&mut line).expect("the server responds");
        assert!((1..=MAX_RESPONSE_BYTES).contains(&read), "an response of {read} bytes");
        serde_json::from_str(&line).expect("an response is JSON")
    }
}
