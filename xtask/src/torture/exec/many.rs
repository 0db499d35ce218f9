//! Thousands of commands in one session: descriptors, threads and memory stay as they are.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::{Effort, PROFILES, Report, Result, call, session};
use crate::conversation::Conversation;
use crate::torture::report::Row;

const COMMANDS: usize = 10_000;

/// Memory may grow by so much from the first quarter to the end: an allocator's fragments, no leak.
const MAX_GROWTH: u64 = 4 << 20;

/// A thread or two of those that answer calls come and go. What each command left behind would be hundreds.
const SLACK: usize = 8;

/// How often it is looked before it is taken to be settled.
const SAMPLES: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    descriptors: usize,
    threads: usize,
    memory: u64,
}

pub(super) fn run(binary: &Path, effort: Effort, report: &mut Report) -> Result<()> {
    let commands = effort.rounds.unwrap_or(if effort.smoke { 200 } else { COMMANDS });
    let directory = tempfile::tempdir()?;
    for profile in PROFILES {
        report.add(one_after_the_other(
            session(binary, directory.path(), profile)?,
            commands,
            profile,
        )?);
    }
    Ok(())
}

fn one_after_the_other(mut session: Conversation, commands: usize, profile: &str) -> Result<Row> {
    let mut row = Row::new("many", format!("{commands} times `true`, profile {profile}"));
    let mut first = None;
    for number in 0..commands {
        let reply = call(&mut session, "Bash", json!({"command": "true"}))?;
        row.tally.add(if reply["success"] == true { "done" } else { "failed" });
        if reply["success"] != true {
            row.violate(reply.to_string(), "Bash true");
        }
        if number == commands / 4 {
            first = Some(settled(session.pid())?);
        }
    }
    let (first, last) = (first.ok_or("no command was run")?, settled(session.pid())?);
    if last.descriptors > first.descriptors + SLACK || last.threads > first.threads + SLACK {
        row.violate(format!("{first:?} became {last:?}"), "Bash true");
    }
    if last.memory > first.memory + MAX_GROWTH {
        row.violate(format!("memory grew from {} to {}", first.memory, last.memory), "Bash true");
    }
    println!("   after a quarter {first:?}, in the end {last:?}");
    session.end()?;
    Ok(row)
}

/// What it holds when it has nothing to do: the keeper of the last command may take a moment to go.
fn settled(pid: u32) -> Result<Held> {
    let mut least = held(pid)?;
    for _ in 0..SAMPLES {
        std::thread::sleep(Duration::from_millis(50));
        let now = held(pid)?;
        if now.descriptors <= least.descriptors {
            least = now;
        }
    }
    Ok(least)
}

fn held(pid: u32) -> Result<Held> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let of = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    let threads = of("Threads:").ok_or("no threads are told")?;
    Ok(Held {
        descriptors: std::fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
        threads: usize::try_from(threads)?,
        memory: 1024 * of("VmRSS:").ok_or("no memory is told")?,
    })
}
