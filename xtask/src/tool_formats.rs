//! `cargo xtask formats`: checks the output of `toolcrib tools --format …` with the Python libraries of the
//! APIs, by crates/devtools/oracles/tool_formats.py.

use toolcrib_devtools::error::Result;
use toolcrib_devtools::python_oracle;

/// Fails at the first format that its library rejects.
pub(crate) fn check() -> Result<()> {
    python_oracle::judge("tool_formats.py")
}
