//! Checks the syntax and the compiler of the release workflow in `.github/workflows`.

use std::fs;
use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{process, python, workspace};

use super::build;

/// Judged by the schema of workflow files. The compiler must be the one that a release is built by.
pub(super) fn check() -> Result<()> {
    let workflow = workspace::root().join(".github/workflows/release.yml");
    if let Some(problem) =
        compiler_problem(&fs::read_to_string(&workflow)?, &build::rust_version()?)
    {
        return Err(problem.into());
    }
    let python = python::with_libraries("installer-requirements.txt", "installer-venv")?;
    let mut judge = Command::new(python.with_file_name("check-jsonschema"));
    judge.args(["--quiet", "--builtin-schema", "vendor.github-workflows"]).arg(workflow);
    process::run(&mut judge)
}

fn compiler_problem(workflow: &str, pinned: &str) -> Option<String> {
    let mut lines = workflow.lines().map(str::trim);
    let version = lines.find_map(|line| line.strip_prefix("RUSTUP_TOOLCHAIN: ")).unwrap_or("any");
    (!build::is_pinned(version, pinned)).then(|| {
        format!("the release workflow uses rustc {version}, and a release is built by {pinned}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_of_the_workflow_is_the_pinned_one() {
        let workflow = "env:\n  RUSTUP_TOOLCHAIN: 1.95.0\n";
        assert_eq!(compiler_problem(workflow, "1.95"), None);
        assert!(compiler_problem(workflow, "1.96").is_some());
        assert!(compiler_problem("jobs:\n", "1.95").is_some());
    }
}
