//! `bench patch`: applies and reverts a patch over many files, by ApplyPatch and by `git apply`.
//!
//! First in memory, where a sync costs nothing, because git does not sync. The time includes the journal, which
//! cannot be turned off. Then on the disk of the repository: the difference is the cost of crash safety.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::scratch::{self, Scratch};
use toolcrib_devtools::{cache, process};

use super::Rounds;
use super::report::Report;
use super::table::{Cell, Table};
use super::times::Times;

const FILES: usize = 500;
const LINES: usize = 200;
/// One line in this many changes.
const CHANGED_EVERY: usize = 50;
/// A round takes seconds on some disks, so a few suffice.
const MAX_ROUNDS: usize = 21;

pub(super) fn run(rounds: Rounds, report: &mut Report) -> Result<()> {
    let binary = rounds.build()?;
    let rounds = rounds.at_most(MAX_ROUNDS);
    let title = format!("a patch over {FILES} files");
    let mut table = Table::new(title, &["rounds", "p50 ms", "p90 ms", "to git apply"]);
    measure("in memory", &Scratch::in_memory(&binary)?, rounds, &mut table)?;
    let directory = cache::directory()?;
    measure("on disk", &Scratch::beneath(&binary, &directory)?, rounds, &mut table)?;
    report.add(&table);
    Ok(())
}

fn measure(place: &str, scratch: &Scratch, rounds: Rounds, table: &mut Table) -> Result<()> {
    let contest = Contest::new(scratch)?;
    let mut conversation = LineProcess::start(scratch.command(&["run"]))?;
    let mut times = [Times::default(), Times::default()];
    for round in 0..rounds.warm_up + rounds.measured {
        let back = round % 2 == 1;
        let patch = &contest.patches[usize::from(back)];
        let mut git = Command::new("git");
        git.arg("apply").arg(patch).current_dir(&contest.trees[0]);
        // Inside another repository, git would resolve the names against it and apply nothing.
        git.env("GIT_CEILING_DIRECTORIES", std::path::absolute(scratch.top())?);
        let taken = [process(&mut git)?, call(&mut conversation, patch)?];
        contest.check(back)?;
        for (times, time) in times.iter_mut().zip(taken).filter(|_| round >= rounds.warm_up) {
            times.add(time);
        }
    }
    for (name, own) in ["git apply", "ApplyPatch"].into_iter().zip(&times) {
        table.row(format!("{name}, {place}"), Cell::of_times(own, &times[0]));
    }
    Ok(())
}

/// The time from spawn to exit.
fn process(command: &mut Command) -> Result<Duration> {
    let started = Instant::now();
    process::run(command.stdout(Stdio::null()))?;
    Ok(started.elapsed())
}

/// The time from the call to its reply.
fn call(conversation: &mut LineProcess, patch: &Path) -> Result<Duration> {
    let patch = fs::read_to_string(patch)?;
    let line = call_line(1, "ApplyPatch", &json!({"patch": patch}), true);
    let started = Instant::now();
    let reply = conversation.ask(&line)?;
    let time = started.elapsed();
    if scratch::is_success(&reply) {
        Ok(time)
    } else {
        Err(format!("ApplyPatch was refused: {reply}").into())
    }
}

/// Two equal trees, and patches that change all of their files and revert them.
struct Contest {
    trees: [PathBuf; 2],
    patches: [PathBuf; 2],
}

impl Contest {
    fn new(scratch: &Scratch) -> Result<Contest> {
        let top = scratch.top();
        let trees = [top.join("git"), scratch.workspace()];
        trees.iter().try_for_each(|tree| write_tree(tree, false))?;
        write_tree(&top.join("old"), false)?;
        write_tree(&top.join("new"), true)?;
        let patches = [top.join("forth.patch"), top.join("back.patch")];
        for (patch, [from, to]) in patches.iter().zip([["old", "new"], ["new", "old"]]) {
            let mut diff = Command::new("git");
            diff.args(["diff", "--no-index", "--no-color", from, to]).current_dir(top);
            // Exit code 1 means that there are differences.
            let diff = String::from_utf8(diff.stderr(Stdio::inherit()).output()?.stdout)?;
            let diff = diff.replace(&format!("a/{from}/"), "a/").replace(&format!("b/{to}/"), "b/");
            fs::write(patch, diff)?;
        }
        Ok(Contest { trees, patches })
    }

    /// Checks that both trees have the result of the patch.
    fn check(&self, back: bool) -> Result<()> {
        for number in 0..FILES {
            let right = text(number, !back);
            for path in self.trees.iter().map(|tree| tree.join(name(number))) {
                if fs::read_to_string(&path)? != right {
                    return Err(format!("{} is not the result of the patch", path.display()).into());
                }
            }
        }
        Ok(())
    }
}

fn write_tree(directory: &Path, changed: bool) -> Result<()> {
    for number in 0..FILES {
        let path = directory.join(name(number));
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        fs::write(path, text(number, changed))?;
    }
    Ok(())
}

fn name(number: usize) -> String {
    format!("src/part{}/file{number}.rs", number / 25)
}

fn text(file: usize, changed: bool) -> String {
    let line = |number: usize| {
        let word = if changed && number % CHANGED_EVERY == 7 { "changed" } else { "stays" };
        format!("    let value_{number} = compute({file}, {number}); // {word}\n")
    };
    (0..LINES).map(line).collect()
}
