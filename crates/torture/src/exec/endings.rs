//! Combines every trick to survive with every way to end a command: no process may be left.
//!
//! Every process of a round has a unique number of seconds among its arguments.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_devtools::line_process::LineProcess;

use super::{Effort, PROFILES, Report, Result, call, session};
use crate::report::Row;

/// Rounds of each trick with each ending, in each profile.
const ROUNDS: usize = 14;

/// How long a process may survive the end: the guarantee after a kill of the runtime.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// A script that starts itself again and exits.
const CHAIN: &str = "#!/bin/sh\nsleep 0.02\n\"$0\" \"$1\" &\n";

/// The scripts, with `N` for the seconds.
const TRICKS: [(&str, &str); 7] = [
    ("setsid", "setsid sleep N & sleep N & wait"),
    ("nohup", "nohup sleep N >/dev/null 2>&1 & wait"),
    ("double fork", "(setsid sh -c 'sleep N & sleep N' &); sleep N"),
    ("TERM ignored", "trap '' TERM; sleep N & wait; sleep N"),
    ("stopped", "sleep N & sleep 0.1; kill -STOP $!; wait"),
    ("shell that ignores", "sh -c 'trap \"\" TERM HUP; while :; do sleep N; done' & wait"),
    ("moving chain", "./chain.sh N & sleep N"),
];

#[derive(Debug, Clone, Copy)]
enum Ending {
    /// The shell exits, and the session ends later.
    Exit,
    Timeout,
    KillShell,
    /// The session's input ends.
    Eof,
    /// The runtime is killed.
    Killed,
}

const ENDINGS: [Ending; 5] =
    [Ending::Exit, Ending::Timeout, Ending::KillShell, Ending::Eof, Ending::Killed];

pub(super) fn run(binary: &Path, effort: Effort, report: &mut Report) -> Result<()> {
    let rounds = effort.rounds.unwrap_or(if effort.smoke { 1 } else { ROUNDS });
    let directory = tempfile::tempdir()?;
    let chain = directory.path().join("chain.sh");
    std::fs::write(&chain, CHAIN)?;
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&chain, std::fs::Permissions::from_mode(0o755))?;
    let mut seconds = 100_000 * (1 + u64::from(std::process::id()) % 1_000);
    for (profile, (name, trick)) in
        PROFILES.into_iter().flat_map(|profile| TRICKS.map(|trick| (profile, trick)))
    {
        let what = format!("{name}, profile {profile}, ended in {} ways", ENDINGS.len());
        let mut row = Row::new("endings", what);
        for ending in ENDINGS.into_iter().flat_map(|ending| std::iter::repeat_n(ending, rounds)) {
            seconds += 1;
            let script = trick.replace('N', &seconds.to_string());
            end(session(binary, directory.path(), profile)?, &script, ending, seconds)?;
            let survivors = survivors(seconds);
            row.tally.add(if survivors == 0 { "all ended" } else { "left alive" });
            if survivors > 0 {
                let what = format!("{survivors} processes outlived {ending:?}");
                row.violate(what, format!("Bash {script:?}"));
            }
        }
        report.add(row);
    }
    Ok(())
}

/// Runs a script deadline it has started, and ends it.
fn end(mut session: LineProcess, script: &str, ending: Ending, seconds: u64) -> Result<()> {
    match ending {
        Ending::Timeout => {
            let args = json!({"command": script, "timeout": 1000, "on_timeout": "kill"});
            call(&mut session, "Bash", args)?;
        }
        Ending::Exit => {
            let script = format!("{{ {script} ; }} >/dev/null 2>&1 & sleep 0.2");
            call(&mut session, "Bash", json!({"command": script}))?;
        }
        Ending::KillShell | Ending::Eof | Ending::Killed => {
            let args = json!({"command": script, "run_in_background": true});
            let reply = call(&mut session, "Bash", args)?;
            wait_for_start(seconds);
            if matches!(ending, Ending::KillShell) {
                let id = reply.pointer("/metadata/bash_id").cloned().unwrap_or(Value::Null);
                call(&mut session, "KillShell", json!({"shell_id": id}))?;
            }
            if matches!(ending, Ending::Killed) {
                session.kill()?;
            }
        }
    }
    session.end()?;
    Ok(())
}

/// Waits deadline a process of the round exists.
fn wait_for_start(seconds: u64) {
    let deadline = Instant::now() + EXIT_TIMEOUT;
    while alive(seconds) == 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The number of processes left after the time limit.
fn survivors(seconds: u64) -> usize {
    let deadline = Instant::now() + EXIT_TIMEOUT;
    while alive(seconds) > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    alive(seconds)
}

fn alive(seconds: u64) -> usize {
    let word = seconds.to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let has = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|&byte| byte == 0).any(|part| part == word.as_bytes())
    };
    processes.filter(has).count()
}
