//! `cargo xtask clients`: tests `toolcrib serve` with third-party MCP clients, including real coding agents,
//! behind HAProxy, and with the protocol's conformance suite. The scripts are in crates/devtools/oracles.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{
    inspector, node, process, product, python, python_oracle, system_packages,
};

const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";

pub(crate) fn run() -> Result<()> {
    check()?;
    let packages = node::install("agents.json")?;
    let script = python::oracles().join("agents.py");
    let binary = product::build_debug()?;
    process::run(Command::new("python3").arg(script).arg(binary).arg(packages.modules()))
}

/// The part for CI: all clients except the agents, which are large. Stops at the first failure.
pub(crate) fn check() -> Result<()> {
    python_oracle::judge("mcp_client.py")?;
    system_packages::HAPROXY.obtain()?;
    system_packages::POSTGRESQL.obtain()?;
    python_oracle::judge("haproxy.py")?;
    let binary = product::build_debug()?;
    let packages = node::install("judges.json")?;
    let script = python::oracles().join("conformance.mjs");
    let fixtures = product::build_debug_example("conformance")?;
    let judge = [&binary, &fixtures, &packages.file(SUITE)];
    process::run(packages.run(&script).args(judge))?;
    let top = tempfile::tempdir()?;
    let workspace = top.path().join("ws");
    std::fs::create_dir(&workspace)?;
    let mut server = Command::new(binary);
    server.arg("serve").arg("--root").arg(&workspace).arg("--state").arg(top.path().join("state"));
    inspector::inspect(&packages, &server, &workspace)
}
