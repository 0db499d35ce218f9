//! The directory of `serve --workspaces`. Each directory in it is a workspace.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib::{Profile, Runtime};
use toolcrib_mcp::{OpenedWorkspace, ServeOptions, Token, WorkspaceId, WorkspaceSource};

use super::exposure::Exposure;
use super::workspace_tokens::{self, WorkspaceTokens};
use super::{Presented, token, token_file};
use crate::args::{AmongWorkspaces, Common, ServeArgs};
use crate::commands::backup::ServedBackup;
use crate::commands::monitor_socket::MonitorSocket;
use crate::commands::store::ServedStore;
use crate::commands::{OWN_EXECUTABLE, own_paths, real_path, runtime_with, with_tools};
use crate::config::Config;
use crate::{output, rules};

/// The lowest sandbox level that hides other workspaces completely: below it, commands see the processes of others and
/// the names of hidden files.
const LEAST_LEVEL: u8 = 3;

/// Open workspaces with a monitor socket. Viewers list a limited number of sockets, and other servers have some, too.
const MAX_MONITORS: usize = 128;

/// The workspaces in a directory.
pub(super) struct WorkspacesDirectory {
    /// Its real path.
    directory: PathBuf,
    rules: Option<PathBuf>,
    tokens: Tokens,
    /// Paths that no tool may access, besides our configuration and state.
    own: Vec<PathBuf>,
    common: Common,
    presented: Presented,
    no_monitor: bool,
    /// Each open workspace with a monitor socket has a clone of it.
    monitored: Arc<()>,
    store: Option<ServedStore>,
    backup: Option<ServedBackup>,
}

/// Who may use the workspaces.
enum Tokens {
    /// Everybody with the token in this file.
    Sole(Token, PathBuf),
    /// Everybody with the token of a workspace, in this file.
    Each(WorkspaceTokens, PathBuf),
    /// Callers with access tokens, who are identified elsewhere. It says by whom.
    Identified(String),
}

impl WorkspacesDirectory {
    /// Checks the options. Fails if the workspaces would not be isolated from each other and from our own files.
    pub(super) fn new(
        common: &Common,
        args: &ServeArgs,
        directory: &Path,
        exposure: &Exposure,
    ) -> Result<WorkspacesDirectory, String> {
        if !common.named_roots().is_empty() {
            return Err(
                "--workspaces and --root exclude each other: each workspace is its own root"
                    .to_owned(),
            );
        }
        let failed = |error| format!("--workspaces {}: {error}", directory.display());
        let directory = directory.canonicalize().map_err(failed)?;
        if !directory.is_dir() {
            return Err(format!("{}: not a directory", directory.display()));
        }
        let rules = args.workspace_rules.as_deref().map(absolute).transpose()?;
        if let Some(rules) = rules.as_ref().filter(|rules| !rules.is_dir()) {
            return Err(format!("--workspace-rules {}: no such directory", rules.display()));
        }
        let by_identity = exposure.describe();
        let tokens_file = match (&args.workspace_tokens, &by_identity) {
            (_, Some(_)) => None,
            (Some(file), None) => Some(absolute(file)?),
            (None, None) => Some(token_file(common, args.token_file.as_deref())?),
        };
        let hidden = tokens_file.as_ref().map(|file| match &args.workspace_tokens {
            Some(_) => workspace_tokens::directory(file).to_owned(),
            None => file.clone(),
        });
        let tokens_option =
            if args.workspace_tokens.is_some() { "--workspace-tokens" } else { "--token-file" };
        if let Some(hidden) = &hidden {
            check_apart(tokens_option, hidden, &directory)?;
        }
        if let Some(rules) = &rules {
            check_apart("--workspace-rules", rules, &directory)?;
        }
        let private_paths = exposure.private_paths(std::slice::from_ref(&directory))?;
        let store = ServedStore::start(common, args)?;
        let own = rules.iter().cloned().chain(hidden).chain(private_paths);
        let backup = ServedBackup::start(args.backup())?;
        let own = own.chain(ServedStore::own(store.as_ref()));
        let own: Vec<PathBuf> = own.chain(ServedBackup::own(backup.as_ref())).collect();
        check_isolation(common, &directory, &own)?;
        check_sandbox(common, &directory)?;
        let tokens = match (tokens_file, by_identity) {
            (Some(file), _) if args.workspace_tokens.is_some() => {
                Tokens::Each(WorkspaceTokens::read(file.clone())?, file)
            }
            (Some(file), _) => Tokens::Sole(token::read_or_make(&file)?, file),
            (None, issuers) => Tokens::Identified(issuers.unwrap_or_default()),
        };
        Ok(WorkspacesDirectory {
            directory,
            rules,
            tokens,
            own,
            common: common.clone(),
            presented: Presented::of(args),
            no_monitor: args.no_monitor,
            monitored: Arc::default(),
            store,
            backup,
        })
    }

    /// Says where the workspaces and the tokens are.
    pub(super) fn describe(&self) -> String {
        let tokens = match &self.tokens {
            Tokens::Sole(_, file) => format!("the token is in {}", file.display()),
            Tokens::Each(_, file) => format!("the tokens are in {}", file.display()),
            Tokens::Identified(by) => by.clone(),
        };
        format!("ID is a directory in {}; {tokens}", self.directory.display())
    }

    fn try_to_open(&self, workspace: &WorkspaceId) -> Result<OpenedWorkspace, String> {
        let name = workspace.as_str();
        // A file system that ignores case finds a directory by several names.
        let mut entries = self.directory.read_dir().map_err(|error| error.to_string())?;
        if !entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() == name)) {
            return Err("no directory has exactly this name".to_owned());
        }
        let rules = self.rules.as_ref().map(|rules| rules.join(format!("{name}.toml")));
        let among = AmongWorkspaces { directory: self.directory.clone(), rules };
        let common = self.common.for_one_of_many(&self.directory.join(name), among);
        // The configuration may have changed since the start.
        check_isolation(&self.common, &self.directory, &self.own)?;
        let monitored = self.monitored.clone();
        let monitored = Some(monitored).filter(|all| Arc::strong_count(all) <= MAX_MONITORS + 1);
        let no_monitor = self.no_monitor || monitored.is_none();
        let lease = ServedStore::hold(self.store.as_ref(), Some(name))?;
        let monitor = MonitorSocket::new(&common, "serve", no_monitor)?;
        let monitor = monitor.gated(ServedStore::gate(lease.as_ref()));
        let mut runtime = runtime_with(&common, &self.own, None, Some(&monitor))?;
        ServedStore::limit(self.store.as_ref(), &mut runtime, Some(name));
        let sent = ServedStore::follow(self.store.as_ref(), &runtime, Some(name));
        let gate = ServedStore::gate(lease.as_ref());
        let copied = ServedBackup::follow(self.backup.as_ref(), &runtime, Some(name), gate)?;
        monitor.open(&runtime);
        let shared_questions = ServedStore::questions(self.store.as_ref(), &runtime, Some(name));
        let options = self.presented.options(&common, &monitor);
        let options = ServeOptions { shared_questions, ..options };
        Ok(OpenedWorkspace {
            runtime,
            options,
            held: Box::new((monitor, monitored, sent, copied, lease)),
        })
    }
}

impl WorkspaceSource for WorkspacesDirectory {
    fn admits(&self, workspace: Option<&WorkspaceId>, token: &[u8]) -> bool {
        match &self.tokens {
            Tokens::Sole(sole, _) => sole.is(token),
            Tokens::Each(tokens, _) => tokens.admits(workspace, token),
            Tokens::Identified(_) => false,
        }
    }

    fn knows_tokens(&self) -> bool {
        match &self.tokens {
            Tokens::Sole(..) | Tokens::Identified(_) => true,
            Tokens::Each(tokens, _) => tokens.are_known(),
        }
    }

    fn find(&self, workspace: &WorkspaceId) -> Option<(u64, u64)> {
        let found = std::fs::symlink_metadata(self.directory.join(workspace.as_str())).ok()?;
        found.is_dir().then(|| (found.dev(), found.ino()))
    }

    fn open(&self, workspace: &WorkspaceId) -> Option<OpenedWorkspace> {
        let opened = self.try_to_open(workspace);
        let report = |problem: &String| {
            output::warning(&format!("the workspace {workspace} cannot be opened: {problem}"));
        };
        opened.inspect_err(report).ok()
    }
}

/// Fails if commands would not be confined, or if a workspace could contain files of this program.
fn check_isolation(common: &Common, directory: &Path, own: &[PathBuf]) -> Result<(), String> {
    let config = Config::of(common)?;
    if config.profile(common)? == Profile::Open {
        return Err(
            "--workspaces cannot be used with the profile open: its commands have no sandbox, so they see all workspaces"
                .to_owned(),
        );
    }
    let sandbox = config.sandbox()?;
    if !sandbox.expose.is_empty() {
        return Err(
            "--workspaces cannot be used with expose: a port would belong to the first workspace that listens on it"
                .to_owned(),
        );
    }
    let caches = sandbox.caches;
    let own = own_paths(common, &config)?.into_iter().chain(own.iter().cloned());
    let is = |option: Option<&PathBuf>, path: &Path| {
        option.is_some_and(|given| absolute(given).is_ok_and(|given| given == path))
    };
    for path in own {
        let path = absolute(&path)?;
        let option = match () {
            () if is(common.state.as_ref(), &path) => "--state",
            () if is(common.config.as_ref(), &path) => "--config",
            () if is(common.rules.as_ref(), &path) => "--rules",
            () if is(config.project_rules.as_ref(), &path) => "project_rules",
            () => "Toolcrib's own files",
        };
        check_apart(option, &path, directory)?;
    }
    for cache in caches {
        check_apart("caches", &cache, directory)?;
    }
    rules::read(&common.for_workspace(directory), &config)?;
    Ok(())
}

/// Fails if a path of an option and the directory of the workspaces contain each other.
fn check_apart(option: &str, path: &Path, directory: &Path) -> Result<(), String> {
    let real = real_path(path);
    if !real.starts_with(directory) && !directory.starts_with(&real) {
        return Ok(());
    }
    let (path, directory) = (path.display(), directory.display());
    Err(format!(
        "{option}: {path} and the directory of --workspaces, {directory}, must not contain each other"
    ))
}

/// Fails if this machine cannot hide a workspace from the commands of another.
fn check_sandbox(common: &Common, directory: &Path) -> Result<(), String> {
    let config = Config::of(common)?;
    let runtime = with_tools(Runtime::builder(), common, &config)
        .profile(config.profile(common)?)
        .root(directory)
        .helper(OWN_EXECUTABLE)
        .build()
        .map_err(|error| error.to_string())?;
    let runs_commands = runtime.tool_named("Bash").is_some();
    let level = runtime.sandbox_level().filter(|_| runs_commands);
    match level {
        Some(level) if level < LEAST_LEVEL => Err(format!(
            "--workspaces needs sandbox level {LEAST_LEVEL}, and this machine supports level {level}: commands would see other \
             workspaces. `toolcrib doctor` says what is missing. --no-tools Bash serves without commands."
        )),
        _ => Ok(()),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}
