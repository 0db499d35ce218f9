//! `toolcrib completions`: prints a shell completion script.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::output;

pub(crate) fn completions(shell: Shell) -> Result<ExitCode, String> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "toolcrib", &mut script);
    output::printed(io::stdout().write_all(&script))?;
    Ok(ExitCode::SUCCESS)
}
