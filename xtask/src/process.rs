//! Starting other programs: every error has the command line, to be run again by hand.

use std::process::{Command, ExitStatus, Stdio};

use crate::error::Result;
use crate::workspace;

/// `cargo` with these words, at the root of the repository.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(words).current_dir(workspace::root());
    command
}

/// Runs it on our own terminal; any exit code but 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    succeeded(command, status)
}

/// Runs it and returns what it printed; what it says on stderr goes to our own.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    capture_with(command, Stdio::null())
}

/// The same, with its input.
pub(crate) fn capture_with(command: &mut Command, stdin: impl Into<Stdio>) -> Result<String> {
    let output = command
        .stdin(stdin)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| not_started(command, &error))?;
    succeeded(command, output.status)?;
    String::from_utf8(output.stdout)
        .map_err(|_| format!("`{}` printed what is not UTF-8", describe(command)).into())
}

/// What it printed, if it is there and works; for asking programs for their version.
pub(crate) fn probe(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The command line as one would type it.
pub(crate) fn describe(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| quote(&word.to_string_lossy()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word for a POSIX shell: bare where that is safe, in single quotes otherwise.
fn quote(word: &str) -> String {
    let bare = |c: char| c.is_alphanumeric() || "-_./=:,+@".contains(c);
    if !word.is_empty() && word.chars().all(bare) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn succeeded(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}` ended with {status}", describe(command)).into())
    }
}

fn not_started(command: &Command, error: &std::io::Error) -> String {
    format!(
        "cannot start `{}`: {error}; is {} installed and on the PATH?",
        describe(command),
        command.get_program().to_string_lossy()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_described_command_can_be_pasted_into_a_shell() {
        let mut command = Command::new("toolcrib");
        command.args(["call", "Read", r#"{"file_path":"it's"}"#, ""]);
        assert_eq!(describe(&command), r#"toolcrib call Read '{"file_path":"it'\''s"}' ''"#);
    }
}
