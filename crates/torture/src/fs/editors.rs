//! Two processes edit the two ends of one file as fast as they can: every edit succeeds and none is lost.

use std::path::Path;
use std::thread;

use serde_json::json;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::random::Random;
use toolcrib_devtools::scratch::{self, Scratch};

use super::super::Effort;
use super::super::report::{Report, Row};

const ROUNDS: usize = 1_000;
const SMOKE: usize = 30;
const FILE: &str = "shared.txt";
const ENDS: [&str; 2] = ["left", "right"];
/// The unchanged text between the two ends.
const MIDDLE_BYTES: usize = 16 << 10;

pub(super) fn run(binary: &Path, effort: Effort, report: &mut Report) -> Result<()> {
    let rounds = if effort.smoke { SMOKE } else { ROUNDS };
    let scratch = Scratch::new(binary)?;
    let middle = Random::new(5).text(MIDDLE_BYTES);
    let file = scratch.workspace().join(FILE);
    std::fs::write(&file, content([0, 0], &middle))?;
    let again = "cargo xtask torture fs editors";
    let mut row = Row::new("editors", "two processes at two ends of one file");
    let answers = thread::scope(|scope| {
        let editors = ENDS.map(|end| {
            let scratch = &scratch;
            scope.spawn(move || edit(scratch, end, rounds).map_err(|error| error.to_string()))
        });
        editors.map(|editor| editor.join().unwrap_or_else(|_| Err("it panicked".to_owned())))
    });
    for replies in answers {
        for reply in replies? {
            let value = serde_json::from_str(&reply).unwrap_or_default();
            row.tally.add(scratch::kind(&value));
            if !scratch::is_success(&value) {
                row.violate(format!("an edit was refused: {}", reply.trim_end()), again);
            }
        }
    }
    if std::fs::read_to_string(&file)? != content([rounds, rounds], &middle) {
        row.violate("an edit was lost: the file does not have all edits", again);
    }
    let logged = scratch.logged()?;
    if logged != 2 * rounds as u64 {
        row.violate(format!("the journal has {logged} changes, not {}", 2 * rounds), again);
    }
    report.add(row);
    Ok(())
}

/// Makes all edits of one end in sequence. Returns the replies.
fn edit(scratch: &Scratch, end: &str, rounds: usize) -> Result<Vec<String>> {
    let mut conversation = LineProcess::start(scratch.command(&["run"]))?;
    let mut replies = Vec::new();
    for round in 0..rounds {
        let (old, new) = (format!("{end} {round}\n"), format!("{end} {}\n", round + 1));
        let arguments = json!({"file_path": FILE, "old_string": old, "new_string": new});
        conversation.say(&call_line(round, "Edit", &arguments, true))?;
        replies.push(conversation.line()?.ok_or("the process ended without a reply")?);
    }
    conversation.end()?;
    Ok(replies)
}

fn content(counts: [usize; 2], middle: &str) -> String {
    let [left, right] = counts;
    format!("{} {left}\n{middle}{} {right}\n", ENDS[0], ENDS[1])
}
