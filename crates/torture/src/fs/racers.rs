//! Races against renames: every swap with every tool.
//!
//! A thread exchanges two names as fast as the kernel allows, while a `toolcrib run` process gets calls on one of
//! them without waiting for replies. Canaries are outside the workspace: no reply may contain their words, and they
//! must be unchanged at the end.
//!
//! A pair runs in batches, each with its own process, files and journal, so that a change costs the same in the last
//! round as in the first. The default is 400,000 calls per pair for tools that read and 40,000 for tools that
//! change: each change is synced and journaled, and ten times as many would take over half an hour on two cores.
//! These calls are slower, so each pair still sees a million swaps or more. `--rounds` sets one number for both.

mod arena;
mod canary;
mod swap;

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{Ending, LineProcess};
use toolcrib_devtools::scratch;

use self::arena::{Arena, Tool};
use self::swap::{Swap, Swapper};
use super::super::Effort;
use super::super::report::{Report, Row, Tally};

const READS: usize = 400_000;
const CHANGES: usize = 40_000;
const SMOKE: usize = 300;
/// The number of calls to one process. A read leaves nothing behind; a change leaves files and a longer journal.
const READS_IN_BATCH: usize = 4_000;
const CHANGES_IN_BATCH: usize = 250;

/// The outcome of one or more batches.
#[derive(Default)]
struct Outcome {
    replies: Tally,
    swaps: u64,
    violations: Vec<String>,
}

pub(super) fn run(binary: &Path, effort: Effort, report: &mut Report) -> Result<()> {
    for swap in Swap::ALL {
        for tool in Tool::ALL {
            report.add(race(binary, swap, tool, effort)?);
        }
    }
    Ok(())
}

fn race(binary: &Path, swap: Swap, tool: Tool, effort: Effort) -> Result<Row> {
    let usual = if tool.changes() { CHANGES } else { READS };
    let rounds = effort.rounds.unwrap_or(if effort.smoke { SMOKE } else { usual });
    let in_batch = if tool.changes() { CHANGES_IN_BATCH } else { READS_IN_BATCH };
    let arena = Arena::new(binary, swap, tool)?;
    let mut row = Row::new("racers", format!("{}, {}", tool.name(), swap.name()));
    let (mut swaps, mut done, started) = (0, 0, Instant::now());
    while done < rounds {
        let calls = in_batch.min(rounds - done);
        let outcome = batch(&arena, calls)?;
        row.tally.merge(&outcome.replies);
        for violation in outcome.violations {
            row.violate(violation, format!("cargo xtask torture fs racers --rounds {rounds}"));
        }
        swaps += outcome.swaps;
        done += calls;
    }
    let (tool, swap, seconds) = (tool.name(), swap.name(), started.elapsed().as_secs_f64());
    println!("   {tool} against {swap}: {swaps} swaps in {seconds:.1} s");
    Ok(row)
}

fn batch(arena: &Arena, calls: usize) -> Result<Outcome> {
    arena.prepare()?;
    let before = arena.canaries()?;
    let mut conversation = LineProcess::start(arena.command())?;
    // Before the first reply its root may not be open yet.
    conversation.ask(&arena.first_call())?;
    let stop = AtomicBool::new(false);
    let mut swapper = arena.swapper();
    let mut outcome = thread::scope(|scope| -> Result<Outcome> {
        let swapping = scope.spawn(|| swap_until(&stop, &mut swapper));
        let outcome = converse(arena, conversation, calls);
        stop.store(true, Ordering::Relaxed);
        let swaps = swapping.join().map_err(|_| "the swapper panicked")?;
        let mut outcome = outcome?;
        outcome.swaps = swaps.map_err(|error| format!("the swapper failed: {error}"))?;
        Ok(outcome)
    })?;
    swapper.restore()?;
    outcome.violations.extend(before.differences(&arena.canaries()?));
    Ok(outcome)
}

/// Returns errors as text, because they cross a thread.
fn swap_until(stop: &AtomicBool, swapper: &mut Swapper) -> std::result::Result<u64, String> {
    let mut swaps = 0;
    while !stop.load(Ordering::Relaxed) {
        swapper.swap().map_err(|error| error.to_string())?;
        swaps += 1;
    }
    Ok(swaps)
}

/// Sends all calls and reads all replies concurrently.
fn converse(arena: &Arena, mut conversation: LineProcess, calls: usize) -> Result<Outcome> {
    let input = conversation.take_input();
    let (all_sent, ending) = thread::scope(|scope| -> Result<(bool, Ending)> {
        let saying = scope.spawn(move || {
            let Some(mut input) = input else { return false };
            (0..calls).all(|round| input.write_all(arena.call(round).as_bytes()).is_ok())
        });
        let ending = conversation.end()?;
        Ok((saying.join().unwrap_or(false), ending))
    })?;
    let mut outcome = Outcome::default();
    for reply in &ending.rest {
        let value = serde_json::from_str(reply).unwrap_or_default();
        let kind = scratch::kind(&value);
        outcome.replies.add(kind);
        if let Some(word) = canary::leaked_word(reply) {
            outcome.violations.push(format!("ESCAPE: a reply has {word}: {}", start_of(reply)));
        }
        if kind == "internal" {
            outcome.violations.push(format!("a call panicked: {}", start_of(reply)));
        }
    }
    if ending.hung {
        outcome
            .violations
            .push(format!("no answer for a minute, after {} calls", ending.rest.len()));
    } else if !all_sent || ending.rest.len() != calls || !ending.status.success() {
        let (replies, status) = (ending.rest.len(), ending.status);
        outcome.violations.push(format!("{replies} replies to {calls} calls, and {status}"));
    }
    Ok(outcome)
}

fn start_of(reply: &str) -> String {
    reply.trim_end().chars().take(300).collect()
}
