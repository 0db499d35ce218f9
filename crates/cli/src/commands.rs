//! One module per command.

#[cfg(feature = "backup")]
mod backup;
#[cfg(not(feature = "backup"))]
#[path = "commands/no_backup.rs"]
mod backup;
mod both_recorders;
mod call;
mod completions;
mod configuration;
mod doctor;
mod given_directories;
mod index;
mod install;
mod jobs;
mod log;
mod monitor_socket;
mod page;
mod policy;
mod program_there;
mod push;
mod reference;
mod run;
#[cfg(feature = "sandboxd")]
mod sandboxd;
mod serve;
mod server_private_paths;
#[cfg(feature = "postgres")]
mod store;
#[cfg(not(feature = "postgres"))]
#[path = "commands/no_store.rs"]
mod store;
mod telemetry;
mod tools;
mod undo;
mod watch;

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use toolcrib::{
    Decision, Dialect, Profile, Rules, Runtime, RuntimeBuilder, SandboxSettings, Spelling,
    shell_word,
};

use self::backup::ServedBackup;
use self::monitor_socket::MonitorSocket;
use crate::args::{Args, Command, Common, PolicyCommand, RootArg};
use crate::config::{self, Config};
use crate::rules::ChangingRules;
use crate::{foreign_roots, output, rules, wide_roots};
use toolcrib::user_machine;

/// The executable of this process, even if the file at its path was replaced since.
const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// The running commands of one of many workspaces, in all its sessions.
const MAX_COMMANDS: usize = 64;

/// Runs the command. An error is one of usage or environment: nothing was done.
pub(crate) fn run(args: Args) -> Result<ExitCode, String> {
    let common = &args.common;
    if common.dry_run && !args.command.supports_dry_run() {
        return Err("this command has no dry run; nothing was done".to_owned());
    }
    let _names = (!args.command.calls_tools()).then(|| Spelling::of(Dialect::CommandLine));
    match &args.command {
        Command::Call { tool, args, dialect } => {
            call::call(common, &runtime(common)?, tool, args, *dialect)
        }
        Command::Run(args) => {
            let answer_within = args.approvals.then(|| answer_deadline(common)).transpose()?;
            let backup = ServedBackup::start(args.backup())?;
            let monitor = MonitorSocket::new(common, "run", args.no_monitor)?;
            let own = ServedBackup::own(backup.as_ref());
            let runtime = runtime_for_program(common, &own, &monitor)?;
            let _copied = ServedBackup::follow(backup.as_ref(), &runtime, None, None)?;
            monitor.open(&runtime);
            run::run(common, runtime, args.dialect, answer_within, &monitor)
        }
        Command::Serve(args) => serve::serve(common, args),
        #[cfg(feature = "sandboxd")]
        Command::Sandboxd(args) => sandboxd::sandboxd(common, args),
        Command::Install(args) => install::install(common, args),
        Command::Uninstall { client, host, print } => {
            install::uninstall(common, *client, host.as_ref(), *print)
        }
        Command::Push(args) => push::push(common, args),
        Command::Doctor { host, verbose } => doctor::doctor(common, host, *verbose),
        Command::Tools { format, dialect } => {
            tools::tools(&runtime_to_explain(common)?, *format, *dialect)
        }
        Command::Log { command: Some(command), .. } => {
            log::audit::run(common, &operator_runtime(common)?, command)
        }
        Command::Log { limit, decisions: true, .. } => {
            log::decisions::log(common, &operator_runtime(common)?, *limit)
        }
        Command::Log { limit, network: true, .. } => {
            log::connections::log(common, &operator_runtime(common)?, *limit)
        }
        Command::Log { limit, path, .. } => {
            let runtime = operator_runtime(common)?;
            log::log(common, &runtime, *limit, path.as_deref())
        }
        Command::Show { id } => log::show(common, &operator_runtime(common)?, *id),
        Command::Diff { since } => log::diff(&operator_runtime(common)?, *since),
        Command::Undo { since: Some(since), id: Some(_), .. } => Err(format!(
            "--since {since} undoes change {since} and all later ones, so no other ID can be given; `toolcrib undo ID` undoes one change"
        )),
        Command::Undo { since: Some(since), path: Some(_), .. } => Err(format!(
            "--since {since} undoes all files of change {since} and of all later ones, so it cannot be used with --path"
        )),
        Command::Undo { id, since, path, yes } => {
            let path = path.as_deref().map(|path| path_to_undo(common, path)).transpose()?;
            let selection = undo::UndoSelection { id: *id, since: *since, path };
            undo::undo(common, &operator_runtime(common)?, selection, *yes)
        }
        Command::Redo { yes } => undo::redo(common, &operator_runtime(common)?, *yes),
        Command::Policy { command: PolicyCommand::Check { file } } => policy::check(common, file),
        Command::Policy { command: PolicyCommand::Explain { tool, args } } => {
            policy::explain(common, &runtime_to_explain(common)?, tool, args)
        }
        Command::Policy { command: PolicyCommand::Test { command } } => {
            policy::test(common, &runtime_to_explain(common)?, command)
        }
        Command::Policy { command: PolicyCommand::Host { target } } => {
            policy::host(common, &runtime_to_explain(common)?, target)
        }
        Command::Policy { command: PolicyCommand::List } => policy::list::list(common),
        Command::Policy { command: PolicyCommand::Remove { rule } } => {
            policy::remove::remove(common, rule)
        }
        Command::Policy { command: PolicyCommand::Presets } => policy::list::presets(common),
        Command::Policy { command: PolicyCommand::Allow(args) } => {
            policy::add::add(common, Decision::Allow, args)
        }
        Command::Policy { command: PolicyCommand::Ask(args) } => {
            policy::add::add(common, Decision::Ask, args)
        }
        Command::Policy { command: PolicyCommand::Deny(args) } => {
            policy::add::add(common, Decision::Deny, args)
        }
        Command::Config { command } => configuration::configuration(common, command.as_ref()),
        Command::Index { command } => index::index(common, &runtime(common)?, command),
        Command::Page(args) => page::page(common, args),
        Command::Watch { once } => watch::watch(common, *once),
        Command::Jobs => jobs::jobs(common),
        Command::Kill { id, yes } => jobs::kill(common, id, *yes),
        #[cfg(feature = "postgres")]
        Command::Store { command } => store::run(common, command),
        #[cfg(feature = "backup")]
        Command::Backup { command } => backup::run(common, command),
        Command::Completions { shell } => completions::completions(*shell),
        Command::Reference { page, man } => reference::reference(common, *page, man.as_deref()),
    }
}

/// A runtime with the settings of an agent.
fn runtime(common: &Common) -> Result<Runtime, String> {
    runtime_with(common, &[], None, None)
}

/// A runtime with the settings of an agent, for a process that may lack the user's login environment. `own` lists
/// further paths that no tool may access, besides our configuration and state. Each was checked: it is hidden from all
/// servers from then on.
fn runtime_for_program(
    common: &Common,
    own: &[PathBuf],
    monitor: &MonitorSocket,
) -> Result<Runtime, String> {
    let roots = common.roots();
    for warning in wide_roots::warnings(&roots).iter().chain(&foreign_roots::warnings(&roots)) {
        output::warning(warning);
    }
    runtime_with(common, own, user_machine::login_shell(), Some(monitor))
}

/// The time limit for answering a question.
fn answer_deadline(common: &Common) -> Result<Duration, String> {
    Ok(Config::of(common)?.answer_deadline())
}

fn runtime_with(
    common: &Common,
    own: &[PathBuf],
    login_shell: Option<PathBuf>,
    monitor: Option<&MonitorSocket>,
) -> Result<Runtime, String> {
    make_configuration_directory(common);
    let config = Config::of(common)?;
    let profile = config.profile(common)?;
    let rules = Arc::new(ChangingRules::new(common, &config)?);
    if monitor.is_some() {
        for path in rules.exposed() {
            output::warning(&format!(
                "{} has another hard link; a command that can write there can change the rules of the next start, so replace the file by a copy of it",
                path.display()
            ));
        }
    }
    let mut claimed = own_paths(common, &config)?;
    claimed.extend_from_slice(own);
    let sandbox = config.sandbox()?;
    let builder = with_tools(Runtime::builder(), common, &config)
        .inspection(config.inspection()?)
        .rules_source(rules.clone());
    let builder = monitor.into_iter().fold(builder, |builder, monitor| monitor.observe(builder));
    let builder = with_journal(builder, common, &config)?;
    let held_to = (profile, rules.rules(), sandbox);
    let runtime = build(builder, common, &common.roots(), &config, held_to, own, login_shell)?;
    // Not before: a state directory that is refused would stay hidden from all other servers.
    server_private_paths::record(&claimed);
    Ok(runtime)
}

/// A runtime with the settings of an agent, to list tools and explain decisions. It makes no call, and needs no state.
fn runtime_to_explain(common: &Common) -> Result<Runtime, String> {
    let config = Config::of(common)?;
    let builder = Runtime::builder().inspection(config.inspection()?);
    explaining(builder, common, &config, rules::read(common, &config)?)
}

/// The same with these rules, and without the secrets for inspected hosts.
fn runtime_with_rules(common: &Common, rules: Rules) -> Result<Runtime, String> {
    explaining(Runtime::builder(), common, &Config::of(common)?, rules)
}

fn explaining(
    builder: RuntimeBuilder,
    common: &Common,
    config: &Config,
    rules: Rules,
) -> Result<Runtime, String> {
    let held_to = (config.profile(common)?, rules, config.sandbox()?);
    let builder = with_tools(builder, common, config);
    build(builder, common, &common.roots(), config, held_to, &[], None)
}

/// Opens the journal and the audit log in the state directory.
fn with_journal(
    builder: RuntimeBuilder,
    common: &Common,
    config: &Config,
) -> Result<RuntimeBuilder, String> {
    Ok(match state(common)? {
        Some(state) => builder.journal(state, config.journal_caps()).audit(config.audits()),
        None => builder,
    })
}

/// Applies the operator's selection of tools. A list in a flag replaces the one in the configuration; exclusions
/// add up.
fn with_tools(mut builder: RuntimeBuilder, common: &Common, config: &Config) -> RuntimeBuilder {
    if let Some(only) = common.tools.as_ref().or(config.tools.as_ref()) {
        builder = builder.only_tools(only);
    }
    let removed = config.no_tools.iter().chain(common.no_tools.iter().flatten());
    removed.fold(builder, RuntimeBuilder::remove_tool)
}

/// Creates the default configuration directory if it is missing inside a root. It is protected there, but only if
/// it exists: otherwise a command could create it, or a directory or symlink above it, with its own rules.
fn make_configuration_directory(common: &Common) {
    let Some(directory) = user_machine::configuration_directory() else { return };
    let above = directory.ancestors().find_map(|above| above.canonicalize().ok());
    let is_inside = |root: &RootArg| {
        let root = root.directory.canonicalize().ok();
        root.zip(above.as_ref()).is_some_and(|(root, above)| above.starts_with(root))
    };
    if !directory.exists() && common.roots().iter().any(is_inside) {
        // If this fails, it fails for a command of the same user too.
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    }
}

/// A runtime for the operator's own commands: typing a command approves it, and the operator sees paths that are
/// hidden from agents. In a subdirectory of a workspace it is the runtime of that workspace, and a note says so. A
/// workspace that is more than the project is only named.
fn operator_runtime(common: &Common) -> Result<Runtime, String> {
    let config = Config::of(common)?;
    let runtime = |roots: &[RootArg]| operator_runtime_of(common, roots, &config);
    let here = runtime(&common.roots())?;
    if !common.named_roots().is_empty() {
        return Ok(here);
    }
    let enclosing = here.enclosing_workspace().ok().flatten().filter(|above| above.is_dir());
    let Some(directory) = enclosing else { return Ok(here) };
    if is_more_than_the_project(&directory) {
        output::note(&format!(
            "No calls are recorded for this directory. For the workspace {}, which contains it, add `--root {}`.",
            directory.display(),
            shell_word(&directory.display().to_string())
        ));
        return Ok(here);
    }
    output::note(&format!("Workspace: {}, which contains this directory.", directory.display()));
    runtime(&[RootArg { directory, read_only: false }])
}

/// Whether a workspace around the current directory contains its whole repository and more, or is the home directory:
/// there `install` records its changes, which `undo` in a project must not revert.
fn is_more_than_the_project(workspace: &Path) -> bool {
    let Ok(here) = std::env::current_dir() else { return false };
    let repository = here.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok());
    let home = user_machine::home().and_then(|home| home.canonicalize().ok());
    let contains = |limit: &Path| limit.starts_with(workspace);
    home.as_deref().is_some_and(contains)
        || repository.is_some_and(|repository| repository != workspace && contains(repository))
}

fn operator_runtime_of(
    common: &Common,
    roots: &[RootArg],
    config: &Config,
) -> Result<Runtime, String> {
    let held_to = (Profile::Open, Rules::default(), SandboxSettings::default());
    let builder = with_journal(Runtime::builder(), common, config)?;
    build(builder, common, roots, config, held_to, &[], None)
}

/// The real path of a file that may be missing.
fn real_path(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, mut real)) = existing else { return path.to_owned() };
    // Not `join`, which ends the path with a slash if nothing is missing.
    real.extend(path.strip_prefix(above).unwrap_or(Path::new("")).components());
    real
}

/// A path to undo. Without named roots, a relative path starts in the current directory, which may be a subdirectory
/// of the workspace.
fn path_to_undo(common: &Common, path: &str) -> Result<String, String> {
    if !common.named_roots().is_empty() {
        return Ok(path.to_owned());
    }
    let absolute = std::path::absolute(path).map_err(|error| format!("{path}: {error}"))?;
    absolute.into_os_string().into_string().map_err(|_| format!("{path}: the path is not UTF-8"))
}

fn build(
    builder: RuntimeBuilder,
    common: &Common,
    roots: &[RootArg],
    config: &Config,
    (profile, rules, sandbox): (Profile, Rules, SandboxSettings),
    own: &[PathBuf],
    login_shell: Option<PathBuf>,
) -> Result<Runtime, String> {
    let mut builder = builder
        .profile(profile)
        .outside(config.outside(common, profile)?)
        .notices(output::note)
        .rules(rules)
        .limits(config.limits())
        .index(config.index())
        .absolute_paths(config.absolute_paths)
        .hard_links(config.hard_links())
        .protection(config.protection()?)
        .sandbox(sandbox)
        .language_servers(config.language_servers())
        .upstream_proxies(config.upstream_proxies()?)
        .helper(OWN_EXECUTABLE)
        .environment(|| std::env::vars_os().collect());
    if let Some(shell) = login_shell {
        builder = builder.login_shell(shell);
    }
    if let Some(file) = rules::named_file(common) {
        builder = builder.rules_file(&file);
    }
    builder = builder.setting_hints(config::hints(common));
    for root in roots {
        let directory = as_spelled_by_shell(&root.directory);
        builder = if root.read_only {
            builder.read_only_root(directory)
        } else {
            builder.root(directory)
        };
    }
    for path in own_paths(common, config)?.iter().chain(own) {
        builder = builder.own(path);
    }
    if let Some(home) = user_machine::home() {
        builder = builder.home(home);
    }
    if let Some(registry) = user_machine::registry_directory() {
        builder = builder.registry(registry);
    }
    if let Some(among) = &common.among {
        builder = builder.hidden_around(&among.directory).max_running_commands(MAX_COMMANDS);
    }
    let built = {
        // The operator gave the settings, even if a model makes the calls.
        let _names = Spelling::of(Dialect::CommandLine);
        builder.build()
    };
    let runtime = built.map_err(|error| error.to_string())?;
    output::recovered(runtime.recovered());
    Ok(runtime)
}

/// The paths that no tool may access: the configuration and the state of this program, including the default paths
/// if others are given.
fn own_paths(common: &Common, config: &Config) -> Result<Vec<PathBuf>, String> {
    // A file in the configuration directory may be a symlink.
    let usual = user_machine::configuration_directory().into_iter().chain(config::default_path());
    let usual = usual.chain(user_machine::state_directory());
    let usual = usual.chain(user_machine::socket_directories());
    let named = common.config.clone().into_iter().chain(state(common)?);
    Ok(usual.chain(named).chain(rules::files(common, config)).collect())
}

/// The state directory, with the journal.
fn state(common: &Common) -> Result<Option<PathBuf>, String> {
    let state = common.state.clone().or_else(user_machine::state_directory);
    let absolute = |state: PathBuf| {
        std::path::absolute(&state).map_err(|error| format!("{}: {error}", state.display()))
    };
    state.map(absolute).transpose()
}

/// A relative directory as the shell spells it. After `cd` through a symlink, this is the path that the user knows.
fn as_spelled_by_shell(directory: &Path) -> PathBuf {
    let logical = std::env::var_os("PWD").map(PathBuf::from).filter(|pwd| pwd.is_absolute());
    let (Ok(here), Some(logical)) = (std::env::current_dir(), logical) else {
        return directory.to_owned();
    };
    let same = std::fs::canonicalize(&logical)
        .is_ok_and(|real| here.canonicalize().is_ok_and(|here| here == real));
    if !same {
        directory.to_owned()
    } else if directory == Path::new(".") {
        logical
    } else {
        logical.join(directory)
    }
}
