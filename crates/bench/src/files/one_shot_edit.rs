//! One edit in its own process, from spawn to exit: `toolcrib call Edit`, synced and journaled, compared with
//! `sed -i`, which is neither, and `cat`, which is close to the minimum cost of a process.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;
use toolcrib_devtools::random::Random;
use toolcrib_devtools::scratch::Scratch;

use super::super::Rounds;
use super::super::table::{Cell, Table};
use super::super::times::Times;

const FILE: &str = "file.txt";
const BYTES: usize = 8 << 10;
const WORDS: [&str; 2] = ["alpha", "omega"];
const NAMES: [&str; 3] = ["toolcrib call Edit", "sed -i", "cat"];

pub(super) fn run(binary: &Path, directory: &Path, rounds: Rounds) -> Result<Table> {
    let scratch = Scratch::beneath(binary, directory)?;
    let body = Random::new(29).text(BYTES);
    let content = |word: usize| format!("{}\n{body}", WORDS[word]);
    let file = scratch.workspace().join(FILE);
    fs::write(&file, content(0))?;
    let mut times = [Times::default(), Times::default(), Times::default()];
    for round in 0..rounds.warm_up + rounds.measured {
        // Edit replaces the first word by the second, sed the second by the first.
        let edit = measure(&mut edit(&scratch))?;
        let is_edited = fs::read_to_string(&file)? == content(1);
        let sed = measure(&mut sed(&scratch))?;
        let is_back = fs::read_to_string(&file)? == content(0);
        let cat = measure(Command::new("cat").arg(FILE).current_dir(scratch.workspace()))?;
        if !is_edited || !is_back {
            return Err("an edit has a wrong result".into());
        }
        if round >= rounds.warm_up {
            times.iter_mut().zip([edit, sed, cat]).for_each(|(times, time)| times.add(time));
        }
    }
    Ok(table(&times))
}

fn edit(scratch: &Scratch) -> Command {
    let [old, new] = WORDS;
    let arguments = json!({"file_path": FILE, "old_string": old, "new_string": new});
    scratch.call_command("Edit", &arguments)
}

fn sed(scratch: &Scratch) -> Command {
    let mut command = Command::new("sed");
    let [first, second] = WORDS;
    command.args(["-i", &format!("s/{second}/{first}/"), FILE]).current_dir(scratch.workspace());
    command
}

fn measure(command: &mut Command) -> Result<Duration> {
    command.stdin(Stdio::null());
    let started = Instant::now();
    let output = command.output()?;
    let time = started.elapsed();
    if output.status.success() {
        return Ok(time);
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    Err(format!("`{}` failed: {printed}", process::describe(command)).into())
}

fn table(times: &[Times; 3]) -> Table {
    let [_, sed, cat] = times;
    let columns = ["rounds", "p50 ms", "p90 ms", "to sed -i", "to cat"];
    let mut table = Table::new("8 KiB edited, from spawn to exit", &columns);
    for (name, times) in NAMES.into_iter().zip(times) {
        let to_cat = Cell::ratio(times.percentile_ms(50), cat.percentile_ms(50));
        table.row(name, Cell::of_times(times, sed).into_iter().chain([to_cat]));
    }
    table
}
