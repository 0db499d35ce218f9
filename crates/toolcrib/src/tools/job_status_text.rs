//! Descriptions of the state of commands.

use std::time::{SystemTime, UNIX_EPOCH};

use toolcrib_exec::{Exit, Job, Network, Snapshot, Status};

use crate::cx::job_error;
use crate::phrases::{counted_with_verb, duration_text};

/// The state of a job: `running`, or `failed, exit code 1`.
pub(super) fn state(job: &Job, now: &Snapshot) -> String {
    describe(now, "", job.processes().len())
}

/// The state of a job with its duration: `running for 31 s`, or `failed after 31 s, exit code 1`.
pub(super) fn state_and_duration(job: &Job, now: &Snapshot) -> String {
    let lasted = duration_text(now.duration);
    let duration =
        if now.status.is_running() { format!(" for {lasted}") } else { format!(" after {lasted}") };
    describe(now, &duration, job.processes().len())
}

fn describe(now: &Snapshot, duration: &str, processes: usize) -> String {
    let status = status_words(now.status);
    let words = match (&now.error, &now.ended) {
        (Some(broken), _) => job_error(broken).message().to_owned(),
        (None, Some(ended)) => match (now.status, ended.exit) {
            (Status::Killed, Exit::Signal(signal)) => {
                let (signal, why) = killing_signal(now, signal);
                format!("killed by {signal}{duration}{why}")
            }
            (Status::TimedOut, Exit::Signal(signal)) => {
                let (signal, why) = killing_signal(now, signal);
                format!("{status}{duration}, killed by {signal}{why}")
            }
            (_, exit) => format!("{status}{duration}, {}", exit_text(exit)),
        },
        (None, None) => format!("{status}{duration}"),
    };
    match processes {
        0 => words,
        _ if now.status.is_running() => words,
        left => {
            format!(
                "{words}; {}",
                counted_with_verb(left as u64, "process", ("still runs", "still run"))
            )
        }
    }
}

/// The status of a job, in words.
pub(super) fn status_words(status: Status) -> &'static str {
    match status {
        Status::TimedOut => "timed out",
        status => status.name(),
    }
}

/// The signal that ended a job, and why it was not that of its shell: other processes may have needed SIGKILL.
fn killing_signal(now: &Snapshot, of_shell: i32) -> (String, &'static str) {
    if now.force_killed > 0 && of_shell == SIGTERM {
        (signal_name(SIGKILL), ", as SIGTERM did not end it")
    } else {
        (signal_name(of_shell), "")
    }
}

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// Describes how a shell ended.
pub(super) fn exit_text(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {}", exit_code_text(code)),
        Exit::Signal(signal) => format!("killed by {}", signal_name(signal)),
    }
}

/// An exit code, with the signal that it stands for: `1`, `137 (128 + SIGKILL)`.
pub(super) fn exit_code_text(code: i32) -> String {
    match code {
        129..=159 => format!("{code} (128 + {})", signal_name(code - 128)),
        code => code.to_string(),
    }
}

/// The ports that a job listens on, and which programs can reach them. `network` is that of its sandbox, if it has
/// one. `exposed` is the outcome of making the first port reachable, if that was requested.
pub(super) fn ports_note(
    ports: &[u16],
    network: Option<Network>,
    exposed: Option<Result<(), String>>,
) -> String {
    let first = ports.first().copied().unwrap_or_default();
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let ports = ports.join(", ");
    match exposed {
        Some(Ok(())) => {
            return format!(
                "listens on port {ports}: http://127.0.0.1:{first} on this machine leads to it"
            );
        }
        Some(Err(why)) => {
            return format!("listens on port {ports}: not reachable from this machine: {why}");
        }
        None => {}
    }
    let only_session = "only commands of this session can reach it";
    let reach = match network {
        Some(Network::List) => {
            format!("{only_session}; expose = [{first}] in config.toml opens it to this machine")
        }
        Some(Network::None) => format!(
            "{only_session}; network = \"list\" and expose = [{first}] in config.toml open it to this machine"
        ),
        Some(Network::All) | None => "programs on this machine can reach it".to_owned(),
    };
    format!("listens on port {ports}: {reach}")
}

/// A time in seconds since 1970.
pub(super) fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolcrib_exec::{Ended, Status};

    use super::*;

    fn snapshot(status: Status, exit: Option<Exit>) -> Snapshot {
        let ended =
            exit.map(|exit| Ended { exit, cpu: Duration::ZERO, peak_bytes: 0, shell_state: None });
        Snapshot {
            status,
            ended,
            duration: Duration::from_secs(31),
            finished: None,
            written: 0,
            gap: 0..0,
            errors_written: None,
            closed: false,
            all_exited: false,
            killed: 0,
            force_killed: 0,
            error: None,
        }
    }

    #[test]
    fn states_are_described() {
        let running = snapshot(Status::Running, None);
        assert_eq!(describe(&running, " for 31 s", 3), "running for 31 s");
        let completed = snapshot(Status::Completed, Some(Exit::Code(0)));
        assert_eq!(describe(&completed, "", 0), "completed, exit code 0");
        assert_eq!(
            describe(&completed, " after 31 s", 1),
            "completed after 31 s, exit code 0; 1 process still runs"
        );
        let killed = snapshot(Status::Killed, Some(Exit::Signal(9)));
        assert_eq!(describe(&killed, "", 2), "killed by SIGKILL; 2 processes still run");
        assert_eq!(describe(&killed, " after 31 s", 0), "killed by SIGKILL after 31 s");
        let mut timed_out = snapshot(Status::TimedOut, Some(Exit::Signal(15)));
        assert_eq!(
            describe(&timed_out, " after 31 s", 0),
            "timed out after 31 s, killed by SIGTERM"
        );
        timed_out.force_killed = 1;
        assert_eq!(
            describe(&timed_out, "", 0),
            "timed out, killed by SIGKILL, as SIGTERM did not end it"
        );
        let by_code = snapshot(Status::Killed, Some(Exit::Code(143)));
        assert_eq!(describe(&by_code, "", 0), "killed, exit code 143 (128 + SIGTERM)");
        let failed = snapshot(Status::Failed, Some(Exit::Signal(11)));
        assert_eq!(describe(&failed, "", 0), "failed, killed by SIGSEGV");
        assert_eq!(exit_text(Exit::Code(137)), "exit code 137 (128 + SIGKILL)");
    }

    #[test]
    fn ports_are_reported_with_their_reach() {
        let closed = ports_note(&[8125], Some(Network::None), None);
        assert!(closed.starts_with("listens on port 8125: only commands of this session"));
        assert!(closed.contains("network = \"list\" and expose = ["));
        assert_eq!(
            ports_note(&[1, 2], None, None),
            "listens on port 1, 2: programs on this machine can reach it"
        );
    }
}
