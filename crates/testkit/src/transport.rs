//! The transports. Each makes a call and returns the reply as the stable JSON object.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Map, Value, json};
use toolcrib::{Call, Caps, Dialect, HardLinks, Options, Runtime, SandboxSettings, Session};

use crate::case_settings::Setup;

/// A transport for calls.
pub trait Transport {
    /// Makes a call.
    fn call(&mut self, tool: &str, args: &Value, dry_run: bool) -> Map<String, Value>;
}

/// The library in this process.
pub struct InProcessTransport {
    runtime: Runtime,
    session: Session,
    dialect: Dialect,
}

impl InProcessTransport {
    /// Opens a workspace.
    pub fn open(workspace: &Path, setup: &Setup) -> InProcessTransport {
        let hard_links =
            if setup.write_through { HardLinks::WriteThrough } else { HardLinks::Break };
        let builder = Runtime::builder()
            .profile(setup.profile)
            .absolute_paths(setup.absolute_paths)
            .hard_links(hard_links)
            .journal(&setup.state, Caps::default())
            .home(Setup::home(workspace))
            .sandbox(SandboxSettings {
                hidden: vec![Setup::home(workspace).join(".ssh")].into(),
                ..SandboxSettings::default()
            })
            .helper(helper());
        let builder = match setup.outside {
            Some(outside) => builder.outside(outside),
            None => builder,
        };
        let builder = if setup.read_only {
            builder.read_only_root(workspace)
        } else {
            builder.root(workspace)
        };
        let runtime = builder.build().expect("the workspace is a directory");
        InProcessTransport { session: runtime.session(), runtime, dialect: Dialect::default() }
    }

    /// The same transport with replies in a dialect.
    #[must_use]
    pub fn in_dialect(mut self, dialect: Dialect) -> InProcessTransport {
        self.dialect = dialect;
        self
    }
}

/// The `helper` example of the library. `cargo test` builds it next to the tests.
fn helper() -> PathBuf {
    let tests = std::env::current_exe().expect("a test knows where it is");
    let target = tests.parent().and_then(Path::parent).expect("it is in target/debug/deps");
    let helper = target.join("examples/helper");
    assert!(helper.exists(), "cargo build -p toolcrib --example helper");
    helper
}

impl Transport for InProcessTransport {
    fn call(&mut self, tool: &str, args: &Value, dry_run: bool) -> Map<String, Value> {
        let options = Options { dry_run, dialect: self.dialect, ..Options::default() };
        toolcrib::to_json(&self.runtime.call(&self.session, Call::new(tool, args.clone()), options))
    }
}

/// `toolcrib call`, with one process for each call.
pub struct CallTransport {
    program: PathBuf,
    flags: Vec<String>,
    variables: [(&'static str, PathBuf); 3],
}

impl CallTransport {
    /// Opens a workspace.
    pub fn open(program: impl Into<PathBuf>, workspace: &Path, setup: &Setup) -> CallTransport {
        let (flags, variables) = (setup.flags(workspace), setup.variables(workspace));
        CallTransport { program: program.into(), flags, variables }
    }
}

impl Transport for CallTransport {
    fn call(&mut self, tool: &str, args: &Value, dry_run: bool) -> Map<String, Value> {
        let mut child = Command::new(&self.program)
            .args(["call", tool, "-", "--json"])
            .args(&self.flags)
            .args(dry_run.then_some("--dry-run"))
            .envs(self.variables.clone())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdin = child.stdin.take().expect("it was piped");
        stdin.write_all(args.to_string().as_bytes()).expect("it reads its input");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let reply = object(&output.stdout);
        let expected = if reply["success"] == true { 0 } else { 1 };
        assert_eq!(output.status.code(), Some(expected), "the exit code tells of success");
        reply
    }
}

/// `toolcrib run`, with one process for the whole case.
pub struct RunTransport {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    calls: u64,
}

impl RunTransport {
    /// Opens a workspace.
    pub fn open(program: impl AsRef<Path>, workspace: &Path, setup: &Setup) -> RunTransport {
        let mut process = Command::new(program.as_ref())
            .arg("run")
            .args(setup.flags(workspace))
            .envs(setup.variables(workspace))
            // The login shell of the user who runs the tests must not affect a case.
            .env_remove("SHELL")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdin = process.stdin.take();
        let stdout = BufReader::new(process.stdout.take().expect("it was piped"));
        RunTransport { process, stdin, stdout, calls: 0 }
    }
}

impl Transport for RunTransport {
    fn call(&mut self, tool: &str, args: &Value, dry_run: bool) -> Map<String, Value> {
        self.calls += 1;
        let mut line = json!({"id": self.calls, "tool": tool, "args": args});
        if dry_run {
            line["dry_run"] = true.into();
        }
        let stdin = self.stdin.as_mut().expect("it is open until the transport is dropped");
        writeln!(stdin, "{line}").expect("it reads its input");
        let mut reply = String::new();
        self.stdout.read_line(&mut reply).expect("it answers");
        let mut reply = object(reply.as_bytes());
        assert_eq!(reply.shift_remove("id"), Some(self.calls.into()), "the reply carries the id");
        reply
    }
}

impl Drop for RunTransport {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let status = self.process.wait();
        if !std::thread::panicking() {
            assert!(status.expect("it ends at EOF").success(), "EOF ends it without an error");
        }
    }
}

/// `toolcrib serve`, with one process for the whole case and an MCP client.
pub struct McpTransport {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    calls: u64,
}

impl McpTransport {
    /// Opens a workspace.
    pub fn open(program: impl AsRef<Path>, workspace: &Path, setup: &Setup) -> McpTransport {
        McpTransport::start(program, setup.flags(workspace), &setup.variables(workspace))
    }

    /// Starts the program with these flags.
    pub fn with_flags(program: impl AsRef<Path>, flags: Vec<String>) -> McpTransport {
        McpTransport::start(program, flags, &[])
    }

    /// Starts the program with these flags and variables.
    pub fn start(
        program: impl AsRef<Path>,
        flags: Vec<String>,
        variables: &[(&'static str, PathBuf)],
    ) -> McpTransport {
        let mut process = Command::new(program.as_ref())
            .arg("serve")
            .args(flags)
            .envs(variables.to_vec())
            .env_remove("SHELL")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdin = process.stdin.take();
        let stdout = BufReader::new(process.stdout.take().expect("it was piped"));
        McpTransport { process, stdin, stdout, calls: 0 }
    }

    /// Sends a line unchanged.
    pub fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it is open until the transport is dropped");
        writeln!(stdin, "{line}").expect("it reads its input");
    }

    /// Receives the next message.
    pub fn receive(&mut self) -> Map<String, Value> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it answers");
        object(line.as_bytes())
    }

    /// Sends a request of the protocol version without sessions. Returns the whole response.
    pub fn request(
        &mut self,
        method: &str,
        mut params: Value,
        capabilities: Value,
    ) -> Map<String, Value> {
        self.calls += 1;
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "cases", "version": "1"});
        meta["toolcrib/metadata"] = true.into();
        let request =
            json!({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params});
        self.send(&request.to_string());
        let answer = self.receive();
        assert_eq!(
            answer.get("id"),
            Some(&self.calls.into()),
            "the answer carries the id: {answer:?}"
        );
        answer
    }
}

impl Transport for McpTransport {
    fn call(&mut self, tool: &str, args: &Value, dry_run: bool) -> Map<String, Value> {
        let params =
            json!({"name": tool, "arguments": args, "_meta": {"toolcrib/dry_run": dry_run}});
        let mut answer = self.request("tools/call", params, json!({}));
        let mut result =
            answer.shift_remove("result").unwrap_or_else(|| panic!("{tool} {args}: {answer:?}"));
        let mut reply = Map::new();
        reply.insert("success".to_owned(), (result["isError"] != true).into());
        reply.insert("output".to_owned(), result["content"][0]["text"].take());
        for fact in ["metadata", "error"] {
            let value = result["_meta"][format!("toolcrib/{fact}")].take();
            if !value.is_null() {
                reply.insert(fact.to_owned(), value);
            }
        }
        reply
    }
}

impl Drop for McpTransport {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let status = self.process.wait();
        if !std::thread::panicking() {
            assert!(status.expect("it ends at EOF").success(), "EOF ends it without an error");
        }
    }
}

fn object(bytes: &[u8]) -> Map<String, Value> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => object,
        _ => panic!("not one JSON object: {}", String::from_utf8_lossy(bytes)),
    }
}
