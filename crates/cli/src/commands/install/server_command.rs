//! The command line with which a client starts the server.

use std::path::Path;

use clap::Parser as _;
use clap::error::ErrorKind;
use toolcrib::check_tool_names;

use super::clients::ServerCommand;
use super::temporary_program;
use crate::args::{Args, Client, Common, RootArg};
use crate::{output, wide_roots};

/// This program, or the package runner that started it, with the flags given to `install`. Paths are made absolute,
/// because the client starts the server in another directory.
pub(super) fn start(
    client: Client,
    common: &Common,
    flags: &[String],
) -> Result<ServerCommand, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    if temporary_program::is_build_output(&program) {
        output::warning(&format!(
            "{} is in a build directory: the next build replaces it. Install Toolcrib first, and run `toolcrib install` \
             again.",
            program.display()
        ));
    }
    let program = program.to_str().ok_or("this program's path is not UTF-8")?.to_owned();
    let (program, mut arguments) = match temporary_program::runner(Path::new(&program)) {
        Some([runner, words @ ..]) => {
            ((*runner).to_owned(), words.iter().map(|&word| word.to_owned()).collect())
        }
        _ => (program, Vec::new()),
    };
    arguments.push("serve".to_owned());
    let is_root = |flag: &String| flag == "--root" || flag.starts_with("--root=");
    let names_roots = !common.named_roots().is_empty() || flags.iter().any(is_root);
    if let Some(project) = client.project().filter(|_| !names_roots) {
        arguments.extend(["--root".to_owned(), project.to_owned()]);
    }
    arguments.extend(options(common, absolute)?);
    arguments.extend(absolute_flags(flags)?);
    let serve = arguments.iter().position(|word| word == "serve").unwrap_or_default();
    check(&arguments[serve..])?;
    Ok(ServerCommand { program, arguments })
}

/// Fails if the options start no server. Warns as the server would, whose warnings only the client sees.
fn check(words: &[String]) -> Result<(), String> {
    let words = std::iter::once(super::NAME).chain(words.iter().map(String::as_str));
    let parsed = Args::try_parse_from(words).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            "`toolcrib serve` starts no server with these flags: leave out --help and --version"
                .to_owned()
        }
        _ => {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            format!("`toolcrib serve` does not accept these flags: {}", text.trim_end())
        }
    })?;
    let common = parsed.common;
    for (flag, names) in [("--tools", &common.tools), ("--no-tools", &common.no_tools)] {
        let names = names.as_deref().unwrap_or_default();
        check_tool_names(flag, names).map_err(|error| error.to_string())?;
    }
    wide_roots::warnings(common.named_roots()).iter().for_each(|text| output::warning(text));
    Ok(())
}

/// Options whose value is a path of this machine, which means something else where the client starts the server. That of
/// `--store` may be a URL instead.
const PATH_OPTIONS: [&str; 5] = ["--root", "--config", "--rules", "--state", "--store"];

/// Flags for the server with absolute paths.
pub(super) fn absolute_flags(flags: &[String]) -> Result<Vec<String>, String> {
    // The option whose value is the next flag.
    let mut option = None;
    let flag = |flag: &String| match (option.take(), flag.split_once('=')) {
        (Some(option), _) => absolute_value(option, flag),
        (None, Some((name, value))) if PATH_OPTIONS.contains(&name) => {
            Ok(format!("{name}={}", absolute_value(name, value)?))
        }
        (None, _) => {
            option = PATH_OPTIONS.into_iter().find(|option| option == flag);
            Ok(flag.clone())
        }
    };
    flags.iter().map(flag).collect()
}

/// The value of a path option. A store may have a URL.
fn absolute_value(option: &str, value: &str) -> Result<String, String> {
    if option == "--store" && value.contains("://") {
        return Ok(value.to_owned());
    }
    absolute(Path::new(value))
}

/// The options that `install` passes on to the server.
pub(super) fn options(
    common: &Common,
    path: fn(&Path) -> Result<String, String>,
) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
    for RootArg { directory, read_only } in common.named_roots() {
        add("--root", path(directory)? + if *read_only { ":ro" } else { "" });
    }
    if let Some(profile) = common.profile {
        add("--profile", profile.to_string());
    }
    if let Some(outside) = common.outside {
        add("--outside", outside.to_string());
    }
    if let Some(network) = common.network_access {
        add("--network-access", network.name().to_owned());
    }
    if let Some(outer) = common.outer {
        add("--outer", outer.name().to_owned());
    }
    for (flag, names) in [("--tools", &common.tools), ("--no-tools", &common.no_tools)] {
        if let Some(names) = names {
            add(flag, names.join(","));
        }
    }
    let files =
        [("--config", &common.config), ("--rules", &common.rules), ("--state", &common.state)];
    for (flag, file) in files {
        if let Some(file) = file {
            add(flag, path(file)?);
        }
    }
    Ok(words)
}

/// An absolute path. A path that begins with a client's variable, such as `${workspaceFolder}`, is unchanged.
pub(super) fn absolute(path: &Path) -> Result<String, String> {
    let at = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    if path.as_os_str().is_empty() {
        return Err("a path among the flags is empty".to_owned());
    }
    let whole = if path.as_os_str().as_encoded_bytes().starts_with(b"${") {
        path.to_owned()
    } else {
        std::path::absolute(path).map_err(|error| at(&error))?
    };
    whole.to_str().map(str::to_owned).ok_or_else(|| at(&"the path is not UTF-8"))
}
