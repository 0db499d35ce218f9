//! `cargo xtask definitions`: compares definitions with those of universal-ctags and language servers on real projects,
//! and counts the calls that questions about code take, by crates/devtools/oracles/definitions.py and localisation.py.
//! ty and the TypeScript server are installed; rust-analyzer and gopls are used if they are on the `PATH`.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{cache, node, process, product, python, system_packages};

/// Writes the report into the cache.
pub(crate) fn run() -> Result<()> {
    if let Err(why) = system_packages::UNIVERSAL_CTAGS.obtain() {
        println!("   {why}");
    }
    compare(&[])?;
    let mut questions = Command::new("python3");
    questions.arg(python::oracles().join("localisation.py"));
    process::run(
        questions.arg(product::build_debug()?).arg(cache::directory()?.join("definitions")),
    )
}

/// Compares two projects with language servers of pinned versions. Fails at a difference that nobody has judged.
pub(crate) fn smoke() -> Result<()> {
    compare(&["--smoke"])
}

fn compare(options: &[&str]) -> Result<()> {
    let program = product::build_debug_example("definitions")?;
    let python = python::with_libraries("language-servers.txt", "language-servers-venv")?;
    let typescript = node::install("typescript-server.json")?.file(".bin/tsc");
    let directory = cache::directory()?.join("definitions");
    std::fs::create_dir_all(&directory)?;
    let mut command = Command::new(python);
    command.arg(python::oracles().join("definitions.py"));
    process::run(command.arg(program).arg(directory).arg(typescript).args(options))
}
