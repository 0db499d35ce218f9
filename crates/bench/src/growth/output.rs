//! A command with more and more output.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::process;
use toolcrib_devtools::scratch::Scratch;

use super::super::Rounds;
use super::super::times::Times;
use super::{Growth, Point, sizes};

const SMALLEST: u64 = 1_000;
const LARGEST: u64 = 10_000_000_000;
/// Larger outputs take seconds, so one measurement suffices.
const LARGE: u64 = 100_000_000;
const MAX_ROUNDS: usize = 15;

pub(super) fn measure(binary: &Path, rounds: Rounds) -> Result<Growth> {
    let scratch = Scratch::new(binary)?;
    let mut command = scratch.command(&["run"]);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let mut session = LineProcess::start(command)?;
    ask(&mut session, 1)?;
    let mut points = Vec::new();
    for size in sizes(SMALLEST, LARGEST, rounds) {
        let [mut ours, mut theirs] = [Times::default(), Times::default()];
        let many = if size > LARGE { 1 } else { rounds.measured.min(MAX_ROUNDS) };
        for _ in 0..many {
            let started = Instant::now();
            ask(&mut session, size)?;
            ours.add(started.elapsed());
            let script = format!("head -c {size} /dev/zero | cat");
            let mut pipe = Command::new("sh");
            let started = Instant::now();
            process::run(pipe.args(["-c", &script]).stdout(Stdio::null()))?;
            theirs.add(started.elapsed());
        }
        let figures = [ours, theirs].map(|times| times.percentile_ms(50));
        points.push(Point { size, figures: figures.into() });
    }
    session.end()?;
    Ok(Growth {
        title: "Bash with output",
        of: "bytes of output",
        unit: "ms",
        series: vec!["Bash", "sh, a pipe to cat"],
        points,
    })
}

fn ask(session: &mut LineProcess, bytes: u64) -> Result<()> {
    let args = json!({"command": format!("head -c {bytes} /dev/zero"), "timeout": 600_000});
    let reply = session.ask(&call_line(1, "Bash", &args, true))?;
    let received = reply.pointer("/metadata/bytes").and_then(Value::as_u64);
    if received == Some(bytes) {
        Ok(())
    } else {
        Err(format!("not all bytes came: {reply}").into())
    }
}
