//! Builds programs and finds their paths.
//!
//! Debug builds select the whole workspace and an example, so that cargo enables the same features as for the tests.
//! They then share the tests' artefacts; `cargo run -p` would compile many crates again.

use std::path::PathBuf;

use serde_json::Value;

use crate::error::Result;
use crate::process;

/// Builds `toolcrib` in the debug profile, which is quick to build.
pub fn build_debug() -> Result<PathBuf> {
    build_debug_program("toolcrib")
}

/// Builds any program of the workspace in the debug profile.
pub fn build_debug_program(name: &str) -> Result<PathBuf> {
    build_target(name, &["--workspace", "--bin", name, "--example", "helper"])
}

/// Builds any example of the workspace in the debug profile.
pub fn build_debug_example(name: &str) -> Result<PathBuf> {
    build_target(name, &["--workspace", "--example", name])
}

/// The binary for a first look: quickest to build from nothing.
pub fn build_demo() -> Result<PathBuf> {
    build_toolcrib("demo")
}

/// The binary for stress tests: fast, and quicker to build than the one that is shipped.
pub fn build_release() -> Result<PathBuf> {
    build_toolcrib("release")
}

/// The binary as users have it: the one to measure.
pub fn build_dist() -> Result<PathBuf> {
    build_toolcrib("dist")
}

/// Builds an example of one of our crates as it is shipped.
pub fn build_dist_example(package: &str, name: &str) -> Result<PathBuf> {
    build_target(name, &["-p", package, "--example", name, "--profile", "dist"])
}

fn build_toolcrib(profile: &str) -> Result<PathBuf> {
    build_target("toolcrib", &["-p", "toolcrib-cli", "--bin", "toolcrib", "--profile", profile])
}

/// Builds targets and returns the path of the named one as reported by cargo, since the target directory may be
/// configured.
fn build_target(name: &str, words: &[&str]) -> Result<PathBuf> {
    let mut command = process::cargo(&["build", "--locked", "--quiet"]);
    command.arg("--message-format=json-render-diagnostics").args(words);
    let messages = process::capture(&mut command)?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message.pointer("/target/name").is_some_and(|target| target == name))
        .find_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
        .ok_or_else(|| format!("`{}` built no {name}", process::describe(&command)).into())
}
