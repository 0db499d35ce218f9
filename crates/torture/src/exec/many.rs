//! Thousands of commands in one session: descriptors, threads and memory stay constant.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use toolcrib_devtools::line_process::LineProcess;

use super::{Effort, PROFILES, Report, Result, call, session};
use crate::report::Row;

const COMMANDS: usize = 10_000;

/// The allowed growth of memory from the first quarter to the end: allocator fragmentation, not a leak.
const MAX_GROWTH: u64 = 4 << 20;

/// A few threads that answer calls come and go. A leak per command would be hundreds.
const SLACK: usize = 8;

/// The number of samples to find the idle state.
const SAMPLES: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Resources {
    descriptors: usize,
    threads: usize,
    memory: u64,
}

pub(super) fn run(binary: &Path, effort: Effort, report: &mut Report) -> Result<()> {
    let commands = effort.rounds.unwrap_or(if effort.smoke { 200 } else { COMMANDS });
    let directory = tempfile::tempdir()?;
    for profile in PROFILES {
        report.add(run_sequentially(
            session(binary, directory.path(), profile)?,
            commands,
            profile,
        )?);
    }
    Ok(())
}

fn run_sequentially(mut session: LineProcess, commands: usize, profile: &str) -> Result<Row> {
    let mut row = Row::new("many", format!("{commands} times `true`, profile {profile}"));
    let mut first = None;
    for number in 0..commands {
        let reply = call(&mut session, "Bash", json!({"command": "true"}))?;
        row.tally.add(if reply["success"] == true { "done" } else { "failed" });
        if reply["success"] != true {
            row.violate(reply.to_string(), "Bash true");
        }
        if number == commands / 4 {
            first = Some(idle_resources(session.pid())?);
        }
    }
    let (first, last) = (first.ok_or("no command was run")?, idle_resources(session.pid())?);
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

/// The resources of the idle process: the shim of the last command may need a moment to exit.
fn idle_resources(pid: u32) -> Result<Resources> {
    let mut least = resources(pid)?;
    for _ in 0..SAMPLES {
        std::thread::sleep(Duration::from_millis(50));
        let now = resources(pid)?;
        if now.descriptors <= least.descriptors {
            least = now;
        }
    }
    Ok(least)
}

fn resources(pid: u32) -> Result<Resources> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let of = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    let threads = of("Threads:").ok_or("the thread count is missing")?;
    Ok(Resources {
        descriptors: std::fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
        threads: usize::try_from(threads)?,
        memory: 1024 * of("VmRSS:").ok_or("the memory size is missing")?,
    })
}
