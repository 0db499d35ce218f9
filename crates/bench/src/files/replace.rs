//! Replacing an 8 KiB file: by Edit through the pipe of one process, compared with a temporary file, fsync and
//! rename in the same directory.
//!
//! The overhead of a call is the time of a Read of the same file through the same pipe; it is subtracted. The
//! journal cannot be turned off, so its cost is the remaining difference from the plain replacement. It is
//! measured with a new journal and with one that has many changes: it must not get slower.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::random::Random;
use toolcrib_devtools::scratch::{self, Scratch};

use super::super::Rounds;
use super::super::table::{Cell, Table};
use super::super::times::Times;

const BYTES: usize = 8 << 10;
const EDITED: &str = "edited.txt";
const PLAIN: &str = "plain.txt";
/// The number of changes in an old journal.
const OLD_JOURNAL_CHANGES: usize = 3_000;
const SMOKE_JOURNAL_CHANGES: usize = 20;

/// The times of the three alternating operations.
#[derive(Default)]
struct Measured {
    plain: Times,
    read: Times,
    edit: Times,
}

pub(super) fn run(binary: &Path, directory: &Path, rounds: Rounds) -> Result<Table> {
    let scratch = Scratch::beneath(binary, directory)?;
    let body = Random::new(23).text(BYTES - "count 0000000\n".len());
    fs::write(scratch.workspace().join(EDITED), content(0, &body))?;
    let mut editor =
        Editor { conversation: LineProcess::start(scratch.command(&["run"]))?, count: 0 };

    let columns = ["rounds", "p50 ms", "p90 ms", "to plain", "above plain ms"];
    let mut table = Table::new("8 KiB replaced", &columns);
    let measured = measure(&mut editor, &scratch, &body, rounds)?;
    add_rows(&mut table, &measured, "a new journal");
    let kept = if rounds.is_smoke { SMOKE_JOURNAL_CHANGES } else { OLD_JOURNAL_CHANGES };
    while editor.count < kept {
        editor.edit()?;
    }
    let measured = measure(&mut editor, &scratch, &body, rounds)?;
    add_rows(&mut table, &measured, &format!("a journal of {kept} changes"));
    let is_right =
        fs::read_to_string(scratch.workspace().join(EDITED))? == content(editor.count, &body);
    if is_right { Ok(table) } else { Err("the file is not the result of the edits".into()) }
}

fn measure(editor: &mut Editor, scratch: &Scratch, body: &str, rounds: Rounds) -> Result<Measured> {
    let mut measured = Measured::default();
    let text = content(0, body);
    for round in 0..rounds.warm_up + rounds.measured {
        let plain = replace(&scratch.workspace(), text.as_bytes())?;
        let read = editor.read()?;
        let edit = editor.edit()?;
        if round >= rounds.warm_up {
            measured.plain.add(plain);
            measured.read.add(read);
            measured.edit.add(edit);
        }
    }
    Ok(measured)
}

/// The plain replacement.
fn replace(directory: &Path, text: &[u8]) -> Result<Duration> {
    let temporary = directory.join("plain.tmp");
    let started = Instant::now();
    let mut file = fs::File::create(&temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&temporary, directory.join(PLAIN))?;
    Ok(started.elapsed())
}

/// A process that edits the file and counts up by one each time.
struct Editor {
    conversation: LineProcess,
    count: usize,
}

impl Editor {
    fn edit(&mut self) -> Result<Duration> {
        let (old, new) = (count_line(self.count), count_line(self.count + 1));
        let arguments = json!({"file_path": EDITED, "old_string": old, "new_string": new});
        let time = self.ask("Edit", &arguments)?;
        self.count += 1;
        Ok(time)
    }

    fn read(&mut self) -> Result<Duration> {
        self.ask("Read", &json!({"file_path": EDITED}))
    }

    fn ask(&mut self, tool: &str, arguments: &Value) -> Result<Duration> {
        let line = call_line(self.count, tool, arguments, true);
        let started = Instant::now();
        let reply = self.conversation.ask(&line)?;
        let time = started.elapsed();
        if scratch::is_success(&reply) {
            return Ok(time);
        }
        Err(format!("{tool} was refused: {reply}").into())
    }
}

fn count_line(count: usize) -> String {
    format!("count {count:07}\n")
}

fn content(count: usize, body: &str) -> String {
    format!("{}{body}", count_line(count))
}

fn add_rows(table: &mut Table, measured: &Measured, journal: &str) {
    let Measured { plain, read, edit } = measured;
    for (name, times) in [("file, fsync, rename", plain), ("Read, through the pipe", read)] {
        let cells = Cell::of_times(times, plain).into_iter().chain([Cell::exact(None)]);
        table.row(format!("{name}, {journal}"), cells);
    }
    let less_read = |percent| {
        let (edit, read) = (edit.percentile_ms(percent)?, read.percentile_ms(percent)?);
        Some(edit - read)
    };
    let base = plain.percentile_ms(50);
    let cells = [
        Cell::Count(edit.count()),
        Cell::exact(less_read(50)),
        Cell::exact(less_read(90)),
        Cell::ratio(less_read(50), base),
        Cell::difference(less_read(50), base),
    ];
    table.row(format!("Edit less Read, {journal}"), cells);
}
