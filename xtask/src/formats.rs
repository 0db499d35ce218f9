//! `cargo xtask formats`: what `toolcrib tools --format …` prints is what the APIs take, judged by
//! their own Python libraries. The judging is in xtask/oracles/tool_formats.py.

use crate::error::{Result, no_arguments};
use crate::oracle;

/// The task.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_arguments("formats", arguments)?;
    check()
}

/// Fails at the first format that its library does not take.
pub(crate) fn check() -> Result<()> {
    oracle::judge("tool_formats.py")
}
