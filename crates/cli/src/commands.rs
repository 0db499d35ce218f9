//! One file a command.

mod call;
mod completions;
mod run;
mod tools;

use std::process::ExitCode;

use toolcrib::Runtime;

use crate::args::{Args, Command, Common};
use crate::config::Config;

/// Does what the command line says. An error is one of usage: nothing was done.
pub(crate) fn run(args: Args) -> Result<ExitCode, String> {
    let common = &args.common;
    match &args.command {
        Command::Call { tool, args } => call::call(common, &runtime(common)?, tool, args),
        Command::Run => run::run(common, &runtime(common)?),
        Command::Tools { format } => tools::tools(&runtime(common)?, *format),
        Command::Completions { shell } => completions::completions(*shell),
    }
}

fn runtime(common: &Common) -> Result<Runtime, String> {
    let config = Config::read(common.config.as_deref())?;
    let builder = Runtime::builder()
        .profile(config.profile(common)?)
        .limits(config.limits())
        .absolute_paths(config.absolute_paths);
    let builder = common.roots.iter().fold(builder, |builder, root| match root.read_only {
        true => builder.read_only_root(&root.directory),
        false => builder.root(&root.directory),
    });
    builder.build().map_err(|error| error.to_string())
}
