//! Starts the server as a client would, and lists its tools.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::clients::ServerCommand;
use crate::args::Client;

/// A server that does not answer within this time counts as broken.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time limit for reading its messages: a process that it left behind could keep the pipe open.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The time between two looks at whether it has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// The maximum length of its answer: the list of tools has less than 100 kB.
const MAX_ANSWER_BYTES: u64 = 16 << 20;

/// The maximum number of bytes shown of its messages.
const MAX_MESSAGE_BYTES: u64 = 4_096;

/// Stands for the messages of a server without any.
pub(super) const NO_MESSAGES: &str = "(none)";

/// The number of tools that the server lists. The error says why it did not answer.
pub(super) fn count_tools(client: Client, start: &ServerCommand) -> Result<usize, String> {
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let real = |argument: &String| match client.project() {
        Some(project) => argument.replace(project, &here.display().to_string()),
        None => argument.clone(),
    };
    let mut child = Command::new(&start.program)
        .args(start.arguments.iter().map(real))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} does not start: {error}", start.program))?;
    let messages = child.stderr.take().map(messages);
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (tell, answered) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        // Writing fails if the server has ended. Then there is no answer to read.
        let _open = input.map(|mut input| writeln!(input, "{}", question()).map(|()| input));
        if let Some(output) = output {
            let _ = BufReader::new(output.take(MAX_ANSWER_BYTES)).read_line(&mut line);
        }
        let _ = tell.send(line);
    });
    let line = answered.recv_timeout(PATIENCE);
    let answer: Option<Value> = line.as_ref().ok().and_then(|line| serde_json::from_str(line).ok());
    let status = if line.is_ok() && answer.is_none() { ended(&mut child) } else { None };
    let _ = child.kill();
    let _ = child.wait();
    let tools = answer.as_ref().and_then(|answer| answer["result"]["tools"].as_array());
    tools.map(Vec::len).ok_or_else(|| {
        let said = messages.and_then(|messages| messages.recv_timeout(LAST_WORDS).ok());
        let said = line.unwrap_or_default() + &said.unwrap_or_default();
        let words = start.arguments.join(" ");
        let happened = match status {
            Some(status) => format!("did not answer: it ended with {status}"),
            None => "started, but did not answer".to_owned(),
        };
        format!(
            "`{} {words}` {happened}. Its messages:\n{}",
            start.program,
            if said.trim().is_empty() { NO_MESSAGES } else { said.trim() }
        )
    })
}

/// How a server ended that has closed its stdout. `None` if it still runs.
fn ended(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + LAST_WORDS;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            status => return status.ok().flatten(),
        }
    }
}

/// The beginning of the server's stderr, once it has exited.
fn messages(stderr: ChildStderr) -> mpsc::Receiver<String> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let mut stderr = stderr.take(MAX_MESSAGE_BYTES);
        let _ = stderr.read_to_end(&mut text);
        let _ = tell.send(String::from_utf8_lossy(&text).into_owned());
        // The rest is discarded, so that the server does not block on the pipe.
        let _ = std::io::copy(&mut stderr.into_inner(), &mut std::io::sink());
    });
    told
}

fn question() -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    })
}
