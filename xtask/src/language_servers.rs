//! `cargo xtask servers`: edits with real language servers, by crates/devtools/oracles/language_servers.py. ruff, ty and
//! tsc are installed for it. The others are installed in the system if possible, or used as they are.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{node, process, product, python, system_packages};

/// Fails at the first wrong or missing error.
pub(crate) fn check() -> Result<()> {
    obtain_servers();
    let binary = product::build_debug()?;
    let python = python::with_libraries("language-servers.txt", "language-servers-venv")?;
    let modules = node::install("typescript-server.json")?.modules();
    let script = python::oracles().join("language_servers.py");
    process::run(Command::new(python).arg(script).arg(binary).arg(modules))
}

/// Installs the servers of the system that are missing. The script reports those that still are.
fn obtain_servers() {
    for package in [system_packages::CLANGD, system_packages::GO, system_packages::GOPLS] {
        if let Err(why) = package.obtain() {
            println!("   {why}");
        }
    }
    // rustup's rust-analyzer fails until its component is installed.
    if process::probe(Command::new("rust-analyzer").arg("--version")).is_none() {
        println!("rust-analyzer is not installed: trying rustup");
        process::probe(Command::new("rustup").args(["component", "add", "rust-analyzer"]));
    }
}
