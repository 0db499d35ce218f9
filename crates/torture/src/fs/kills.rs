//! Repeatedly kills, at a random moment, a process that edits a large file in a loop. The file is the result of
//! some edit, no confirmed edit is lost, and all changes in the journal can be undone.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::random::Random;
use toolcrib_devtools::scratch::{self, Scratch};

use super::super::Effort;
use super::super::report::{Report, Row};

const ROUNDS: usize = 1_000;
const SMOKE: usize = 20;
const FILE: &str = "large.txt";
const FILE_BYTES: usize = 256 << 10;
/// More edits than a process finishes before it is killed, and not more than one Undo reverts.
const EDITS: usize = 100;
/// The latest moment, counted from the first call.
const LATEST_MICROS: u64 = 40_000;
/// The number of rounds that share a journal.
const ROUNDS_PER_JOURNAL: usize = 50;
const SEED: u64 = 3;

pub(super) fn run(binary: &Path, effort: Effort, report: &mut Report) -> Result<()> {
    let rounds = if effort.smoke { SMOKE } else { ROUNDS };
    let scratch = Scratch::new(binary)?;
    let mut random = Random::new(SEED);
    let body = random.text(FILE_BYTES);
    let mut row = Row::new("kills", "Edit of 256 KiB, kill -9 at a random moment");
    std::fs::write(scratch.workspace().join(FILE), content(0, &body))?;
    for round in 0..rounds {
        if round % ROUNDS_PER_JOURNAL == 0 {
            scratch.remove_state()?;
        }
        let pause = Duration::from_micros(random.below(LATEST_MICROS));
        match kill_once(&scratch, &body, pause)? {
            Ok(what) => row.tally.add(what),
            Err(violation) => {
                let again =
                    format!("cargo xtask torture fs kills (round {round}, killed after {pause:?})");
                row.violate(violation, again);
                row.tally.add("violated");
                // The next round starts from a known state.
                scratch.remove_state()?;
                std::fs::write(scratch.workspace().join(FILE), content(0, &body))?;
            }
        }
    }
    report.add(row);
    Ok(())
}

/// One round, which starts and ends at count 0. The inner error is a violation.
fn kill_once(
    scratch: &Scratch,
    body: &str,
    pause: Duration,
) -> Result<std::result::Result<&'static str, String>> {
    let logged_before = scratch.logged()?;
    let answered = edit_until_killed(scratch, pause)?;
    let reached = match counted(scratch, body)? {
        Ok(count) => count,
        Err(violation) => return Ok(Err(violation)),
    };
    if reached < answered {
        return Ok(Err(format!("{answered} edits were confirmed, and the file has {reached}")));
    }
    let logged = scratch.logged()?;
    if logged != logged_before + reached as u64 {
        return Ok(Err(format!(
            "the file has {reached} edits, and the journal {logged} changes after {logged_before}"
        )));
    }
    if reached == 0 {
        return Ok(Ok("killed before the first edit"));
    }
    let undo = scratch.call("Undo", &json!({"steps": reached}))?;
    if !scratch::is_success(&undo) {
        return Ok(Err(format!("{reached} changes cannot be undone: {undo}")));
    }
    Ok(match counted(scratch, body)? {
        Ok(0) if reached > answered => Ok("killed before the answer"),
        Ok(0) => Ok("killed between edits"),
        Ok(count) => Err(format!("{reached} changes were undone, and the file still has {count}")),
        Err(violation) => Err(violation),
    })
}

/// Returns the number of edits that were confirmed before the process died.
fn edit_until_killed(scratch: &Scratch, pause: Duration) -> Result<usize> {
    let mut conversation = LineProcess::start(scratch.command(&["run"]))?;
    let lines: String = (0..EDITS).map(edit).collect();
    conversation.say(&lines)?;
    thread::sleep(pause);
    conversation.kill()?;
    let ending = conversation.end()?;
    // The kill may have cut the last line; only complete replies count.
    let replies = ending.rest.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(replies.filter(scratch::is_success).count())
}

fn edit(count: usize) -> String {
    let arguments = json!({
        "file_path": FILE,
        "old_string": format!("count {count}\n"),
        "new_string": format!("count {}\n", count + 1),
    });
    call_line(count, "Edit", &arguments, true)
}

fn content(count: usize, body: &str) -> String {
    format!("count {count}\n{body}")
}

/// The number of edits in the file. The inner error means that the file is torn.
fn counted(scratch: &Scratch, body: &str) -> Result<std::result::Result<usize, String>> {
    let bytes = std::fs::read(scratch.workspace().join(FILE))?;
    let text = String::from_utf8_lossy(&bytes);
    let count = text
        .strip_prefix("count ")
        .and_then(|rest| rest.split_once('\n'))
        .and_then(|(count, rest)| (rest == body).then(|| count.parse().ok())?);
    Ok(count.ok_or_else(|| format!("the file is torn: {} bytes", bytes.len())))
}
