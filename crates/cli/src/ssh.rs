//! Commands on other machines, through the user's own ssh: its configuration, keys and known hosts apply.

mod quote;

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::process::{Command, Stdio};

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

/// The maximum number of bytes read of the output and of the messages of a script.
const MAX_OUTPUT_BYTES: u64 = 1 << 16;

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
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        started.spawn().map_err(|error| format!("{program} does not start: {error}"))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (stdout, messages) = std::thread::scope(|scope| {
        let messages = scope.spawn(move || stderr.map(beginning).unwrap_or_default());
        scope.spawn(move || {
            // The script may end before it has read everything, and says why.
            stdin.map(|mut stdin| stdin.write_all(input))
        });
        (stdout.map(beginning).unwrap_or_default(), messages.join().unwrap_or_default())
    });
    let status = child.wait().map_err(|error| format!("{program}: {error}"))?;
    if status.code() == Some(SSH_FAILED) {
        return Err(connection_problem(host, &messages));
    }
    Ok(ScriptOutput { is_success: status.success(), stdout, messages })
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

/// The beginning of a stream, read to its end.
fn beginning(mut stream: impl io::Read) -> String {
    let mut bytes = Vec::new();
    let _ = stream.by_ref().take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
    let _ = io::copy(&mut stream, &mut io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}
