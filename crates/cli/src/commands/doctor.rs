//! `toolcrib doctor`: what is in force on this machine, and what would stop a server.

use std::process::ExitCode;

use super::install;
use crate::args::Common;
use crate::config::{self, Config};
use crate::print;

pub(crate) fn doctor(common: &Common) -> Result<ExitCode, String> {
    let mut problems = 0;
    let mut tell = |what: &str, found: Result<String, String>| {
        problems += u32::from(found.is_err());
        print::finding(what, &found)
    };
    let version = env!("CARGO_PKG_VERSION");
    let program = std::env::current_exe().map(|path| format!("{version} at {}", path.display()));
    let written = tell("program", program.map_err(|error| error.to_string()))
        .and_then(|()| tell("configuration", configuration(common)))
        .and_then(|()| tell("profile", profile(common)))
        .and_then(|()| tell("journal", journal(common)))
        .and_then(|()| tell("workspace", super::runtime(common).map(|_| roots(common))))
        .and_then(|()| tell("clients", clients()));
    written.map_err(|error| error.to_string())?;
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn configuration(common: &Common) -> Result<String, String> {
    Config::read(common.config.as_deref())?;
    let file = common.config.clone();
    let file = file.or_else(|| Some(config::directory()?.join("config.toml")));
    Ok(match file {
        Some(file) if file.exists() => file.display().to_string(),
        Some(file) => format!("none; it would be {}", file.display()),
        None => "none, and there is no home for one".to_owned(),
    })
}

fn profile(common: &Common) -> Result<String, String> {
    Ok(Config::read(common.config.as_deref())?.profile(common)?.to_string())
}

fn journal(common: &Common) -> Result<String, String> {
    let state = common.state.clone().or_else(config::state_directory);
    let state = state.ok_or("there is no place for it; name one with --state")?;
    Ok(state.display().to_string())
}

fn roots(common: &Common) -> String {
    let shown = |root: &crate::args::RootArg| {
        format!("{}{}", root.directory.display(), if root.read_only { " (read only)" } else { "" })
    };
    common.roots.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn clients() -> Result<String, String> {
    let installed = install::installed()?;
    if installed.is_empty() {
        return Ok("none yet; `toolcrib install CLIENT` adds one".to_owned());
    }
    let shown = installed.iter().map(|(title, file)| format!("{title} ({})", file.display()));
    Ok(shown.collect::<Vec<_>>().join(", "))
}
