//! Installs third-party Python libraries to compare with, each list in its own virtual environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Result;
use crate::{cache, process, workspace};

/// The directory of the scripts and their requirement lists.
pub fn oracles() -> PathBuf {
    workspace::root().join("crates/devtools/oracles")
}

/// The interpreter of an environment with the libraries of a list in the oracles directory. The environment
/// is created once: the stamp, written last, records its list and Python version.
pub fn with_libraries(requirements: &str, environment: &str) -> Result<PathBuf> {
    let requirements = oracles().join(requirements);
    let environment = cache::directory()?.join(environment);
    let stamp = environment.join("made-from.txt");
    let version = process::capture(Command::new("python3").arg("--version"))?;
    let made_from = version + &fs::read_to_string(&requirements)?;
    let python = environment.join("bin").join("python");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == made_from) {
        return Ok(python);
    }
    println!("installing {} into {}", requirements.display(), environment.display());
    process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    process::run(&mut pip_install(&python, &requirements))?;
    fs::write(&stamp, made_from)?;
    Ok(python)
}

fn pip_install(python: &Path, requirements: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    command.arg(requirements);
    command
}
