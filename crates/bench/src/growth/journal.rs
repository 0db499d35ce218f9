//! Calls with a journal of more and more changes.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_devtools::cache;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::scratch::{Scratch, is_success};

use super::super::Rounds;
use super::super::times::Times;
use super::{Growth, Point, sizes};

const SMALLEST: u64 = 100;
const LARGEST: u64 = 100_000;
const MAX_ROUNDS: usize = 50;

pub(super) fn measure(binary: &Path, rounds: Rounds) -> Result<Growth> {
    let scratch = Scratch::beneath(binary, &cache::directory()?)?;
    let rounds = rounds.at_most(MAX_ROUNDS);
    let mut points = Vec::new();
    let mut changes = 0;
    for size in sizes(SMALLEST, LARGEST, rounds) {
        // A new process each time: starting must not get slower either.
        let mut writer =
            Writer { session: LineProcess::start(scratch.command(&["run"]))?, changes };
        while writer.changes < size {
            writer.write()?;
        }
        let figures = measure_calls(&scratch, &mut writer, rounds)?;
        changes = writer.changes;
        writer.session.end()?;
        points.push(Point { size, figures });
    }
    Ok(Growth {
        title: "Calls with a journal of changes",
        of: "changes in the journal",
        unit: "ms",
        series: vec!["Write", "Undo", "History", "`toolcrib call History`, a new process"],
        points,
    })
}

fn measure_calls(
    scratch: &Scratch,
    writer: &mut Writer,
    rounds: Rounds,
) -> Result<Vec<Option<f64>>> {
    let mut times: [Times; 4] = Default::default();
    for round in 0..=rounds.measured {
        let write = writer.write()?;
        let undo = writer.call("Undo", &json!({}))?;
        let history = writer.call("History", &json!({}))?;
        let started = Instant::now();
        scratch.must_call("History", &json!({}))?;
        let process = started.elapsed();
        if round > 0 {
            let taken = [write, undo, history, process];
            times.iter_mut().zip(taken).for_each(|(all, time)| all.add(time));
        }
    }
    Ok(times.iter().map(|times| times.percentile_ms(50)).collect())
}

/// A session that writes one new file after another.
struct Writer {
    session: LineProcess,
    changes: u64,
}

impl Writer {
    fn write(&mut self) -> Result<Duration> {
        let number = self.changes;
        let path = format!("d{}/file_{number}.txt", number % 100);
        let time =
            self.call("Write", &json!({"file_path": path, "content": format!("{number}\n")}))?;
        self.changes += 1;
        Ok(time)
    }

    fn call(&mut self, tool: &str, args: &Value) -> Result<Duration> {
        let line = call_line(1, tool, args, true);
        let started = Instant::now();
        let reply = self.session.ask(&line)?;
        let time = started.elapsed();
        if is_success(&reply) { Ok(time) } else { Err(format!("{tool}: {reply}").into()) }
    }
}
