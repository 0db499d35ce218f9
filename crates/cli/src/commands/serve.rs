//! `toolcrib serve`: serves MCP.

mod exposure;
mod file_version;
mod identity;
mod renewed_files;
mod shared;
mod tls;
pub(super) mod token;
mod workspace_tokens;
mod workspaces;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use toolcrib_mcp::{
    Access, HttpOptions, ServeError, ServeOptions, WorkspacesOptions, serve_http, serve_stdio,
    serve_workspaces,
};

use self::exposure::Exposure;
use self::workspaces::WorkspacesDirectory;
use super::backup::ServedBackup;
use super::monitor_socket::MonitorSocket;
use super::store::ServedStore;
use crate::args::{Common, ListenAt, ServeArgs};
use crate::output;
use toolcrib::{Dialect, Runtime, user_machine};

pub(crate) fn serve(common: &Common, args: &ServeArgs) -> Result<ExitCode, String> {
    if args.shared || args.shared_part.is_some() {
        return shared::shared(common, args);
    }
    let served = match (&args.http, &args.workspaces) {
        (None, _) => serve_client(common, args)?,
        (Some(at), None) => {
            let exposure = Exposure::new(args, at)?;
            let roots: Vec<PathBuf> =
                common.roots().into_iter().map(|root| root.directory).collect();
            let private_paths = exposure.private_paths(&roots)?;
            let needs_token = !exposure.has_identity();
            let token_file =
                needs_token.then(|| token_file(common, args.token_file.as_deref())).transpose()?;
            let store = ServedStore::start(common, args)?;
            let lease = ServedStore::hold(store.as_ref(), None)?;
            let backup = ServedBackup::start(args.backup())?;
            let monitor = MonitorSocket::new(common, "serve", args.no_monitor)?;
            let monitor = monitor.gated(ServedStore::gate(lease.as_ref()));
            // Tools never access the token file, wherever it is.
            let own = private_paths.into_iter().chain(token_file.clone());
            let own = own.chain(ServedStore::own(store.as_ref()));
            let own: Vec<PathBuf> = own.chain(ServedBackup::own(backup.as_ref())).collect();
            let mut runtime = super::runtime_for_program(common, &own, &monitor)?;
            ServedStore::limit(store.as_ref(), &mut runtime, None);
            let _sent = ServedStore::follow(store.as_ref(), &runtime, None);
            let gate = ServedStore::gate(lease.as_ref());
            let _copied = ServedBackup::follow(backup.as_ref(), &runtime, None, gate)?;
            monitor.open(&runtime);
            let http = http_options(at, exposure, token_file, args)?;
            let http = HttpOptions { ends_on_signals: store.is_some(), ..http };
            let shared_questions = ServedStore::questions(store.as_ref(), &runtime, None);
            let options = Presented::of(args).options(common, &monitor);
            let options = ServeOptions { shared_questions, ..options };
            serve_http(runtime, options, http)
        }
        (Some(at), Some(directory)) => {
            let exposure = Exposure::new(args, at)?;
            let source = WorkspacesDirectory::new(common, args, directory, &exposure)?;
            let (listener, address) = exposure.listen(at, "/w/ID/mcp")?;
            output::note(&format!("serving MCP at {address}; {}", source.describe()));
            let (hosts, max_workspaces) = (args.allow_hosts.clone(), args.max_workspaces);
            let (identity, public_url) = exposure.into_parts();
            // What the store must know is told at the end.
            let ends_on_signals = args.has_store();
            let http = WorkspacesOptions {
                listener,
                hosts,
                max_workspaces,
                identity,
                public_url,
                ends_on_signals,
            };
            serve_workspaces(source, http)
        }
    };
    Ok(exit_code(served))
}

/// Reports an error of a server that was running.
fn exit_code(served: Result<(), ServeError>) -> ExitCode {
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::usage_error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Serves the client that started this process.
fn serve_client(common: &Common, args: &ServeArgs) -> Result<Result<(), ServeError>, String> {
    with_runtime(common, args, |runtime, options| {
        note_terminal();
        Ok(serve_stdio(runtime, options))
    })
}

/// Tells a person who runs the command at a terminal what it is for.
fn note_terminal() {
    if io::stdin().is_terminal() {
        output::note(
            "Waiting for an MCP client on standard input. A client starts this command itself: \
             `toolcrib install CLIENT` sets it up. Press Ctrl-D to end.",
        );
    }
}

/// Serves the workspace with a runtime, and with what observes it and copies its files and logs.
fn with_runtime<T>(
    common: &Common,
    args: &ServeArgs,
    serve: impl FnOnce(Runtime, ServeOptions) -> Result<T, String>,
) -> Result<T, String> {
    let store = ServedStore::start(common, args)?;
    let lease = ServedStore::hold(store.as_ref(), None)?;
    let backup = ServedBackup::start(args.backup())?;
    let monitor = MonitorSocket::new(common, "serve", args.no_monitor)?;
    let monitor = monitor.gated(ServedStore::gate(lease.as_ref()));
    let own = [ServedStore::own(store.as_ref()), ServedBackup::own(backup.as_ref())].concat();
    let mut runtime = super::runtime_for_program(common, &own, &monitor)?;
    ServedStore::limit(store.as_ref(), &mut runtime, None);
    let _sent = ServedStore::follow(store.as_ref(), &runtime, None);
    let gate = ServedStore::gate(lease.as_ref());
    let _copied = ServedBackup::follow(backup.as_ref(), &runtime, None, gate)?;
    monitor.open(&runtime);
    serve(runtime, Presented::of(args).options(common, &monitor))
}

/// How tools and results are presented to clients.
#[derive(Clone, Copy)]
struct Presented {
    dialect: Dialect,
    structured: bool,
}

impl Presented {
    fn of(args: &ServeArgs) -> Presented {
        Presented { dialect: args.dialect, structured: args.structured }
    }

    /// The options of a server for these roots.
    fn options(self, common: &Common, monitor: &MonitorSocket) -> ServeOptions {
        ServeOptions {
            monitor: Some(monitor.monitor().clone()),
            shared_questions: None,
            dry_run: common.dry_run,
            program: (env!("CARGO_BIN_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            dialect: self.dialect,
            structured: self.structured,
            roots: common.roots().iter().map(|root| root.directory.display().to_string()).collect(),
        }
    }
}

/// The path of the token file. The token is not an argument or a variable, because other users can see those.
pub(super) fn token_file(common: &Common, named: Option<&Path>) -> Result<PathBuf, String> {
    let usual = || {
        let state = common.state.clone().or_else(user_machine::state_directory);
        state.map(|state| state.join("http-token"))
    };
    let file = named.map(Path::to_owned).or_else(usual);
    let file = file.ok_or("the state directory is unknown; name a token file with --token-file")?;
    let file =
        std::path::absolute(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    // Before its path is hidden from other servers. A file in the state directory is checked with that.
    if named.is_some() {
        token::check(&file)?;
    }
    Ok(file)
}

fn http_options(
    at: &ListenAt,
    exposure: Exposure,
    token_file: Option<PathBuf>,
    args: &ServeArgs,
) -> Result<HttpOptions, String> {
    let token = token_file.map(|file| Ok::<_, String>((token::read_or_make(&file)?, file)));
    let token = token.transpose()?;
    let (listener, address) = exposure.listen(at, "/mcp")?;
    let who = match &token {
        Some((_, file)) => format!("the token is in {}", file.display()),
        None => exposure.describe().unwrap_or_default(),
    };
    output::note(&format!("serving MCP at {address}; {who}"));
    let (identify, public_url) = exposure.into_parts();
    let access = match (identify, token) {
        (Some(identify), _) => Access::Identity(identify),
        (None, Some((token, _))) => Access::Token(token),
        (None, None) => return Err("there is neither a token nor an identity".to_owned()),
    };
    let (hosts, ends_on_signals) = (args.allow_hosts.clone(), false);
    Ok(HttpOptions { listener, access, hosts, public_url, ends_on_signals })
}
