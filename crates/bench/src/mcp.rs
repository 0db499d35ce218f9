//! `bench mcp`: `toolcrib serve` compared with other file servers: time to the first response, reading a small
//! file, many concurrent calls, the size of the tool list, memory.
//!
//! All servers use the older protocol version here, since the others do not support a newer one. A server that
//! cannot be installed is skipped with a message.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::LineProcess;
use toolcrib_devtools::{node, peers};

use super::Rounds;
use super::report::Report;
use super::table::{Cell, Table};
use super::times::Times;

/// The number of concurrent calls, and of all calls.
const IN_FLIGHT: usize = 64;
const CALLS: usize = 10_000;

/// The time limit for one server; the measurements so far are enough.
const SERVER_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts are slow, so a few measurements suffice.
const STARTS: usize = 20;

struct Server {
    name: &'static str,
    words: Vec<PathBuf>,
    /// The tool that reads a file, and the name of its path argument.
    read: (&'static str, &'static str),
    start: Times,
    small_read: Times,
    in_a_row: Times,
    at_once: Times,
    list_bytes: usize,
    memory: u64,
}

pub(super) fn run(rounds: Rounds, report: &mut Report) -> Result<()> {
    let binary = rounds.build()?;
    let top = tempfile::tempdir()?;
    let workspace = top.path().join("ws");
    std::fs::create_dir(&workspace)?;
    let file = workspace.join("small.txt");
    std::fs::write(&file, "a line of a small file\n".repeat(40))?;
    let mut servers = servers(&binary, top.path(), &workspace, rounds, report)?;
    for server in &mut servers {
        server.measure_list()?;
    }
    for _ in 0..rounds.measured.min(STARTS) {
        for server in &mut servers {
            let started = Instant::now();
            let _conversation = server.converse()?;
            server.start.add(started.elapsed());
        }
    }
    measure_reads(&mut servers, &file, rounds)?;
    let calls = if rounds.is_smoke { IN_FLIGHT * 2 } else { CALLS };
    for (at, server) in servers.iter_mut().enumerate() {
        match server.measure_many(&file, calls) {
            // A failure of another server under this load is a result too.
            Err(error) if at > 0 => report.note(&format!("{} gave up: {error}", server.name)),
            measured => measured?,
        }
    }
    report.add(&table(&servers));
    Ok(())
}

fn servers(
    binary: &Path,
    top: &Path,
    workspace: &Path,
    rounds: Rounds,
    report: &mut Report,
) -> Result<Vec<Server>> {
    let server = |name, words: Vec<PathBuf>, read| Server {
        name,
        words,
        read,
        start: Times::default(),
        small_read: Times::default(),
        in_a_row: Times::default(),
        at_once: Times::default(),
        list_bytes: 0,
        memory: 0,
    };
    let ours =
        ["serve".into(), "--root".into(), workspace.into(), "--state".into(), top.join("state")];
    let ours = std::iter::once(binary.to_owned()).chain(ours).collect();
    let mut servers = vec![server("toolcrib", ours, ("Read", "file_path"))];
    // Installing them takes minutes; a smoke run skips them.
    if !rounds.is_smoke {
        let script = node::install("peers.json")?
            .file("@modelcontextprotocol/server-filesystem/dist/index.js");
        let words = vec!["node".into(), script, workspace.into()];
        servers.push(server("the official one for Node", words, ("read_text_file", "path")));
        let words = vec![peers::server()?, workspace.into()];
        servers.push(server("rust-mcp-filesystem", words, ("read_text_file", "path")));
        match desktop_commander(top, workspace) {
            Ok(words) => servers.push(server("Desktop Commander", words, ("read_file", "path"))),
            Err(error) => report.note(&format!("Desktop Commander is not measured: {error}")),
        }
    }
    Ok(servers)
}

/// The command line of Desktop Commander, with a home whose configuration restricts it to the workspace and
/// disables telemetry.
fn desktop_commander(top: &Path, workspace: &Path) -> Result<Vec<PathBuf>> {
    let script = node::install("desktop-commander.json")?
        .file("@wonderwhy-er/desktop-commander/dist/index.js");
    let home = top.join("home");
    let settings = home.join(".claude-server-commander");
    std::fs::create_dir_all(&settings)?;
    let told = json!({"telemetryEnabled": false, "allowedDirectories": [workspace]});
    std::fs::write(settings.join("config.json"), told.to_string())?;
    let home = PathBuf::from(format!("HOME={}", home.display()));
    Ok(vec!["env".into(), home, "node".into(), script, "--no-onboarding".into()])
}

/// Measures small reads: first alternating between servers, so that each is idle and its caches are cold, then
/// many in a row.
fn measure_reads(servers: &mut [Server], file: &Path, rounds: Rounds) -> Result<()> {
    let mut conversations =
        servers.iter().map(Server::converse).collect::<Result<Vec<LineProcess>>>()?;
    for round in 0..rounds.warm_up + rounds.measured {
        for (server, conversation) in servers.iter_mut().zip(&mut conversations) {
            let time = server.read(conversation, file, round + 10)?;
            if round >= rounds.warm_up {
                server.small_read.add(time);
            }
        }
    }
    for (server, conversation) in servers.iter_mut().zip(&mut conversations) {
        for round in 0..rounds.warm_up + rounds.measured {
            let time = server.read(conversation, file, round + 10_000)?;
            if round >= rounds.warm_up {
                server.in_a_row.add(time);
            }
        }
        server.memory = conversation.peak_memory()?;
    }
    Ok(())
}

impl Server {
    /// Starts a conversation and initializes the protocol.
    fn converse(&self) -> Result<LineProcess> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).stderr(Stdio::null());
        let mut conversation = LineProcess::start(command)?;
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        let (answer, _) = ask(&mut conversation, &line(1, "initialize", &hello))?;
        if answer["result"]["serverInfo"].is_null() {
            return Err(format!("{}: {answer}", self.name).into());
        }
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        conversation.say(&format!("{ready}\n"))?;
        Ok(conversation)
    }

    /// Reads a file. Returns the time it took.
    fn read(&self, conversation: &mut LineProcess, file: &Path, id: usize) -> Result<Duration> {
        let line = self.read_line(id, file);
        let started = Instant::now();
        let (answer, came) = ask(conversation, &line)?;
        check(self.name, &answer)?;
        Ok(came - started)
    }

    fn read_line(&self, id: usize, file: &Path) -> String {
        let (tool, path) = self.read;
        line(id, "tools/call", &json!({"name": tool, "arguments": {path: file}}))
    }

    fn measure_list(&mut self) -> Result<()> {
        let mut conversation = self.converse()?;
        let (answer, _) = ask(&mut conversation, &line(2, "tools/list", &json!({})))?;
        self.list_bytes = answer["result"]["tools"].to_string().len();
        Ok(())
    }

    /// Measures many calls with a constant number in flight.
    fn measure_many(&mut self, file: &Path, calls: usize) -> Result<()> {
        let mut conversation = self.converse()?;
        let mut asked: HashMap<u64, Instant> = HashMap::new();
        let mut next = 100;
        let mut last = next + calls;
        let began = Instant::now();
        while next < last || !asked.is_empty() {
            if began.elapsed() > SERVER_TIMEOUT {
                last = next;
            }
            while next < last && asked.len() < IN_FLIGHT {
                asked.insert(next as u64, Instant::now());
                conversation.say(&self.read_line(next, file))?;
                next += 1;
            }
            let (answer, came) = answer(&mut conversation)?;
            check(self.name, &answer)?;
            let id = answer["id"].as_u64().ok_or("an answer without an id")?;
            let sent = asked.remove(&id).ok_or("an unexpected response")?;
            self.at_once.add(came - sent);
        }
        Ok(())
    }
}

/// Sends a line and waits for its response.
fn ask(conversation: &mut LineProcess, line: &str) -> Result<(Value, Instant)> {
    conversation.say(line)?;
    answer(conversation)
}

/// The next response and the time of its last byte. Skips other messages, as clients do. The time excludes parsing,
/// which takes us longer than a server needs to produce the message.
fn answer(conversation: &mut LineProcess) -> Result<(Value, Instant)> {
    loop {
        let line = conversation.line()?.ok_or("the server ended in the middle")?;
        let came = Instant::now();
        let message: Value = serde_json::from_str(&line)?;
        if message.get("method").is_none() {
            return Ok((message, came));
        }
    }
}

fn line(id: usize, method: &str, params: &Value) -> String {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    format!("{request}\n")
}

fn check(name: &str, answer: &Value) -> Result<()> {
    let parts = answer["result"]["content"].as_array().into_iter().flatten();
    let mut texts = parts.filter_map(|part| part["text"].as_str());
    if texts.any(|text| text.contains("a line of a small file")) {
        Ok(())
    } else {
        Err(format!("{name} gave a wrong response: {answer}").into())
    }
}

fn table(servers: &[Server]) -> Table {
    let columns = [
        "start ms",
        "small read in turns p50 ms",
        "in turns p99 ms",
        "in a row p50 ms",
        "in a row p99 ms",
        "of 64 at once p50 ms",
        "of 64 at once p99 ms",
        "list bytes",
        "peak MB",
        "in turns to ours",
        "in a row to ours",
    ];
    let mut table = Table::new("server", &columns);
    let ours = |times: fn(&Server) -> &Times| times(servers.first()?).percentile_ms(50);
    let (turns, row) = (ours(|server| &server.small_read), ours(|server| &server.in_a_row));
    for server in servers {
        let exact = |times: &Times, percent| Cell::exact(times.percentile_ms(percent));
        let cells = [
            exact(&server.start, 50),
            exact(&server.small_read, 50),
            exact(&server.small_read, 99),
            exact(&server.in_a_row, 50),
            exact(&server.in_a_row, 99),
            exact(&server.at_once, 50),
            exact(&server.at_once, 99),
            Cell::whole(Some(server.list_bytes as f64)),
            Cell::whole(Some(server.memory as f64 / 1e6)),
            Cell::ratio(server.small_read.percentile_ms(50), turns),
            Cell::ratio(server.in_a_row.percentile_ms(50), row),
        ];
        table.row(server.name, cells);
    }
    table
}
