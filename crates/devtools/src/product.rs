//! Builds programs and finds their paths.

use std::path::PathBuf;

use serde_json::Value;

use crate::error::Result;
use crate::process;

/// Builds `toolcrib` in the debug profile, which is quick to build.
pub fn build_debug() -> Result<PathBuf> {
    build(&[])
}

/// The binary for a first look: quickest to build from nothing.
pub fn build_demo() -> Result<PathBuf> {
    build(&["--profile", "demo"])
}

/// The binary for stress tests: fast, and quicker to build than the one that is shipped.
pub fn build_release() -> Result<PathBuf> {
    build(&["--release"])
}

/// The binary as users have it: the one to measure.
pub fn build_dist() -> Result<PathBuf> {
    build(&["--profile", "dist"])
}

/// Builds an example of one of our crates in the release profile.
pub fn build_example(package: &str, name: &str) -> Result<PathBuf> {
    build_example_for(package, name, false)
}

/// Builds an example for a run: the debug profile for a smoke run, else the release profile.
pub fn build_example_for(package: &str, name: &str, smoke: bool) -> Result<PathBuf> {
    let words = ["-p", package, "--example", name];
    build_target(&[&words[..], if smoke { &[] } else { &["--profile", "dist"] }].concat())
}

/// Builds `hobbled`, which removes a capability of the system and then executes another program.
pub fn build_hobbled() -> Result<PathBuf> {
    build_target(&["-p", "toolcrib-exec", "--example", "hobbled"])
}

/// Builds the fuzzer in the debug profile, with all checks.
pub fn build_fuzzer() -> Result<PathBuf> {
    build_target(&["-p", "toolcrib-fuzz", "--bin", "toolcrib-fuzz"])
}

fn build(words: &[&str]) -> Result<PathBuf> {
    build_target(&[&["-p", "toolcrib-cli", "--bin", "toolcrib"], words].concat())
}

/// Builds a target and returns its path as reported by cargo, since the target directory may be configured.
fn build_target(words: &[&str]) -> Result<PathBuf> {
    let mut command = process::cargo(&["build", "--locked"]);
    command.arg("--message-format=json-render-diagnostics").args(words);
    let messages = process::capture(&mut command)?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
        .next_back()
        .ok_or_else(|| format!("`{}` built no program", process::describe(&command)).into())
}
