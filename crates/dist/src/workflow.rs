//! Checks the syntax of the release workflow in `.github/workflows`.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, python, workspace};

/// Judged by the schema of workflow files.
pub(super) fn check() -> Result<()> {
    let python = python::with_libraries("installer-requirements.txt", "installer-venv")?;
    let workflow = workspace::root().join(".github/workflows/release.yml");
    let mut judge = Command::new(python.with_file_name("check-jsonschema"));
    judge.args(["--quiet", "--builtin-schema", "vendor.github-workflows"]).arg(workflow);
    process::run(&mut judge)
}
