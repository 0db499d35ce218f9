//! A directory of half a million entries: `toolcrib call LS` compared with `ls -f`, which only reads the
//! names.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::scratch::remove_directory;

use super::super::Rounds;
use super::super::table::{Cell, Table};
use super::super::times::Times;

const ENTRIES: usize = 500_000;
const SMOKE_ENTRIES: usize = 20_000;
/// A round takes a large part of a second.
const MAX_ROUNDS: usize = 20;

pub(super) fn run(binary: &Path, cache: &Path, rounds: Rounds) -> Result<Table> {
    let few = rounds.is_smoke;
    let entries = if few { SMOKE_ENTRIES } else { ENTRIES };
    let name = if few { "bench-ls-small" } else { "bench-ls" };
    make_once(cache, name, entries)?;
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for round in 0..=rounds.measured.min(MAX_ROUNDS) {
        let (our, their) = (list(binary, cache, name, entries)?, list_with_ls(cache, name)?);
        // The first round fills the caches.
        if round > 0 {
            ours.add(our);
            theirs.add(their);
        }
    }
    let title = format!("{entries} entries listed");
    let mut table = Table::new(title, &["rounds", "p50 ms", "p90 ms", "to ls -f"]);
    table.row("toolcrib call LS", Cell::of_times(&ours, &theirs));
    table.row("ls -f", Cell::of_times(&theirs, &theirs));
    Ok(table)
}

/// Creates the directory once, because it takes long. A marker file next to it records that it is complete.
fn make_once(cache: &Path, name: &str, entries: usize) -> Result<()> {
    let (directory, note) = (cache.join(name), cache.join(format!("{name}.complete")));
    if note.is_file() {
        return Ok(());
    }
    remove_directory(&directory)?;
    fs::create_dir_all(&directory)?;
    for number in 0..entries {
        fs::File::create(directory.join(format!("entry-{number:06}.txt")))?;
    }
    Ok(fs::write(note, "")?)
}

fn list(binary: &Path, cache: &Path, name: &str, entries: usize) -> Result<Duration> {
    let mut command = Command::new(binary);
    command.args(["call", "LS", &json!({"path": name}).to_string()]);
    command.env_clear().current_dir(cache).stdin(Stdio::null()).stderr(Stdio::inherit());
    let started = Instant::now();
    let output = command.output()?;
    let time = started.elapsed();
    let reply: Value = serde_json::from_slice(&output.stdout)?;
    let total = reply.pointer("/metadata/total").and_then(Value::as_u64);
    if total == Some(entries as u64) {
        Ok(time)
    } else {
        Err(format!("LS counts {total:?} entries, not {entries}").into())
    }
}

fn list_with_ls(cache: &Path, name: &str) -> Result<Duration> {
    let mut command = Command::new("ls");
    command.args(["-f", name]).current_dir(cache).stdout(Stdio::null());
    let started = Instant::now();
    let status = command.status()?;
    let time = started.elapsed();
    if status.success() { Ok(time) } else { Err("`ls -f` failed".into()) }
}
