//! Starts other programs. Every error contains the command line, so that it can be run by hand.

use std::env;
use std::ffi::OsStr;
use std::process::{Command, ExitStatus, Stdio};

use crate::error::Result;
use crate::workspace;

/// `cargo` with these arguments, at the root of the repository.
pub fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(words).current_dir(workspace::root());
    // `cargo xtask` sets variables that describe xtask. Build scripts read them, so cargo would build `ring`, and all
    // that depends on it, again after each change between `cargo xtask` and `cargo`.
    for (name, _) in env::vars_os().filter(|(name, _)| is_of_package(name)) {
        command.env_remove(name);
    }
    command
}

/// Whether cargo sets this variable for the package that it runs.
fn is_of_package(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b"CARGO_PKG_") || name.starts_with(b"CARGO_MANIFEST_")
}

/// Runs a command on our terminal. Fails at any exit code except 0.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    succeeded(command, status)
}

/// Runs a command and returns its stdout. Its stderr goes to ours. Fails like [`run`].
pub fn capture(command: &mut Command) -> Result<String> {
    capture_with(command, Stdio::null())
}

/// The same, with its input.
pub fn capture_with(command: &mut Command, stdin: impl Into<Stdio>) -> Result<String> {
    let output = command
        .stdin(stdin)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| not_started(command, &error))?;
    succeeded(command, output.status)?;
    String::from_utf8(output.stdout)
        .map_err(|_| format!("`{}` printed output that is not UTF-8", describe(command)).into())
}

/// The stdout of a command, or `None` if it fails. Used to query versions.
pub fn probe(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The command line as typed in a shell.
pub fn describe(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| quote(&word.to_string_lossy()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Quotes a word for a POSIX shell if necessary.
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
