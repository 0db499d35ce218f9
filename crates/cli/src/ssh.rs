//! Commands on other machines, through the user's own ssh: its configuration, keys and known hosts apply.

mod bounded_run;
mod quote;

use std::io::{self, IsTerminal as _};
use std::process::Command;
use std::time::Duration;

use self::bounded_run::{RunLimits, RunProblem};
pub(crate) use self::quote::{quote, quote_program};
use crate::args::RemoteHost;

/// The variable with the ssh command and its first options.
const VARIABLE: &str = "TOOLCRIB_SSH";

/// The path of the program there, unless another one is named.
pub(crate) const PROGRAM_THERE: &str = "~/.local/bin/toolcrib";

/// No terminal, nothing of this machine is forwarded, and a connection that is broken ends within a minute. A command
/// that the user configured for the host would replace ours.
const OPTIONS: [&str; 13] = [
    "-T",
    "-a",
    "-x",
    "-o",
    "ClearAllForwardings=yes",
    "-o",
    "RemoteCommand=none",
    "-o",
    "ConnectTimeout=15",
    "-o",
    "ServerAliveInterval=15",
    "-o",
    "ServerAliveCountMax=3",
];

/// The limits of a script. Those of the program take seconds after their input.
const LIMITS: RunLimits =
    RunLimits { time: Duration::from_secs(5 * 60), kept_bytes: 1 << 16, bytes: 16 << 20 };

/// The exit code of ssh for its own errors.
const SSH_FAILED: i32 = 255;

/// The words of a command that runs `remote`, a line for the login shell there. Without a terminal ssh asks nothing.
pub(crate) fn words(host: &RemoteHost, remote: &str, may_ask: bool) -> Vec<String> {
    let ssh = std::env::var(VARIABLE).unwrap_or_default();
    let mut words: Vec<String> = ssh.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        words.push("ssh".to_owned());
    }
    words.extend(OPTIONS.map(str::to_owned));
    if !may_ask {
        words.extend(["-o".to_owned(), "BatchMode=yes".to_owned()]);
    }
    words.extend(["--".to_owned(), host.destination.clone(), remote.to_owned()]);
    words
}

/// A process that runs a line for the login shell there. Its streams are inherited.
pub(crate) fn command(host: &RemoteHost, remote: &str) -> Command {
    let words = words(host, remote, io::stderr().is_terminal());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// The output of a script.
pub(crate) struct ScriptOutput {
    pub(crate) is_success: bool,
    pub(crate) stdout: String,
    /// Its stderr.
    pub(crate) messages: String,
}

impl ScriptOutput {
    /// The rest of the line that begins with these words. Startup files of the login shell may print other lines.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        let key = format!("{MARK} {key} ");
        self.stdout.lines().find_map(|line| line.strip_prefix(&key))
    }
}

/// Begins the lines that a script prints for us.
pub(crate) const MARK: &str = "toolcrib-push:";

/// Runs a script there, one line for `sh`, with arguments and input. An error is one of ssh.
pub(crate) fn run_script(
    host: &RemoteHost,
    script: &str,
    arguments: &[&str],
    input: &[u8],
) -> Result<ScriptOutput, String> {
    let quoted: Vec<String> = arguments.iter().map(|argument| quote(argument)).collect();
    run_line(host, &format!("exec sh -c {} sh {}", quote(script), quoted.join(" ")), input)
}

/// Runs a line for the login shell there. An error is one of ssh.
pub(crate) fn run_line(
    host: &RemoteHost,
    line: &str,
    input: &[u8],
) -> Result<ScriptOutput, String> {
    let mut command = command(host, line);
    let program = command.get_program().display().to_string();
    let ended = bounded_run::run(&mut command, input, LIMITS).map_err(|problem| match problem {
        RunProblem::NotStarted(error) => format!("{program} does not start: {error}"),
        RunProblem::TooLong(time) => {
            let minutes = time.as_secs() / 60;
            format!("{program} did not end within {minutes} minutes, and was stopped; is {} slow or waiting?", host.destination)
        }
        RunProblem::TooMuchOutput(bytes) => {
            let megabytes = bytes >> 20;
            format!("{} printed more than {megabytes} MiB, and was stopped; does a startup file of its shell print without end?", host.destination)
        }
        RunProblem::Io(error) => format!("{program}: {error}"),
    })?;
    let shown = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (stdout, messages) = (shown(ended.stdout), shown(ended.stderr));
    if ended.status.code() == Some(SSH_FAILED) {
        return Err(connection_problem(host, &messages));
    }
    Ok(ScriptOutput { is_success: ended.status.success(), stdout, messages })
}

/// An error of ssh itself, with the next step.
pub(crate) fn connection_problem(host: &RemoteHost, messages: &str) -> String {
    let destination = &host.destination;
    let step = if messages.contains("Host key verification failed") {
        format!("\nRun `ssh {destination}` once, and compare the key of the host.")
    } else if messages.contains("Permission denied (") {
        format!(
            "\n`ssh {destination}` must work without a password: use a key and, for example, ssh-agent."
        )
    } else {
        String::new()
    };
    format!("cannot connect to {destination}: {}{step}", messages.trim())
}
