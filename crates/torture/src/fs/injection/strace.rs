//! Counts the system calls of a call with strace, and injects a fault into one of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use serde_json::Value;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;
use toolcrib_devtools::watchdog::Watchdog;

use super::scenario::Scenario;
use super::{Injection, fault};

/// Longer than any wait of a call.
const RUN_TIMEOUT: Duration = Duration::from_secs(30);

/// One run of a scenario's call with a fault.
pub(super) struct Run {
    /// The command line, for running it by hand.
    pub(super) command: String,
    /// Whether it reached the system call.
    pub(super) is_hit: bool,
    pub(super) status: ExitStatus,
    /// Whether it did not end by itself.
    pub(super) hung: bool,
    /// The reply, if there was one.
    pub(super) reply: Option<Value>,
    /// The output on stderr.
    pub(super) stderr: String,
}

impl Run {
    pub(super) fn was_killed(&self) -> bool {
        self.status.signal() == Some(Signal::KILL.as_raw())
    }
}

/// The number of each system call in a run without a fault.
pub(super) fn count(scenario: &Scenario) -> Result<BTreeMap<String, usize>> {
    let all = fault::system_calls().collect::<Vec<_>>().join(",");
    let run = trace(scenario, &["-e".to_owned(), format!("trace={all}")])?;
    if !run.reply.as_ref().is_some_and(toolcrib_devtools::scratch::is_success) {
        let (reply, stderr) = (run.reply, run.stderr);
        return Err(format!("`{}` failed: {reply:?} {stderr}", run.command).into());
    }
    Ok(counted(&fs::read_to_string(scenario.trace_file())?))
}

/// Runs the scenario's call with a fault in one system call.
pub(super) fn inject(scenario: &Scenario, injection: &Injection) -> Result<Run> {
    let Injection { system_call, occurrence, fault } = injection;
    let inject = format!("inject={system_call}:{}:when={occurrence}", fault.words());
    let words = ["-e".to_owned(), format!("trace={system_call}"), "-e".to_owned(), inject];
    let mut run = trace(scenario, &words)?;
    let trace = fs::read_to_string(scenario.trace_file())?;
    run.is_hit = run.was_killed() || trace.contains("(INJECTED)");
    Ok(run)
}

fn trace(scenario: &Scenario, words: &[String]) -> Result<Run> {
    let call = scenario.command();
    let mut command = Command::new("strace");
    command.arg("-f").arg("-o").arg(scenario.trace_file()).args(words).arg("--");
    command.arg(call.get_program()).args(call.get_args());
    command.env_clear().current_dir(scenario.top()).stdin(Stdio::null());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let (output, hung) = output_in_time(&mut command)?;
    Ok(Run {
        hung,
        command: process::describe(&command),
        is_hit: false,
        status: output.status,
        reply: serde_json::from_slice(&output.stdout).ok(),
        stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// The output, which is smaller than a pipe buffer, and whether the process had to be terminated.
fn output_in_time(command: &mut Command) -> Result<(Output, bool)> {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let id = Pid::from_child(&child);
    // On SIGTERM strace ends the traced process too; on SIGKILL it would leave it behind.
    let mut watchdog = Watchdog::new(id, RUN_TIMEOUT, Signal::TERM);
    waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let hung = watchdog.stop();
    Ok((child.wait_with_output()?, hung))
}

/// Counts the lines `1234 openat(…) = 3` of a trace by name.
fn counted(trace: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in trace.lines() {
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let Some((name, _)) = call.split_once('(') else { continue };
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_a_trace_by_name() {
        let trace = "12  openat(AT_FDCWD, \"a\", O_RDONLY) = 3\n\
                     12  write(1, \"f(x)\", 4) = 4\n\
                     12  openat(AT_FDCWD, \"b\", O_RDONLY) = -1 ENOENT (No such file)\n\
                     12  +++ exited with 0 +++\n";
        let counts = counted(trace);
        assert_eq!(counts.get("openat"), Some(&2));
        assert_eq!(counts.get("write"), Some(&1));
        assert_eq!(counts.len(), 2);
    }
}
