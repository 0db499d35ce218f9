//! `cargo xtask notebooks`: what NotebookEdit makes of notebooks is what Jupyter takes, judged by its own
//! Python library. The judging is in xtask/oracles/notebooks.py.

use crate::error::{Result, no_arguments};
use crate::oracle;

/// The task.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_arguments("notebooks", arguments)?;
    check()
}

/// Fails at the first edit after which a notebook is not what it should be.
pub(crate) fn check() -> Result<()> {
    oracle::judge("notebooks.py")
}
