//! `cargo xtask notebooks`: checks the results of NotebookEdit with Jupyter's Python library, by
//! crates/devtools/oracles/notebooks.py.

use toolcrib_devtools::error::Result;
use toolcrib_devtools::python_oracle;

/// Fails at the first edit with a wrong result.
pub(crate) fn check() -> Result<()> {
    python_oracle::judge("notebooks.py")
}
