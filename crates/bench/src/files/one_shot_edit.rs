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
use super::super::number_format::{ratio, two_digits};
use super::super::times::Times;

const FILE: &str = "file.txt";
const BYTES: usize = 8 << 10;
const WORDS: [&str; 2] = ["alpha", "omega"];
const NAMES: [&str; 3] = ["toolcrib call Edit", "sed -i", "cat"];

pub(super) fn run(binary: &Path, directory: &Path, rounds: Rounds) -> Result<()> {
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
    print_table(&times);
    Ok(())
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

fn print_table(times: &[Times; 3]) {
    let [_, sed, cat] = times.each_ref().map(|times| times.percentile_ms(50));
    println!(
        "| 8 KiB edited, from spawn to exit | rounds | p50 ms | p90 ms | to sed -i | to cat |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    for (name, times) in NAMES.iter().zip(times) {
        let (p50, p90) = (times.percentile_ms(50), times.percentile_ms(90));
        let (rounds, to_sed, to_cat) = (times.count(), ratio(p50, sed), ratio(p50, cat));
        let (p50, p90) = (two_digits(p50), two_digits(p90));
        println!("| {name} | {rounds} | {p50} | {p90} | {to_sed} | {to_cat} |");
    }
}
