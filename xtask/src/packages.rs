//! `cargo xtask packages`: tests the Python and npm packages with a debug build of the program.

use std::path::Path;
use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{cache, process, product, python, workspace};

/// The frameworks of a short run.
const SMOKE_FRAMEWORKS: [&str; 1] = ["pydantic_ai"];

/// Tests both packages, and the adapter with a conformance suite of its own.
pub(crate) fn check() -> Result<()> {
    let program = product::build_debug()?;
    test_python(&program)?;
    test_npm(&program)?;
    python_frameworks(&program, &SMOKE_FRAMEWORKS.map(str::to_owned))
}

/// Tests the adapters for Python frameworks. Without names, all of them.
pub(crate) fn frameworks(names: &[String]) -> Result<()> {
    let program = product::build_debug()?;
    let (npm, python): (Vec<String>, Vec<String>) =
        names.iter().cloned().partition(|name| name.starts_with("npm:"));
    if names.is_empty() || !python.is_empty() {
        python_frameworks(&program, &python)?;
    }
    if names.is_empty() || !npm.is_empty() {
        install_npm()?;
        let mut run = npm_command(&["run", "frameworks", "--"]);
        run.args(npm.iter().map(|name| name.trim_start_matches("npm:")));
        process::run(run.env("TOOLCRIB_BINARY", &program))?;
    }
    Ok(())
}

fn python_frameworks(program: &Path, names: &[String]) -> Result<()> {
    let script = workspace::root().join("packaging/python/frameworks/run.py");
    let mut run = Command::new("python3");
    run.arg(script).arg("--cache").arg(cache::directory()?.join("frameworks"));
    process::run(run.arg("--binary").arg(program).args(names))
}

fn test_python(program: &Path) -> Result<()> {
    let directory = workspace::root().join("packaging/python");
    let checkers = python::with_libraries("type_checkers.txt", "type-checkers")?;
    process::run(Command::new(checkers).args(["-m", "mypy"]).current_dir(&directory))?;
    let mut tests = Command::new("python3");
    tests.args(["-m", "unittest", "discover", "-s", "tests"]).current_dir(&directory);
    process::run(tests.env("TOOLCRIB_BINARY", program))?;
    let mut example = Command::new("python3");
    example.arg("examples/agent.py").current_dir(&directory).env("PYTHONPATH", &directory);
    process::run(example.env("TOOLCRIB_BINARY", program))
}

fn test_npm(program: &Path) -> Result<()> {
    install_npm()?;
    process::run(npm_command(&["test"]).env("TOOLCRIB_BINARY", program))
}

fn install_npm() -> Result<()> {
    process::run(&mut npm_command(&["install", "--no-audit", "--no-fund", "--no-package-lock"]))
}

fn npm_command(arguments: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.args(arguments).current_dir(workspace::root().join("packaging/npm"));
    npm
}
