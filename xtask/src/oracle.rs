//! Judges from outside: libraries of others, in Python, that say whether what we print and write is right.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Result;
use crate::{process, product, workspace};

/// Has a script of xtask/oracles judge the product; it is given the path of the binary.
pub(crate) fn judge(script: &str) -> Result<()> {
    let binary = product::build_debug()?;
    let python = python_with_libraries()?;
    process::run(Command::new(python).arg(oracles().join(script)).arg(binary))
}

fn oracles() -> PathBuf {
    workspace::root().join("xtask").join("oracles")
}

/// The interpreter of a virtual environment that has what requirements.txt names. Made once: the
/// stamp, written last, says of which list and which Python it was made.
fn python_with_libraries() -> Result<PathBuf> {
    let requirements = oracles().join("requirements.txt");
    let environment = workspace::cache_directory()?.join("oracles-venv");
    let stamp = environment.join("made-from.txt");
    let version = process::capture(Command::new("python3").arg("--version"))?;
    let made_from = version + &fs::read_to_string(&requirements)?;
    let python = environment.join("bin").join("python");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == made_from) {
        return Ok(python);
    }
    println!("installing the libraries that judge into {}", environment.display());
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
