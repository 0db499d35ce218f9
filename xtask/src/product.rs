//! Building the command line, and knowing where the binary went.

use std::path::PathBuf;

use serde_json::Value;

use crate::error::Result;
use crate::process;

/// The binary as tests have it: quick to build.
pub(crate) fn build_debug() -> Result<PathBuf> {
    build(&[])
}

/// The binary for a first look: quickest to build from nothing.
pub(crate) fn build_demo() -> Result<PathBuf> {
    build(&["--profile", "demo"])
}

/// The binary for stress tests: fast, and quicker to build than the one that is shipped.
pub(crate) fn build_release() -> Result<PathBuf> {
    build(&["--release"])
}

/// The binary as users have it: the one to measure.
pub(crate) fn build_dist() -> Result<PathBuf> {
    build(&["--profile", "dist"])
}

/// An example of one of our crates, as fast as it gets: for trials and measurements.
pub(crate) fn build_example(package: &str, name: &str) -> Result<PathBuf> {
    build_example_for(package, name, false)
}

/// The same for a run: where nothing is measured, the one that is quick to build.
pub(crate) fn build_example_for(package: &str, name: &str, smoke: bool) -> Result<PathBuf> {
    let words = ["-p", package, "--example", name];
    build_target(&[&words[..], if smoke { &[] } else { &["--profile", "dist"] }].concat())
}

/// What takes something away from a system before it becomes another program.
pub(crate) fn build_hobbled() -> Result<PathBuf> {
    build_target(&["-p", "toolcrib-exec", "--example", "hobbled"])
}

/// What tries the fuzz targets. As tests have it: with every check, and nothing more to build.
pub(crate) fn build_fuzzer() -> Result<PathBuf> {
    build_target(&["-p", "toolcrib-fuzz"])
}

fn build(words: &[&str]) -> Result<PathBuf> {
    build_target(&[&["-p", "toolcrib-cli", "--bin", "toolcrib"], words].concat())
}

/// Asks cargo for the path, since a target directory or a build target may be configured.
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
