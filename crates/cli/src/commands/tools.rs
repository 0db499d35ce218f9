//! `toolcrib tools`: lists the tools.

use std::io::{self, Write};
use std::process::ExitCode;

use toolcrib::{Dialect, Runtime};

use crate::args::FormatArg;
use crate::output;

pub(crate) fn tools(
    runtime: &Runtime,
    format: Option<FormatArg>,
    dialect: Dialect,
) -> Result<ExitCode, String> {
    let text = match format {
        Some(format) => runtime.catalogue(format.into(), dialect),
        None => overview(runtime, dialect),
    };
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    output::printed(write!(io::stdout(), "{text}{newline}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Each tool with its first sentence.
fn overview(runtime: &Runtime, dialect: Dialect) -> String {
    let mut text = String::new();
    for (name, description) in runtime.tool_summaries(dialect) {
        let sentence = description.split_inclusive(". ").next().unwrap_or_default();
        let sentence = sentence.lines().next().unwrap_or_default().trim_end();
        text += &format!("{name:<12} {sentence}\n");
    }
    text
}
