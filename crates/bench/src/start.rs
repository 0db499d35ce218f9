//! `bench start`: the cost of one call in a process of its own, which is how hooks and scripts call. Compared
//! with `cat`, which is close to the minimum cost of a process, and `node`, which most agents run on.
//!
//! The contestants alternate (A B C A B C …), so that a slow phase of the machine affects all of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

use super::Rounds;
use super::report::Report;
use super::table::{Cell, Table};
use super::times::Times;

const FILE: &str = "small.txt";
const FILE_LINES: usize = 200;
const NODE_SCRIPT: &str = "process.stdout.write(require('fs').readFileSync('small.txt','utf8'))";
/// Node runs in one of this many rounds: it is slow, and a few measurements suffice.
const NODE_EVERY: usize = 10;

/// A program that reads the file.
struct Contestant {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<&'static str>,
    /// It runs in one of this many rounds.
    every: usize,
    /// Whether the output is right, given the text of the file.
    is_right: fn(printed: &[u8], text: &str) -> bool,
    times: Times,
}

pub(super) fn run(rounds: Rounds, report: &mut Report) -> Result<()> {
    let binary = rounds.build()?;
    let directory = tempfile::tempdir()?;
    let text: String = (1..=FILE_LINES).map(|n| format!("line {n} of a small file\n")).collect();
    fs::write(directory.path().join(FILE), &text)?;

    let mut contestants = contestants(&binary, report);
    for _ in 0..rounds.warm_up {
        for contestant in &contestants {
            contestant.measure(directory.path(), &text)?;
        }
    }
    for round in 0..rounds.measured {
        for contestant in contestants.iter_mut().filter(|c| round % c.every == 0) {
            let time = contestant.measure(directory.path(), &text)?;
            contestant.times.add(time);
        }
    }
    report.add(&table(&contestants));
    report.add(&sizes(&binary)?);
    Ok(())
}

fn contestants(binary: &Path, report: &mut Report) -> Vec<Contestant> {
    let mut contestants = vec![
        Contestant {
            name: "toolcrib call Read",
            program: binary.to_owned(),
            arguments: vec!["call", "Read", r#"{"file_path":"small.txt"}"#],
            every: 1,
            is_right: |printed, _| is_success(printed),
            times: Times::default(),
        },
        Contestant {
            name: "cat",
            program: "cat".into(),
            arguments: vec![FILE],
            every: 1,
            is_right: |printed, text| printed == text.as_bytes(),
            times: Times::default(),
        },
    ];
    if process::probe(Command::new("node").arg("--version")).is_some() {
        contestants.push(Contestant {
            name: "node",
            program: "node".into(),
            arguments: vec!["-e", NODE_SCRIPT],
            every: NODE_EVERY,
            is_right: |printed, text| printed == text.as_bytes(),
            times: Times::default(),
        });
    } else {
        report.note("node is not installed: measured without it.");
    }
    contestants
}

impl Contestant {
    /// The time from spawn to exit, with the output read to the end. It excludes the check of the output.
    fn measure(&self, directory: &Path, text: &str) -> Result<Duration> {
        let mut command = clean(&self.program);
        command.args(&self.arguments).current_dir(directory);
        let started = Instant::now();
        let output = command.output();
        let time = started.elapsed();
        let output = output.map_err(|e| format!("cannot start {}: {e}", self.name))?;
        if output.status.success() && (self.is_right)(&output.stdout, text) {
            return Ok(time);
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        Err(format!("{} gave a wrong result ({}): {printed}", self.name, output.status).into())
    }
}

/// A command with a clean environment: no home and no configuration, only `PATH`.
fn clean(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null()).stderr(Stdio::inherit());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

fn is_success(printed: &[u8]) -> bool {
    let reply: Option<serde_json::Value> = serde_json::from_slice(printed).ok();
    reply.is_some_and(|reply| reply.get("success") == Some(&serde_json::Value::Bool(true)))
}

fn table(contestants: &[Contestant]) -> Table {
    let p50_of =
        |name| contestants.iter().find(|c| c.name == name).and_then(|c| c.times.percentile_ms(50));
    let mut table = Table::new(
        "from spawn to exit",
        &["rounds", "p50 ms", "p90 ms", "min ms", "to cat", "to node"],
    );
    for contestant in contestants {
        let ms = |percent| contestant.times.percentile_ms(percent);
        let cells = [
            Cell::Count(contestant.times.count()),
            Cell::exact(ms(50)),
            Cell::exact(ms(90)),
            Cell::exact(ms(0)),
            Cell::ratio(ms(50), p50_of("cat")),
            Cell::ratio(ms(50), p50_of("node")),
        ];
        table.row(contestant.name, cells);
    }
    table
}

fn sizes(binary: &Path) -> Result<Table> {
    let bytes = fs::metadata(binary)?.len();
    let tools = process::capture(clean(binary).args(["tools", "--format", "mcp"]))?;
    let mut table = Table::new("size", &["kB"]);
    table.row("program", [Cell::whole(Some(bytes as f64 / 1e3))]);
    table.row("`tools --format mcp`", [Cell::exact(Some(tools.len() as f64 / 1e3))]);
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_a_successful_reply() {
        assert!(is_success(br#"{"success": true, "output": "text"}"#));
        assert!(!is_success(br#"{"success": false}"#));
        assert!(!is_success(br#"{"output": "\"success\":true"}"#));
        assert!(!is_success(b""));
    }
}
