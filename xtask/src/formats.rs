//! `cargo xtask formats`: checks the output of `toolcrib tools --format …` with the Python libraries of the
//! APIs, by xtask/oracles/tool_formats.py.

use crate::error::{Result, no_arguments};
use crate::oracle;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_arguments("formats", arguments)?;
    check()
}

/// Fails at the first format that its library rejects.
pub(crate) fn check() -> Result<()> {
    oracle::judge("tool_formats.py")
}
