//! `cargo xtask clients`: `toolcrib serve`, used by MCP clients that others wrote. What they do is in
//! xtask/oracles/mcp_client.py.

use crate::error::{Result, no_arguments};
use crate::oracle;

/// The task.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_arguments("clients", arguments)?;
    check()
}

/// Fails at the first thing that a client does not get.
pub(crate) fn check() -> Result<()> {
    oracle::judge("mcp_client.py")
}
