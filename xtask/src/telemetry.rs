//! `cargo xtask telemetry`: checks the telemetry of the server with OpenTelemetry's own protocol definitions, by
//! crates/devtools/oracles/telemetry.py.

use toolcrib_devtools::error::Result;
use toolcrib_devtools::python_oracle;

/// Fails at the first wrong span or metric.
pub(crate) fn check() -> Result<()> {
    python_oracle::judge("telemetry.py")
}
