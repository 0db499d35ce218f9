//! Notes about other running jobs of the session: a command does not see their processes, and they may use the port
//! that it needs.

use toolcrib_exec::Jobs;
use toolcrib_text::visible_name;

use crate::message_names::KILL_SHELL;
use crate::phrases::{first_of, it_or_them};

/// A running job.
pub(super) struct OtherJob {
    pub(super) id: String,
    /// Names of its programs.
    pub(super) programs: Vec<String>,
    /// Ports that it listens on.
    pub(super) ports: Vec<u16>,
}

/// Programs that list or signal processes.
const PROCESS_PROGRAMS: [&str; 12] = [
    "fuser", "htop", "kill", "killall", "lsof", "pgrep", "pidof", "pidwait", "pkill", "ps",
    "pstree", "top",
];

/// Words that stand before the program of a command.
const BEFORE_PROGRAM: [&str; 19] = [
    "!", "bash", "builtin", "command", "do", "elif", "else", "env", "exec", "if", "nohup", "sh",
    "sudo", "then", "time", "timeout", "until", "while", "xargs",
];

/// Messages of programs that could not bind a port.
const PORT_TAKEN: [&str; 6] = [
    "ddress already in use",
    "ddress in use",
    "EADDRINUSE",
    "is already in use",
    "is in use by another",
    "os error 98",
];

/// Bytes of the script, and of the end of the output, that are examined.
const MAX_BYTES: usize = 64 << 10;

/// Jobs and programs that are named.
const NAMED: usize = 3;

/// The notes about other running jobs that matter to a command. `own_processes` says whether the command sees only its
/// own processes.
pub(super) fn other_jobs_notes(
    script: &str,
    output: &str,
    own_processes: bool,
    (jobs, own_id): (&Jobs, &str),
) -> Vec<String> {
    let asks_for_processes = own_processes && runs_process_program(script);
    let is_port_taken = reports_taken_port(output);
    if !asks_for_processes && !is_port_taken {
        return Vec::new();
    }
    let others = other_jobs(jobs, own_id, is_port_taken);
    let invisible = asks_for_processes.then(|| invisible_note(&others)).flatten();
    let taken = is_port_taken.then(|| port_note(script, output, &others)).flatten();
    invisible.into_iter().chain(taken).collect()
}

/// The running jobs of a session, except one.
fn other_jobs(jobs: &Jobs, own_id: &str, with_ports: bool) -> Vec<OtherJob> {
    let running = jobs.list_running().into_iter().filter(|job| job.id() != own_id);
    let other = |job: std::sync::Arc<toolcrib_exec::Job>| OtherJob {
        id: job.id().to_owned(),
        programs: job.processes().into_iter().map(|process| process.name).collect(),
        ports: if with_ports { job.ports() } else { Vec::new() },
    };
    running.map(other).filter(|job| !job.programs.is_empty()).collect()
}

/// The note for a command that looks for processes which it cannot see.
fn invisible_note(others: &[OtherJob]) -> Option<String> {
    let it = it_or_them(others.len() as u64);
    (!others.is_empty()).then(|| {
        format!(
            "processes of other commands are not visible here; still running: {}; {KILL_SHELL} ends {it}",
            first_of(others, NAMED, OtherJob::shown)
        )
    })
}

/// The note about the jobs that listen on the port that a command could not bind: the ports that the script or the
/// output names, or else all.
fn port_note(script: &str, output: &str, others: &[OtherJob]) -> Option<String> {
    let listening: Vec<(u16, &OtherJob)> =
        others.iter().flat_map(|job| job.ports.iter().map(move |port| (*port, job))).collect();
    let is_named = |port: u16| has_number(beginning(script), port) || has_number(end(output), port);
    let named: Vec<_> = listening.iter().copied().filter(|(port, _)| is_named(*port)).collect();
    let shown = if named.is_empty() { listening } else { named };
    let it = it_or_them(shown.len() as u64);
    let uses = |(port, job): &(u16, &OtherJob)| format!("port {port} is in use by {}", job.shown());
    (!shown.is_empty())
        .then(|| format!("{}; {KILL_SHELL} ends {it}", first_of(&shown, NAMED, uses)))
}

impl OtherJob {
    /// `sh_112 (python3)`
    fn shown(&self) -> String {
        let names = first_of(&self.programs, NAMED, |name| visible_name(name.as_bytes()));
        format!("{} ({names})", self.id)
    }
}

/// Whether a script runs a program that lists or signals processes.
fn runs_process_program(script: &str) -> bool {
    let is_separator = |c: char| ";|&(){}`\n".contains(c);
    beginning(script)
        .split(is_separator)
        .filter(|command| !ends_itself(command))
        .filter_map(program)
        .any(|name| PROCESS_PROGRAMS.contains(&name))
}

/// Whether a command is a signal to its own shell.
fn ends_itself(command: &str) -> bool {
    let last = command.split_whitespace().next_back();
    last.is_some_and(|word| word.trim_matches(['"', '\'']) == "$$")
}

/// The program of a simple command: its first word that is no assignment, option, number or wrapper.
fn program(command: &str) -> Option<&str> {
    let words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    let mut programs = words.filter(|word| {
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        !word.starts_with('-')
            && !word.contains('=')
            && !is_number
            && !BEFORE_PROGRAM.contains(word)
    });
    programs.next().and_then(|word| word.rsplit('/').next())
}

fn reports_taken_port(output: &str) -> bool {
    PORT_TAKEN.iter().any(|message| end(output).contains(message))
}

/// Whether a text has this number, not as a part of a longer one.
fn has_number(text: &str, number: u16) -> bool {
    let number = number.to_string();
    text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits == number)
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_BYTES)]
}

fn end(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_BYTES))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str, program: &str, ports: &[u16]) -> OtherJob {
        OtherJob { id: id.to_owned(), programs: vec![program.to_owned()], ports: ports.to_vec() }
    }

    #[test]
    fn commands_that_look_for_processes_are_recognized() {
        for script in [
            "kill 3",
            "kill $(cat /tmp/srv.pid)",
            "ps aux | grep sleep",
            "sleep 1; pkill -f server",
            "if pgrep -x node; then echo up; fi",
            "timeout 5 /usr/bin/lsof -i :8124",
            "cat pids | xargs -n1 kill",
            "bash -c 'kill 3'",
            "echo $(pidof python3)",
            "LC_ALL=C fuser -k 8124/tcp",
        ] {
            assert!(runs_process_program(script), "{script}");
        }
        for script in [
            "echo kill 3",
            "grep -rn ps .",
            "cat kill.txt",
            "skill",
            "git log --top",
            "kill -SEGV $$",
            "bash -c 'kill -9 $$'",
            "",
        ] {
            assert!(!runs_process_program(script), "{script}");
        }
    }

    #[test]
    fn invisible_jobs_are_named() {
        assert_eq!(invisible_note(&[]), None);
        assert_eq!(
            invisible_note(&[job("sh_112", "python3", &[])]).unwrap(),
            "processes of other commands are not visible here; still running: sh_112 (python3); KillShell ends it"
        );
        let several: Vec<OtherJob> =
            (1..=5).map(|number| job(&format!("sh_{number}"), "sleep", &[])).collect();
        let note = invisible_note(&several).unwrap();
        assert!(note.ends_with("sh_3 (sleep) and 2 more; KillShell ends them"), "{note}");
    }

    #[test]
    fn the_job_on_a_taken_port_is_named() {
        let others = [job("sh_1", "node", &[3000]), job("sh_2", "python3", &[8123, 9])];
        let output = "OSError: [Errno 98] Address already in use\n";
        assert!(reports_taken_port(output));
        assert_eq!(
            port_note("python3 -m http.server 8123", output, &others).unwrap(),
            "port 8123 is in use by sh_2 (python3); KillShell ends it"
        );
        let output = "Error: listen EADDRINUSE: address already in use :::3000\n";
        assert_eq!(
            port_note("npm start", output, &others).unwrap(),
            "port 3000 is in use by sh_1 (node); KillShell ends it"
        );
        let note = port_note("npm start", "EADDRINUSE", &others).unwrap();
        assert!(note.starts_with("port 3000 is in use by sh_1 (node), port 8123 is"), "{note}");
        assert_eq!(port_note("x", "EADDRINUSE", &[job("sh_1", "sleep", &[])]), None);
        assert!(!reports_taken_port("the address is free\n"));
    }

    #[test]
    fn long_texts_are_examined_in_part() {
        let long = "é".repeat(MAX_BYTES);
        assert!(!runs_process_program(&format!("{long}; kill 3")));
        assert!(reports_taken_port(&format!("{long}Address already in use")));
        assert!(!reports_taken_port(&format!("Address already in use{long}")));
    }
}
