//! `cargo xtask notebooks`: checks the results of NotebookEdit with Jupyter's Python library, by
//! xtask/oracles/notebooks.py.

use crate::error::{Result, no_arguments};
use crate::oracle;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_arguments("notebooks", arguments)?;
    check()
}

/// Fails at the first edit with a wrong result.
pub(crate) fn check() -> Result<()> {
    oracle::judge("notebooks.py")
}
