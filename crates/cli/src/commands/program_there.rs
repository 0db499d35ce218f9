//! The command line of the program on another machine.

use std::path::Path;
use std::process::ExitCode;

use crate::args::{Common, HostArgs, RemoteHost, RootArg, remote_path};
use crate::ssh::{self, PROGRAM_THERE, quote, quote_program};

/// The exit code of a shell for a program that it does not find.
const NOT_FOUND: i32 = 127;

/// A line for the login shell there that runs a command of the program with the options of every command. Paths in
/// them are paths there.
pub(super) fn line(
    args: &HostArgs,
    host: &RemoteHost,
    common: &Common,
    command: &str,
    flags: &[String],
) -> Result<String, String> {
    let program = args.host_program.as_deref().unwrap_or(PROGRAM_THERE);
    let mut words = vec![command.to_owned()];
    let mut add = |flag: &str, value: &str| words.push(format!("{flag}={value}"));
    if let Some(directory) = &host.directory {
        add("--root", directory);
    }
    for RootArg { directory, read_only } in common.named_roots() {
        add("--root", &(path(directory)? + if *read_only { ":ro" } else { "" }));
    }
    if let Some(profile) = common.profile {
        add("--profile", &profile.to_string());
    }
    if let Some(outside) = common.outside {
        add("--outside", &outside.to_string());
    }
    if let Some(network) = common.network_access {
        add("--network-access", network.name());
    }
    if let Some(outer) = common.outer {
        add("--outer", outer.name());
    }
    for (flag, names) in [("--tools", &common.tools), ("--no-tools", &common.no_tools)] {
        if let Some(names) = names {
            add(flag, &names.join(","));
        }
    }
    let files =
        [("--config", &common.config), ("--rules", &common.rules), ("--state", &common.state)];
    for (flag, file) in files {
        if let Some(file) = file {
            add(flag, &path(file)?);
        }
    }
    words.extend_from_slice(flags);
    if words.iter().any(|word| word.chars().any(char::is_control)) {
        return Err("an argument has a control character".to_owned());
    }
    let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
    Ok(format!("exec {} {}", quote_program(program), words.join(" ")))
}

/// The next step if the program is not there.
pub(super) fn push_hint(host: &RemoteHost) -> String {
    format!("Copy Toolcrib to it first: toolcrib push {}", host.destination)
}

/// Runs a line there, with our streams.
pub(super) fn run(host: &RemoteHost, line: &str) -> Result<ExitCode, String> {
    let mut command = ssh::command(host, line);
    let program = command.get_program().display().to_string();
    let status = command.status().map_err(|error| format!("{program} does not start: {error}"))?;
    match status.code() {
        Some(NOT_FOUND) => Err(push_hint(host)),
        Some(code) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
        None => Ok(ExitCode::FAILURE),
    }
}

fn path(path: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("{}: the path is not UTF-8", path.display()))?;
    remote_path(text).map_err(|problem| format!("{text}: {problem}"))
}
