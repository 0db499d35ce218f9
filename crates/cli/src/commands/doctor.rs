//! `toolcrib doctor`: shows the effective configuration, finds problems that would stop a server, and tests the
//! sandbox by escape attempts.

mod level_advice;
mod sandbox;
mod setup_weaknesses;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value};
use toolcrib::{Checkup, Network, Runtime, check_tool_names, login_files};

use super::{backup, index, install, program_there, server_private_paths};
use crate::args::{Common, HostArgs};
use crate::config::{self, ChangedSetting, Config};
use crate::{foreign_roots, network_presets, output, rules, wide_roots};
use toolcrib::user_machine;

type Finding = (&'static str, Result<String, String>);
type Clients = Result<Vec<Result<String, String>>, String>;

/// Fails if a server would not start, if commands would be refused, if other users can write the state directory,
/// or if an escape attempt succeeded at any level.
pub(crate) fn doctor(common: &Common, args: &HostArgs, verbose: bool) -> Result<ExitCode, String> {
    if let Some(host) = &args.host {
        let flags = [(common.json, "--json"), (verbose, "--verbose")];
        let flags = flags.into_iter().filter(|(is_given, _)| *is_given);
        let flags: Vec<String> = flags.map(|(_, flag)| flag.to_owned()).collect();
        let line = program_there::line(args, host, common, "doctor", &flags)?;
        return program_there::run(host, &line);
    }
    let runtime = super::runtime(common);
    let mut findings: Vec<Finding> = vec![
        ("program", program()),
        ("configuration", configuration(common)),
        ("profile", profile(common)),
        ("outside", outside(common)),
        ("rules", rules(common)),
        ("network", network(common)),
    ];
    // Most users select no tools, so there is a row only for a problem.
    findings.extend(tools(common).err().map(|problem| ("tools", Err(problem))));
    findings.extend([
        (
            "journal",
            runtime.as_ref().map_err(String::clone).and_then(|runtime| journal(common, runtime)),
        ),
        ("workspace", runtime.as_ref().map(|_| roots(common)).map_err(String::clone)),
        ("index", runtime.as_ref().map_err(String::clone).and_then(indexes)),
        ("check", runtime.as_ref().map(language_servers).map_err(String::clone)),
        ("login shell", Ok(login_shell())),
    ]);
    findings.extend(backup::finding(common).map(|found| ("backup", found)));
    // Most users have no server with files elsewhere.
    findings.extend(hidden_paths().map(|found| ("hidden", Ok(found))));
    // A problem with the configuration has its own row.
    let settings = Config::changed_settings(common).unwrap_or_default();
    let repeated = leave_out_repeated(&mut findings);
    let clients = install::installed();
    let mut checkup = runtime
        .ok()
        .map(|runtime| runtime.check_up().map_err(|error| error.text().to_string()))
        .transpose()?;
    if let Some(checkup) = &mut checkup {
        checkup.missing.extend(setup_weaknesses::not_enforced(common));
    }
    let problems = findings.iter().filter(|(_, found)| found.is_err()).count()
        + clients.as_ref().map_or(1, |all| all.iter().filter(|client| client.is_err()).count())
        + usize::from(checkup.as_ref().is_some_and(|checkup| !sandbox::is_ok(checkup)))
        - repeated;
    let printed = if output::for_people(common) {
        print_table((&findings, &settings), &clients, checkup.as_ref(), verbose)
            .and_then(|()| writeln!(io::stdout(), "\n{}", summary(problems, checkup.as_ref())))
    } else {
        writeln!(io::stdout(), "{}", object((&findings, &settings), &clients, checkup.as_ref()))
    };
    output::printed(printed)?;
    let well = problems == 0;
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Replaces a problem that an earlier finding has by a reference to it, and returns how many were replaced: an invalid
/// configuration concerns most findings.
fn leave_out_repeated(findings: &mut [Finding]) -> usize {
    let mut repeated = 0;
    for at in 1..findings.len() {
        let (before, from) = findings.split_at_mut(at);
        let (_, found) = &mut from[0];
        let is_same = |(_, earlier): &&Finding| earlier.is_err() && *earlier == *found;
        if let Some((what, _)) = before.iter().find(is_same) {
            *found = Err(format!("not known; see {what}"));
            repeated += 1;
        }
    }
    repeated
}

/// The last line: the number of problems.
fn summary(problems: usize, checkup: Option<&Checkup>) -> String {
    let not_enforced = checkup.map_or(0, |checkup| checkup.missing.len());
    match (problems, not_enforced) {
        (0, 0) => "No problems.".to_owned(),
        (0, 1) => "No problems. One protection is not enforced, see above.".to_owned(),
        (0, missing) => format!("No problems. {missing} protections are not enforced, see above."),
        (1, _) => "1 problem, see above.".to_owned(),
        (problems, _) => format!("{problems} problems, see above."),
    }
}

fn print_table(
    (findings, settings): (&[Finding], &[ChangedSetting]),
    clients: &Clients,
    checkup: Option<&Checkup>,
    verbose: bool,
) -> io::Result<()> {
    findings.iter().try_for_each(|(what, found)| output::finding(what, found))?;
    for (row, setting) in settings.iter().enumerate() {
        let what = if row == 0 { "settings" } else { "" };
        output::finding(what, &Ok(config::line(setting)))?;
    }
    match clients.as_deref() {
        Ok([]) => output::finding(
            "clients",
            &Ok("none yet; `toolcrib install CLIENT` adds one".to_owned()),
        )?,
        Ok(installed) => {
            for (row, client) in installed.iter().enumerate() {
                output::finding(if row == 0 { "clients" } else { "" }, client)?;
            }
        }
        Err(problem) => output::finding("clients", &Err(problem.clone()))?,
    }
    match checkup {
        Some(checkup) => sandbox::print_table(checkup, verbose),
        None => {
            writeln!(io::stdout(), "\nThe sandbox was not tested because of the problem above.")
        }
    }
}

fn object(
    (findings, settings): (&[Finding], &[ChangedSetting]),
    clients: &Clients,
    checkup: Option<&Checkup>,
) -> Value {
    let told = |found: &Result<String, String>| match found {
        Ok(is) => Value::from(is.as_str()),
        Err(problem) => serde_json::json!({"problem": problem}),
    };
    let row = |(what, found): &Finding| ((*what).to_owned(), told(found));
    let mut object: Map<String, Value> = findings.iter().map(row).collect();
    let clients = match clients {
        Ok(installed) => installed.iter().map(told).collect(),
        Err(problem) => serde_json::json!({"problem": problem}),
    };
    object.insert("settings".to_owned(), settings.iter().cloned().collect::<Map<_, _>>().into());
    object.insert("clients".to_owned(), clients);
    object.insert("sandbox".to_owned(), checkup.map_or(Value::Null, sandbox::object));
    object.into()
}

fn program() -> Result<String, String> {
    let path = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(format!("{} at {}", env!("CARGO_PKG_VERSION"), path.display()))
}

fn configuration(common: &Common) -> Result<String, String> {
    Config::of(common)?;
    let file = common.config.clone();
    let file = file.or_else(|| Some(user_machine::configuration_directory()?.join("config.toml")));
    Ok(match file {
        Some(file) if file.exists() => file.display().to_string(),
        Some(file) => format!("none; the default path is {}", file.display()),
        None => "none; the home directory is unknown".to_owned(),
    })
}

fn profile(common: &Common) -> Result<String, String> {
    Ok(Config::of(common)?.profile(common)?.to_string())
}

/// The access of file tools outside the roots.
fn outside(common: &Common) -> Result<String, String> {
    let config = Config::of(common)?;
    Ok(config.outside(common, config.profile(common)?)?.to_string())
}

/// Fails as a server does if a list of tools names an unknown one. An invalid configuration has its own row.
fn tools(common: &Common) -> Result<(), String> {
    let Ok(config) = Config::of(common) else { return Ok(()) };
    let only = common.tools.as_ref().or(config.tools.as_ref());
    let excluded = config.no_tools.iter().chain(common.no_tools.iter().flatten());
    let excluded: Vec<String> = excluded.cloned().collect();
    only.map_or(Ok(()), |only| check_tool_names("tools", only))
        .and_then(|()| check_tool_names("no_tools", &excluded))
        .map_err(|error| error.to_string())
}

/// The path and size of the journal. A problem if decisions cannot be logged there.
fn journal(common: &Common, runtime: &Runtime) -> Result<String, String> {
    let state = common.state.clone().or_else(user_machine::state_directory);
    let state = state.ok_or("the state directory is unknown; set it with --state")?;
    if let Some(problem) = setup_weaknesses::state_problem(&state) {
        return Err(problem);
    }
    runtime
        .check_decisions()
        .map_err(|error| format!("decisions on calls are not being logged: {}", error.text()))?;
    let (bytes, more) = size(&state);
    let about = if more { "more than " } else { "" };
    Ok(format!("{}, {about}{:.1} MB", state.display(), bytes as f64 / 1e6))
}

/// The size of a directory, and whether it has more files than were counted.
fn size(directory: &Path) -> (u64, bool) {
    let (mut bytes, mut files, mut open) = (0, 0, vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            files += 1;
            if files > MAX_COUNTED {
                return (bytes, true);
            }
            match entry.metadata() {
                Ok(about) if about.is_dir() => open.push(entry.path()),
                Ok(about) => bytes += about.len(),
                Err(_) => {}
            }
        }
    }
    (bytes, false)
}

/// More files than a journal of the usual size has.
const MAX_COUNTED: usize = 200_000;

fn rules(common: &Common) -> Result<String, String> {
    let config = Config::of(common)?;
    let count = rules::read(common, &config)?.count();
    let files = rules::files(common, &config);
    let there: Vec<String> =
        files.iter().filter(|file| file.exists()).map(|file| file.display().to_string()).collect();
    Ok(match there.as_slice() {
        [] => "none".to_owned(),
        there => format!("{count} in {}", there.join(", ")),
    })
}

/// Network access of commands, and the hosts of the presets.
fn network(common: &Common) -> Result<String, String> {
    let config = Config::of(common)?;
    let hosts = network_presets::hosts(common, &config.network_presets)?;
    Ok(match config.sandbox()?.network {
        Network::None => "none: commands reach each other on loopback only".to_owned(),
        Network::All => "all: commands reach every host that you can reach".to_owned(),
        Network::List => {
            let presets = hosts.iter().map(|(name, hosts)| match hosts.as_slice() {
                [] => format!("; preset {name}: no host is configured for {name} on this machine"),
                hosts => format!("; preset {name}: {}", hosts.join(", ")),
            });
            let proxies = config.upstream_proxies()?;
            let proxy = if proxies.is_empty() {
                String::new()
            } else {
                format!("; through the proxy {proxies}")
            };
            format!("list: the hosts that rules allow{proxy}{}", presets.collect::<String>())
        }
    })
}

fn roots(common: &Common) -> String {
    let shown = |root: &crate::args::RootArg| {
        let directory = root.directory.canonicalize().unwrap_or_else(|_| root.directory.clone());
        format!("{}{}", directory.display(), if root.read_only { " (read only)" } else { "" })
    };
    let roots = common.roots();
    let text = roots.iter().map(shown).collect::<Vec<_>>().join(", ");
    let warnings = wide_roots::warnings(&roots).into_iter().chain(foreign_roots::warnings(&roots));
    warnings.fold(text, |text, warning| format!("{text}; WARNING: {warning}"))
}

fn indexes(runtime: &Runtime) -> Result<String, String> {
    let roots = runtime.indexes().map_err(|error| error.text().to_string())?;
    Ok(roots.iter().map(index::sentence).collect::<Vec<_>>().join("; "))
}

/// The paths outside the usual directories that servers have recorded as theirs.
fn hidden_paths() -> Option<String> {
    let (paths, records) = server_private_paths::recorded()?;
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    Some(format!(
        "{}: files of servers, which no tool can access; they are recorded in {}",
        paths.join(", "),
        records.display()
    ))
}

/// The language servers that check edited files.
fn language_servers(runtime: &Runtime) -> String {
    let servers = runtime.language_servers();
    if servers.is_empty() {
        return "off".to_owned();
    }
    let (found, missing): (Vec<_>, Vec<_>) =
        servers.into_iter().partition(|(_, program)| program.is_some());
    let found = found.iter().map(|(name, program)| {
        let program = program.as_deref().map_or(String::new(), |path| path.display().to_string());
        format!("{name} ({program})")
    });
    let found = found.collect::<Vec<_>>().join(", ");
    let missing = missing.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    match (found.as_str(), missing.as_str()) {
        ("", missing) => format!("errors, but no language server is on the PATH: {missing}"),
        (found, "") => format!("errors, by {found}"),
        (found, missing) => format!("errors, by {found}; not on the PATH: {missing}"),
    }
}

/// The login shell and the startup files that it runs for the environment of commands.
fn login_shell() -> String {
    let (Some(shell), Some(home)) = (user_machine::login_shell(), user_machine::home()) else {
        return "none; commands inherit the environment of the server".to_owned();
    };
    let files = login_files(&shell, &home).into_iter().filter(|file| file.exists());
    let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
    let runs = if files.is_empty() { "no file".to_owned() } else { files.join(", ") };
    format!("{} runs {runs} for each server, in a read-only sandbox", shell.display())
}
