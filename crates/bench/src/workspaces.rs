//! `bench workspaces`: one process with many workspaces over HTTP: the time to open one, the memory of each, and small Reads
//! in one of them while all are open.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_devtools::error::Result;

use super::Rounds;
use super::report::Report;
use super::table::{Cell, Table};
use super::times::Times;

/// The number of workspaces.
const WORKSPACES: usize = 1_000;

/// More rounds than elsewhere, since the slowest of a hundred counts here.
const READS_IN_A_ROUND: usize = 10;

/// A line of the file in each workspace.
const LINE: &str = "a line of a small file";

pub(super) fn run(rounds: Rounds, report: &mut Report) -> Result<()> {
    let binary = rounds.build()?;
    let top = tempfile::tempdir()?;
    let count = if rounds.is_smoke { 3 } else { WORKSPACES };
    for number in 0..count {
        let workspace = top.path().join(format!("all/w{number}"));
        std::fs::create_dir_all(&workspace)?;
        std::fs::write(workspace.join("small.txt"), format!("{LINE}\n").repeat(40))?;
    }
    let server = Server::start(&binary, top.path())?;
    let (mut opening, mut reading) = (Times::default(), Times::default());
    // The first one also loads what all of them share.
    server.connect()?.read(0)?;
    let before = server.memory()?;
    for number in 1..count {
        opening.add(server.connect()?.read(number)?);
    }
    let after = server.memory()?;
    let mut connection = server.connect()?;
    for round in 0..(rounds.warm_up + rounds.measured) * READS_IN_A_ROUND {
        let time = connection.read(count / 2)?;
        if round >= rounds.warm_up * READS_IN_A_ROUND {
            reading.add(time);
        }
    }
    let each = after.saturating_sub(before) as f64 / (count - 1) as f64;
    let columns =
        ["opening p50 ms", "opening p99 ms", "kB each", "MB in all", "read p50 ms", "read p99 ms"];
    let mut table = Table::new("workspaces in one process", &columns);
    let cells = [
        Cell::exact(opening.percentile_ms(50)),
        Cell::exact(opening.percentile_ms(99)),
        Cell::whole(Some(each / 1e3)),
        Cell::whole(Some(after as f64 / 1e6)),
        Cell::exact(reading.percentile_ms(50)),
        Cell::exact(reading.percentile_ms(99)),
    ];
    table.row(count.to_string(), cells);
    report.add(&table);
    Ok(())
}

struct Server {
    child: Child,
    port: u16,
    token: String,
}

impl Server {
    fn start(binary: &Path, top: &Path) -> Result<Server> {
        // The server runs in another directory.
        let mut child = Command::new(std::path::absolute(binary)?)
            .args(["serve", "--http", "0", "--state", "state", "--workspaces", "all"])
            .current_dir(top)
            .env("XDG_CONFIG_HOME", top.join("config"))
            .env("XDG_STATE_HOME", top.join("user-state"))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut said = String::new();
        if let Some(stderr) = child.stderr.as_mut() {
            BufReader::new(stderr).read_line(&mut said)?;
        }
        let mut server = Server { child, port: 0, token: String::new() };
        let port = said.split("http://127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next());
        server.port = port.ok_or_else(|| format!("the server said: {said}"))?.parse()?;
        let token = std::fs::read_to_string(top.join("state/http-token"))?;
        server.token = token.trim().to_owned();
        Ok(server)
    }

    fn connect(&self) -> Result<Connection<'_>> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        Ok(Connection { server: self, stream: BufReader::new(stream) })
    }

    /// Its resident memory in bytes.
    fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next());
        Ok(kilobytes.ok_or("no VmRSS")?.parse::<u64>()? * 1_024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Connection<'a> {
    server: &'a Server,
    stream: BufReader<TcpStream>,
}

impl Connection<'_> {
    /// Reads the file of a workspace. Returns the time it took.
    fn read(&mut self, workspace: usize) -> Result<Duration> {
        let body = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "Read",
                "arguments": {"file_path": "small.txt"},
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        });
        let body = body.to_string();
        let (token, length) = (&self.server.token, body.len());
        let request = format!(
            "POST /w/w{workspace}/mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: Read\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        let started = Instant::now();
        self.stream.get_mut().write_all(request.as_bytes())?;
        let answer = self.answer()?;
        let time = started.elapsed();
        if answer.contains(LINE) {
            Ok(time)
        } else {
            Err(format!("a wrong response: {answer}").into())
        }
    }

    fn answer(&mut self) -> Result<String> {
        let (mut length, mut head) = (None, String::new());
        loop {
            let line = self.line()?;
            if line.trim().is_empty() {
                break;
            }
            let lower = line.to_ascii_lowercase();
            length = lower.strip_prefix("content-length:").map(|n| n.trim().parse()).or(length);
            head += &line;
        }
        let mut body = Vec::new();
        if let Some(length) = length.transpose()? {
            self.part(&mut body, length)?;
            return Ok(head + &String::from_utf8(body)?);
        }
        loop {
            let size = usize::from_str_radix(self.line()?.trim(), 16)?;
            self.part(&mut body, size)?;
            self.line()?;
            if size == 0 {
                return Ok(head + &String::from_utf8(body)?);
            }
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err("the server closed the connection".into());
        }
        Ok(line)
    }

    fn part(&mut self, body: &mut Vec<u8>, size: usize) -> Result<()> {
        let at = body.len();
        body.resize(at + size, 0);
        Ok(self.stream.read_exact(&mut body[at..])?)
    }
}
