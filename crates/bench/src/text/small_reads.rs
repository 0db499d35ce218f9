//! Small Reads in sequence through the pipe of one process, compared with `cat`, which echoes a line of the same
//! length as the reply: that is the unavoidable cost of two pipes and two processes.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::scratch::{self, Scratch};

use super::super::Rounds;
use super::super::table::{Cell, Table};
use super::super::times::Times;

const FILE: &str = "small.rs";
const LINES: usize = 100;
/// Calls per round: one call is too short to be a round.
const CALLS: usize = 20;

pub(super) fn run(binary: &Path, cache: &Path, rounds: Rounds) -> Result<Table> {
    let scratch = Scratch::beneath(binary, cache)?;
    let source: String = (1..=LINES)
        .map(|n| format!("    let line_{n} = compute({n}, \"an argument\");\n"))
        .collect();
    fs::write(scratch.workspace().join(FILE), source)?;
    let call = call_line(1, "Read", &json!({"file_path": FILE}), false);

    let mut reader = LineProcess::start(scratch.command(&["run"]))?;
    let mut cat = LineProcess::start(Command::new("cat"))?;
    let reply = ask(&mut reader, &call)?.1;
    check(&reply)?;
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for round in 0..rounds.warm_up + rounds.measured {
        for _ in 0..CALLS {
            let (our, other) = ask(&mut reader, &call)?;
            let (their, echoed) = ask(&mut cat, &reply)?;
            if other != reply || echoed != reply {
                return Err(format!("the reply differs from the first one: {other}").into());
            }
            if round >= rounds.warm_up {
                ours.add(our);
                theirs.add(their);
            }
        }
    }
    reader.end()?;
    cat.end()?;
    Ok(table(&ours, &theirs))
}

/// The time from the first byte written to the last byte read, and the reply.
fn ask(conversation: &mut LineProcess, line: &str) -> Result<(Duration, String)> {
    let started = Instant::now();
    conversation.say(line)?;
    let reply = conversation.line()?;
    let time = started.elapsed();
    Ok((time, reply.ok_or("the process ended without a reply")?))
}

fn check(reply: &str) -> Result<()> {
    let reply: Value = serde_json::from_str(reply)?;
    let output = reply.get("output").and_then(Value::as_str).unwrap_or_default();
    let is_right = scratch::is_success(&reply) && output.contains(&format!("let line_{LINES} "));
    if is_right { Ok(()) } else { Err(format!("not the file: {reply}").into()) }
}

fn table(ours: &Times, theirs: &Times) -> Table {
    let title = format!("{LINES} lines, through the pipe");
    let mut table = Table::new(title, &["calls", "p50 µs", "p99 µs", "to cat", "target"]);
    for (name, times, target) in [("Read", ours, "< 60 µs"), ("cat, the same line", theirs, "")] {
        let microseconds = |percent| times.percentile_ms(percent).map(|ms| ms * 1e3);
        let cells = [
            Cell::Count(times.count()),
            Cell::whole(microseconds(50)),
            Cell::whole(microseconds(99)),
            Cell::ratio(times.percentile_ms(50), theirs.percentile_ms(50)),
            Cell::Text(target),
        ];
        table.row(name, cells);
    }
    table
}
