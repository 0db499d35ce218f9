//! Reads a hundred lines from the middle of a 1 GB file, compared with `wc -l`, which finds the lines and prints
//! none, and the last hundred lines, compared with `tail`. Timed from spawn to exit, with the file in the page
//! cache.
//!
//! The memory is measured in a process that answers one call.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::process;
use toolcrib_devtools::scratch;

use super::super::Rounds;
use super::super::table::{Cell, Table};
use super::super::times::Times;
use super::sample_text::{self, LINE_BYTES};

const LINES: usize = 10_000_000;
const SMOKE_LINES: usize = 100_000;
/// The number of lines to read.
const LINES_READ: usize = 100;
/// A round takes a large part of a second.
const MAX_ROUNDS: usize = 15;

/// A part of the file, read by us and by a peer.
struct Part {
    what: String,
    arguments: Value,
    /// The first and the last line of the expected reply.
    ends: [usize; 2],
    peer: &'static [&'static str],
    target: &'static str,
}

pub(super) fn run(binary: &Path, cache: &Path, rounds: Rounds) -> Result<Table> {
    let lines = if rounds.is_smoke { SMOKE_LINES } else { LINES };
    let directory = cache.join("bench-text");
    let file = make_once(&directory, lines)?;
    let title = format!("{lines} lines of {LINE_BYTES} bytes");
    let columns = ["rounds", "p50 ms", "p90 ms", "ratio", "peak MB", "target"];
    let mut table = Table::new(title, &columns);
    for part in parts(&file, lines) {
        let peak = peak_megabytes(binary, &directory, &part)?;
        let (mut ours, mut theirs) = (Times::default(), Times::default());
        for round in 0..=rounds.measured.min(MAX_ROUNDS) {
            let our = read(binary, &directory, &part)?;
            let their = measure(&mut peer(&directory, &file, &part))?.0;
            // The first round fills the caches.
            if round > 0 {
                ours.add(our);
                theirs.add(their);
            }
        }
        add_rows(&mut table, &part, &ours, &theirs, peak);
    }
    Ok(table)
}

fn parts(file: &str, lines: usize) -> [Part; 2] {
    let middle = lines / 2;
    [
        Part {
            what: format!("Read, lines {middle}-{}", middle + LINES_READ),
            arguments: json!({"file_path": file, "offset": middle, "limit": LINES_READ + 1}),
            ends: [middle, middle + LINES_READ],
            peer: &["wc", "-l"],
            target: "≤ 1.2×, < 32 MB",
        },
        Part {
            what: format!("Read, the last {LINES_READ} lines"),
            arguments: json!({"file_path": file, "offset": -(LINES_READ as i64)}),
            ends: [lines - LINES_READ + 1, lines],
            peer: &["tail", "-n", "100"],
            target: "< 5 ms",
        },
    ]
}

/// Creates the file once, because it takes long. It gets its name only when it is complete.
fn make_once(directory: &Path, lines: usize) -> Result<String> {
    let name = format!("{lines}-lines.txt");
    let file = directory.join(&name);
    if !file.is_file() {
        fs::create_dir_all(directory)?;
        let unfinished = directory.join("unfinished");
        let mut to = BufWriter::with_capacity(1 << 20, fs::File::create(&unfinished)?);
        sample_text::write(lines, &mut to)?;
        to.flush()?;
        fs::rename(unfinished, file)?;
    }
    Ok(name)
}

fn read(binary: &Path, directory: &Path, part: &Part) -> Result<Duration> {
    let mut command = Command::new(binary);
    command.args(["call", "Read", &part.arguments.to_string()]);
    command.env_clear().current_dir(directory);
    let (time, printed) = measure(&mut command)?;
    check(part, &serde_json::from_slice(&printed)?)?;
    Ok(time)
}

fn peer(directory: &Path, file: &str, part: &Part) -> Command {
    let (program, words) = part.peer.split_first().unwrap_or((&"true", &[]));
    let mut command = Command::new(program);
    command.args(words).arg(file).current_dir(directory);
    command
}

/// The time from spawn to exit, and the output.
fn measure(command: &mut Command) -> Result<(Duration, Vec<u8>)> {
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let started = Instant::now();
    let output = command.output()?;
    let time = started.elapsed();
    if output.status.success() {
        Ok((time, output.stdout))
    } else {
        Err(format!("`{}` failed", process::describe(command)).into())
    }
}

/// The peak memory of a process for one call.
fn peak_megabytes(binary: &Path, directory: &Path, part: &Part) -> Result<f64> {
    let mut command = Command::new(binary);
    command.arg("run").env_clear().current_dir(directory);
    let mut conversation = LineProcess::start(command)?;
    check(part, &conversation.ask(&call_line(1, "Read", &part.arguments, true))?)?;
    let peak = conversation.peak_memory()?;
    conversation.end()?;
    Ok(peak as f64 / 1e6)
}

fn check(part: &Part, reply: &Value) -> Result<()> {
    let output = reply.get("output").and_then(Value::as_str).unwrap_or_default();
    // Not by the line numbers of the reply: near the end of a large file they count from the end.
    let has = |number: usize| output.contains(&format!("\t{}", sample_text::mark(number)));
    let [first, last] = part.ends;
    let is_right =
        scratch::is_success(reply) && has(first) && has(last) && !has(first - 1) && !has(last + 1);
    if is_right { Ok(()) } else { Err(format!("not lines {first} to {last}: {output}").into()) }
}

fn add_rows(table: &mut Table, part: &Part, ours: &Times, theirs: &Times, peak: f64) {
    let cells = |times: &Times, peak, target| {
        let rest = [Cell::exact(peak), Cell::Text(target)];
        Cell::of_times(times, theirs).into_iter().chain(rest)
    };
    table.row(part.what.as_str(), cells(ours, Some(peak), part.target));
    table.row(part.peer.join(" "), cells(theirs, None, ""));
}
