//! Man pages and completion scripts, as the program prints them.

use std::fs;
use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::process;

use super::build::Program;

/// Generated files that packages have beside the program.
pub(super) struct ManAndCompletions {
    /// Names and texts of the man pages.
    pub(super) manuals: Vec<(String, String)>,
    /// Names, places below `/usr/share` and texts of the completion scripts.
    pub(super) completions: Vec<(&'static str, &'static str, String)>,
}

/// Shells, the usual name of a script for each, and its place below `/usr/share`.
const SHELLS: &[(&str, &str, &str)] = &[
    ("bash", "toolcrib.bash", "bash-completion/completions/toolcrib"),
    ("fish", "toolcrib.fish", "fish/vendor_completions.d/toolcrib.fish"),
    ("zsh", "_toolcrib", "zsh/vendor-completions/_toolcrib"),
];

/// Asks the first program that this machine can run.
pub(super) fn generate(programs: &[Program]) -> Result<ManAndCompletions> {
    let program = programs.iter().find(|program| program.target.runs_here());
    let program = &program.ok_or("none of the programs runs on this machine")?.path;
    let directory = tempfile::tempdir()?;
    process::run(Command::new(program).args(["reference", "--man"]).arg(directory.path()))?;
    let mut manuals = Vec::new();
    for file in fs::read_dir(directory.path())? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        manuals.push((name, fs::read_to_string(file.path())?));
    }
    manuals.sort();
    let mut completions = Vec::new();
    for &(shell, name, place) in SHELLS {
        let script = process::capture(Command::new(program).args(["completions", shell]))?;
        completions.push((name, place, script));
    }
    Ok(ManAndCompletions { manuals, completions })
}
