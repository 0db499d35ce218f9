//! `bench net`: connections of commands to a listed host, compared with direct ones.
//!
//! The server is in this process. The host is an address of this machine that a rule names, so that no name needs to
//! be resolved. A client in Python measures itself, outside and in a command. A relay that does nothing else shows what
//! every relay costs.

mod bare_relay;

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::LineProcess;

use super::Rounds;
use super::report::Report;
use super::table::{Cell, Table};

/// Prints the median time of a connection with one byte in ms, and MB/s of one stream and of 64 streams.
const CLIENT: &str = include_str!("net/client.py");

/// Bytes of all streams together; a smoke run uses fewer.
const BYTES: u64 = 4 << 30;
const FEW_BYTES: u64 = 64 << 20;

/// Repetitions, of which the median counts.
const REPETITIONS: usize = 5;

/// One measurement of the client.
#[derive(Debug, Clone, Copy)]
struct Measured {
    connect_ms: f64,
    /// MB/s of one stream, and of 64 streams.
    one: f64,
    many: f64,
}

pub(super) fn run(rounds: Rounds, report: &mut Report) -> Result<()> {
    let binary = rounds.build()?;
    let Some(address) = own_address() else {
        report.note("Not measured: this machine has no address besides loopback.");
        return Ok(());
    };
    let server = serve(address)?;
    let directory = tempfile::tempdir()?;
    let bytes = if rounds.is_smoke { FEW_BYTES } else { BYTES };
    let connections = rounds.measured.min(300);
    let script = |server: SocketAddr| {
        let words = format!("{} {} {connections} {bytes}", server.ip(), server.port());
        format!("/usr/bin/python3 - {words} <<'END'\n{CLIENT}\nEND\n")
    };
    let relay = bare_relay::start(server)?;
    let mut session = session(&binary, directory.path(), server)?;
    let mut results = Results::default();
    for _ in 0..if rounds.is_smoke { 1 } else { REPETITIONS } {
        results.direct.push(outside(&script(server))?);
        results.relayed.push(outside(&script(relay))?);
        let reply = bash(&mut session, &script(server))?;
        results.listed.push(parse(reply["output"].as_str().unwrap_or_default())?);
    }
    session.end()?;
    report.add(&results.table());
    let count = results.direct.len();
    report.note(&format!("{connections} connections; medians of {count} measurements."));
    Ok(())
}

/// Measures a direct connection.
fn outside(script: &str) -> Result<Measured> {
    let output = Command::new("bash").args(["-c", script]).output()?;
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// The measurements of each kind of connection.
#[derive(Default)]
struct Results {
    direct: Vec<Measured>,
    relayed: Vec<Measured>,
    listed: Vec<Measured>,
}

impl Results {
    fn table(&self) -> Table {
        let columns = ["direct", "bare relay", "listed host", "to direct", "to bare relay"];
        let mut table = Table::new("connection", &columns);
        let mut add = |what, of: fn(&Measured) -> f64, cell: fn(Option<f64>) -> Cell| {
            let [direct, relayed, listed] =
                [&self.direct, &self.relayed, &self.listed].map(|all| median(all, of));
            let ratios = [Cell::ratio(listed, direct), Cell::ratio(listed, relayed)];
            table.row(what, [direct, relayed, listed].map(cell).into_iter().chain(ratios));
        };
        add("connect and one byte, ms", |measured| measured.connect_ms, Cell::exact);
        add("1 stream, MB/s", |measured| measured.one, Cell::whole);
        add("64 streams, MB/s", |measured| measured.many, Cell::whole);
        table
    }
}

/// The median of a number.
fn median(all: &[Measured], of: fn(&Measured) -> f64) -> Option<f64> {
    let mut numbers: Vec<f64> = all.iter().map(of).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

/// Reads the three numbers of the client.
fn parse(output: &str) -> Result<Measured> {
    let line = output.lines().next().unwrap_or_default();
    let numbers: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    match numbers.as_slice() {
        [connect_ms, one, many] => Ok(Measured { connect_ms: *connect_ms, one: *one, many: *many }),
        _ => Err(format!("the client failed: {output}").into()),
    }
}

/// An address of this machine besides loopback.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent: this only asks for the route.
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback())
}

/// A server that reads a number of bytes, and sends as many.
fn serve(address: IpAddr) -> Result<SocketAddr> {
    let listener = TcpListener::bind((address, 0))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || answer(client));
        }
    });
    Ok(address)
}

fn answer(mut client: TcpStream) {
    let mut wanted = [0; 8];
    if client.read_exact(&mut wanted).is_err() {
        return;
    }
    let mut left = u64::from_le_bytes(wanted);
    let block = vec![0; 1 << 20];
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        if client.write_all(&block[..length]).is_err() {
            return;
        }
        left -= length as u64;
    }
}

fn session(binary: &Path, directory: &Path, server: SocketAddr) -> Result<LineProcess> {
    let at = |name: &str| directory.join(name);
    std::fs::write(at("config.toml"), "network = \"list\"\n")?;
    let rule = format!(
        "[[rule]]\nname = \"bench\"\ndecision = \"allow\"\nkind = \"network\"\nhosts = [\"{server}\"]\n"
    );
    std::fs::write(at("rules.toml"), rule)?;
    std::fs::create_dir(at("root"))?;
    let mut command = Command::new(binary);
    command.arg("--config").arg(at("config.toml")).arg("--rules").arg(at("rules.toml"));
    command.arg("--state").arg(at("state")).arg("--root").arg(at("root"));
    command.arg("run").env_remove("SHELL");
    LineProcess::start(command)
}

fn bash(session: &mut LineProcess, script: &str) -> Result<Value> {
    let args = json!({"command": script, "timeout": 600_000});
    let reply = session.ask(&format!("{}\n", json!({"id": 1, "tool": "Bash", "args": args})))?;
    if reply["success"] == true { Ok(reply) } else { Err(format!("Bash failed: {reply}").into()) }
}
