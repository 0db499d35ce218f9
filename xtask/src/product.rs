//! Building the command line, and knowing where the binary went.

use std::path::PathBuf;

use serde_json::Value;

use crate::error::Result;
use crate::process;

/// The binary as tests have it: quick to build.
pub(crate) fn build_debug() -> Result<PathBuf> {
    build(&[])
}

/// The binary as users have it.
pub(crate) fn build_release() -> Result<PathBuf> {
    build(&["--release"])
}

/// Asks cargo for the path, since a target directory or a build target may be configured.
fn build(words: &[&str]) -> Result<PathBuf> {
    let mut command = process::cargo(&["build", "--locked", "-p", "toolcrib-cli"]);
    command.args(["--bin", "toolcrib", "--message-format=json-render-diagnostics"]);
    let messages = process::capture(command.args(words))?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
        .next_back()
        .ok_or_else(|| "cargo built no `toolcrib`; does crates/cli still have that binary?".into())
}
