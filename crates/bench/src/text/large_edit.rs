//! Changes one line in the middle of a 100 MB file, a different one in each round: `toolcrib call Edit` compared
//! with `cp` and fsync, which is the minimum for rewriting such a file.
//!
//! The time includes the journal, which the command line cannot turn off.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::process;
use toolcrib_devtools::scratch::{self, Scratch};

use super::super::Rounds;
use super::super::table::{Cell, Table};
use super::super::times::Times;
use super::sample_text::{self, LINE_BYTES};

const LINES: usize = 1_000_000;
const SMOKE_LINES: usize = 10_000;
/// A round takes about a second.
const MAX_ROUNDS: usize = 10;
const FILE: &str = "large.txt";
const COPY: &str = "copy.txt";

pub(super) fn run(binary: &Path, cache: &Path, rounds: Rounds) -> Result<Table> {
    let lines = if rounds.is_smoke { SMOKE_LINES } else { LINES };
    let scratch = Scratch::beneath(binary, cache)?;
    let mut large = Large::new(&scratch, lines)?;
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for round in 0..=rounds.measured.min(MAX_ROUNDS) {
        let (edit, copy) = (large.edit()?, copy(&scratch)?);
        // The first round creates the journal and fills the caches.
        if round > 0 {
            ours.add(edit);
            theirs.add(copy);
        }
    }
    let peak = large.peak_megabytes()?;
    Ok(table(lines * LINE_BYTES / 1_000_000, &ours, &theirs, peak))
}

/// The file on disk and its expected content.
struct Large<'a> {
    scratch: &'a Scratch,
    text: String,
    /// The next line to change.
    next: usize,
}

impl Large<'_> {
    fn new(scratch: &Scratch, lines: usize) -> Result<Large<'_>> {
        let mut bytes = Vec::with_capacity(lines * LINE_BYTES);
        sample_text::write(lines, &mut bytes)?;
        fs::write(scratch.workspace().join(FILE), &bytes)?;
        Ok(Large { scratch, text: String::from_utf8(bytes)?, next: lines / 2 })
    }

    /// The time of one edit in its own process, from spawn to exit.
    fn edit(&mut self) -> Result<Duration> {
        let (old, new) = self.words();
        let arguments = json!({"file_path": FILE, "old_string": old, "new_string": new});
        let mut command = self.scratch.call_command("Edit", &arguments);
        let started = Instant::now();
        let output = command.output()?;
        let time = started.elapsed();
        let reply = serde_json::from_slice(&output.stdout)?;
        if !scratch::is_success(&reply) {
            return Err(format!("Edit was refused: {reply}").into());
        }
        self.check(&old, &new)?;
        Ok(time)
    }

    /// The peak memory of a process for one edit.
    fn peak_megabytes(&mut self) -> Result<f64> {
        let (old, new) = self.words();
        let arguments = json!({"file_path": FILE, "old_string": old, "new_string": new});
        let mut conversation = LineProcess::start(self.scratch.command(&["run"]))?;
        conversation.ask(&call_line(1, "Edit", &arguments, true))?;
        let peak = conversation.peak_memory()?;
        conversation.end()?;
        self.check(&old, &new)?;
        Ok(peak as f64 / 1e6)
    }

    /// The current and the new beginning of the next line.
    fn words(&mut self) -> (String, String) {
        let old = sample_text::mark(self.next);
        self.next += 1;
        (old.clone(), format!("edited {old}"))
    }

    /// Checks that the file changed only in this line.
    fn check(&mut self, old: &str, new: &str) -> Result<()> {
        let at = self.text.find(old).ok_or("no such line")?;
        self.text.replace_range(at..at + old.len(), new);
        if fs::read(self.scratch.workspace().join(FILE))? == self.text.as_bytes() {
            Ok(())
        } else {
            Err("the file is not the result of the edits".into())
        }
    }
}

fn copy(scratch: &Scratch) -> Result<Duration> {
    let to = scratch.workspace().join(COPY);
    let mut command = Command::new("cp");
    // Copies the bytes even if the file system could share them.
    command.args(["--reflink=never", FILE, COPY]).current_dir(scratch.workspace());
    let started = Instant::now();
    process::run(&mut command)?;
    fs::File::open(&to)?.sync_all()?;
    let time = started.elapsed();
    fs::remove_file(to)?;
    Ok(time)
}

fn table(megabytes: usize, ours: &Times, theirs: &Times, peak: f64) -> Table {
    let columns = ["rounds", "p50 ms", "p90 ms", "to cp, fsync", "peak MB", "target"];
    let mut table = Table::new(format!("{megabytes} MB edited"), &columns);
    let cells = |times: &Times, peak, target| {
        let rest = [Cell::exact(peak), Cell::Text(target)];
        Cell::of_times(times, theirs).into_iter().chain(rest)
    };
    table.row("toolcrib call Edit, journal and all", cells(ours, Some(peak), "≤ 1.5×"));
    table.row("cp, fsync", cells(theirs, None, ""));
    table
}
