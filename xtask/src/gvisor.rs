//! `cargo xtask gvisor`: checks `outer = "gvisor"` in gVisor, by crates/devtools/oracles/gvisor.py.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, product, python, system_packages};

/// Fails at the first check that fails. It is skipped where gVisor's program cannot be installed or started.
pub(crate) fn check() -> Result<()> {
    let runsc = system_packages::RUNSC;
    if let Err(error) = runsc.obtain() {
        println!("skipped: runsc of gVisor cannot be installed: {error}");
        return Ok(());
    }
    let mut probe = Command::new(runsc.program);
    probe.args(["--network=none", "--ignore-cgroups", "--platform=ptrace", "do", "true"]);
    if process::probe(&mut probe).is_none() {
        println!("skipped: runsc of gVisor starts nothing here: it needs root and ptrace");
        return Ok(());
    }
    let binary = product::build_debug()?;
    let found = process::capture(Command::new("which").arg(runsc.program))?;
    let script = python::oracles().join("gvisor.py");
    process::run(Command::new("python3").arg(script).arg(binary).arg(found.trim()))
}
