//! A temporary workspace, state directory and configuration for running `toolcrib`, so that the user's own
//! files are neither read nor changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::error::Result;
use crate::process;

/// The usual mount point of a file system in memory.
const MEMORY: &str = "/dev/shm";

/// A temporary directory with everything that a `toolcrib` process needs. It is removed when dropped.
pub struct Scratch {
    binary: PathBuf,
    directory: TempDir,
}

impl Scratch {
    /// Creates a scratch directory on disk.
    pub fn new(binary: &Path) -> Result<Scratch> {
        Scratch::at(binary, tempfile::tempdir()?)
    }

    /// Creates a scratch directory in memory if possible, for runs that do not depend on a disk. It allows more rounds in
    /// the same time.
    pub fn in_memory(binary: &Path) -> Result<Scratch> {
        match tempfile::tempdir_in(MEMORY) {
            Ok(directory) => Scratch::at(binary, directory),
            Err(_) => Scratch::new(binary),
        }
    }

    /// Creates a scratch directory in this directory.
    pub fn beneath(binary: &Path, directory: &Path) -> Result<Scratch> {
        fs::create_dir_all(directory)?;
        Scratch::at(binary, tempfile::tempdir_in(directory)?)
    }

    fn at(binary: &Path, directory: TempDir) -> Result<Scratch> {
        let scratch = Scratch { binary: binary.to_owned(), directory };
        fs::create_dir(scratch.workspace())?;
        fs::write(scratch.top().join("config.toml"), "")?;
        Ok(scratch)
    }

    /// The directory itself.
    pub fn top(&self) -> &Path {
        self.directory.path()
    }

    /// The root of the workspace.
    pub fn workspace(&self) -> PathBuf {
        self.top().join("ws")
    }

    /// The state directory with the journal.
    pub fn state(&self) -> PathBuf {
        self.top().join("state")
    }

    /// Removes the state directory, so that the next process begins a new journal.
    pub fn remove_state(&self) -> Result<()> {
        remove_directory(&self.state())
    }

    /// `toolcrib` with these arguments and a clean environment.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(words).arg("--root").arg(self.workspace());
        command.arg("--state").arg(self.state());
        command.arg("--config").arg(self.top().join("config.toml"));
        command.env_clear().current_dir(self.top()).stdin(Stdio::null());
        command
    }

    /// The command line of one call.
    pub fn call_command(&self, tool: &str, arguments: &Value) -> Command {
        self.command(&["call", tool, &arguments.to_string()])
    }

    /// Makes one call in its own process. Returns the reply, whether it succeeded or not.
    pub fn call(&self, tool: &str, arguments: &Value) -> Result<Value> {
        let mut command = self.call_command(tool, arguments);
        let output = command.stderr(Stdio::inherit()).output()?;
        serde_json::from_slice(&output.stdout).map_err(|_| {
            format!("`{}` gave no reply: {}", process::describe(&command), output.status).into()
        })
    }

    /// Makes one call in its own process. Fails if the call does.
    pub fn must_call(&self, tool: &str, arguments: &Value) -> Result<Value> {
        let reply = self.call(tool, arguments)?;
        if is_success(&reply) {
            return Ok(reply);
        }
        let command = process::describe(&self.call_command(tool, arguments));
        Err(format!("`{command}` was refused: {reply}").into())
    }

    /// The output of `toolcrib log --json`. Starting the process also recovers from a crash.
    pub fn log(&self) -> Result<Value> {
        let mut command = self.command(&["log", "--json", "--limit", "1"]);
        // Hidden from the terminal: it reports each interrupted change, and there are many.
        let output = command.output()?;
        serde_json::from_slice(&output.stdout).map_err(|_| {
            let complaint = String::from_utf8_lossy(&output.stderr);
            format!("`{}` says: {}", process::describe(&command), complaint.trim()).into()
        })
    }

    /// The number of changes in the journal.
    pub fn logged(&self) -> Result<u64> {
        let log = self.log()?;
        let total = log.get("total").and_then(Value::as_u64);
        total.ok_or_else(|| format!("`toolcrib log --json` has no total: {log}").into())
    }
}

/// Whether a reply is a success.
pub fn is_success(reply: &Value) -> bool {
    reply.get("success") == Some(&Value::Bool(true))
}

/// The error kind of a reply; `ok` for a success.
pub fn kind(reply: &Value) -> &str {
    if is_success(reply) {
        return "ok";
    }
    reply.pointer("/error/kind").and_then(Value::as_str).unwrap_or("a reply without a kind")
}

/// Removes a directory if it exists.
pub fn remove_directory(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", path.display()).into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_a_success_or_has_an_error_kind() {
        assert_eq!(kind(&serde_json::json!({"success": true, "output": "text"})), "ok");
        let refused = serde_json::json!({"success": false, "error": {"kind": "stale"}});
        assert_eq!(kind(&refused), "stale");
        assert!(!is_success(&refused));
        assert_eq!(kind(&Value::Null), "a reply without a kind");
    }
}
