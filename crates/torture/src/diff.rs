//! `torture diff`: compares the hunks of our diffs with those of git. It runs the library's own test with many random
//! edits.

use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

use super::Effort;
use super::report::{Report, Row};

const EDITS: usize = 10_000;

pub(super) fn run(effort: Effort) -> Result<()> {
    let edits = effort.rounds.unwrap_or(EDITS);
    let mut command = process::cargo(&["test", "--quiet", "--locked", "--release"]);
    command
        .args(["-p", "toolcrib-text", "--lib", "diff::oracle"])
        .env("TOOLCRIB_STEPS", edits.to_string());
    let mut row = Row::new("library", "hunks are those of git diff");
    match process::run(&mut command) {
        Ok(()) => row.tally.add_many("edits", edits as u64),
        Err(error) => row.violate(error.to_string(), process::describe(&command)),
    }
    let mut report = Report::default();
    report.add(row);
    report.finish("diff")
}
