//! `cargo xtask identity`: checks identities over HTTP with an issuer of access tokens and the client of the protocol's SDK,
//! by crates/devtools/oracles/identity.mjs.

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{node, process, product, python};

/// Fails at the first check that fails.
pub(crate) fn check() -> Result<()> {
    let binary = product::build_debug()?;
    let packages = node::install("issuer.json")?;
    let script = python::oracles().join("identity.mjs");
    process::run(packages.run(&script).arg(binary).arg(packages.modules()))
}
