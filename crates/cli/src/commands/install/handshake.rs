//! Starts the server as a client would, and asks it what it has.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use super::clients::{Client, Start};

/// Who has not answered by then will not.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many tools the server has, by its own answer.
pub(super) fn count_tools(client: Client, start: &Start) -> Result<usize, String> {
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let real = |argument: &String| match client.project() {
        Some(project) => argument.replace(project, &here.display().to_string()),
        None => argument.clone(),
    };
    let mut child = Command::new(&start.program)
        .args(start.arguments.iter().map(real))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{} does not start: {error}", start.program))?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (tell, answered) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let asked = input.map(|mut input| writeln!(input, "{}", question()).map(|()| input));
        if let (Some(Ok(_input)), Some(output)) = (asked, output) {
            let _ = BufReader::new(output).read_line(&mut line);
            let _ = tell.send(line);
        }
    });
    let answer = answered.recv_timeout(PATIENCE);
    let _ = child.kill();
    let _ = child.wait();
    let answer: Option<Value> = answer.ok().and_then(|line| serde_json::from_str(&line).ok());
    let tools = answer.as_ref().and_then(|answer| answer["result"]["tools"].as_array());
    tools.map(Vec::len).ok_or_else(|| "it starts, and does not answer as a server does".to_owned())
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
