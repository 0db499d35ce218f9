//! How a language server is started: the sandbox of commands, without write access and network.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_exec::{
    Amount, Command, FileAccess, Guard, GuardVerdict, Jobs, Limits, Network, Program,
    RefusedContent, Sandbox, Stdin, Unwritable, find_program,
};

use toolcrib_policy::Outside;

use crate::command_sandbox::command_sandbox;
use crate::command_state::{ShellHost, Variables, add_offline_variables, add_session_caches};
use crate::command_variables::quoted_bytes;
use crate::language_servers::{LanguageServer, Launch};
use crate::path_rules::PathRules;
use crate::sandbox_settings::{SandboxSettings, is_sufficient, visible_tmp};
use crate::services::Services;

/// Memory of a server and its children, in percent of the machine's.
const MEMORY_PERCENT: u8 = 25;

/// Directories that the sandbox replaces by its own, so that programs in them are not found there.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Why a server is not started.
pub(super) enum LaunchError {
    /// Its program is not on the `PATH`.
    NoProgram,
    /// The sentence for the caller.
    NoSandbox(String),
}

/// The program of a server. `None` if it is not on the user's `PATH`, or only inside a root, where an agent could have
/// written it, or in a temporary directory.
pub(super) fn found_program(services: &Services, server: &LanguageServer) -> Option<PathBuf> {
    let host = services.commands.as_deref()?;
    program(services, server, &host.environment().0.variables)
}

fn program(
    services: &Services,
    server: &LanguageServer,
    environment: &Variables,
) -> Option<PathBuf> {
    if server.program.is_absolute() {
        return Some(server.program.clone());
    }
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path)?;
    let roots = services.paths.workspace.roots().map(|root| root.path().to_owned());
    let excluded: Vec<PathBuf> = roots.chain(TEMPORARY.map(PathBuf::from)).collect();
    find_program(server.program.to_str()?, path, &excluded)
}

/// How to start a server for the project in a root.
pub(super) fn launch(
    services: &Services,
    jobs: &Jobs,
    server: &LanguageServer,
    root: &Path,
) -> Result<Launch, LaunchError> {
    let host = services.commands.as_deref().ok_or(LaunchError::NoProgram)?;
    let mut environment = host.environment().0.variables.clone();
    let program = program(services, server, &environment).ok_or(LaunchError::NoProgram)?;
    let bash = host.bash().ok_or(LaunchError::NoProgram)?;
    if !is_sufficient(host.enforced()) {
        let why = "files are not checked: this system has no sandbox for language servers";
        return Err(LaunchError::NoSandbox(why.to_owned()));
    }
    // A server may open any file that commands see, and its messages quote it.
    if services.paths.outside != Outside::Read {
        let why = "files are not checked: language servers read outside the roots, which needs outside = \"read\"";
        return Err(LaunchError::NoSandbox(why.to_owned()));
    }
    let not_made = |_| {
        let why = "files are not checked: the directory for language servers cannot be made";
        LaunchError::NoSandbox(why.to_owned())
    };
    let tmp = jobs.tmp(host.tmp()).map_err(not_made)?;
    let seen = visible_tmp(host.enforced().level, &tmp);
    environment.retain(|(name, _)| name != "PWD");
    environment.push(("PWD".into(), root.into()));
    environment.push(("TMPDIR".into(), seen.into()));
    // gopls ends if it cannot write its cache.
    environment.retain(|(name, _)| name != "XDG_CACHE_HOME");
    environment.push(("XDG_CACHE_HOME".into(), seen.join("cache").into()));
    add_session_caches(&mut environment, b"", seen, false, |_| false);
    add_offline_variables(&mut environment);
    let command = Command {
        script: script(&program, &server.arguments),
        shell: bash.to_owned(),
        directory: root.to_owned(),
        environment,
        stdin: Stdin::Pipe,
        separate_streams: true,
    };
    let guard = ReadGuard { rules: services.paths.path_rules.clone() };
    Ok(Launch { command, sandbox: sandbox(services, host, &tmp), guard: Arc::new(guard) })
}

/// The sandbox of commands, in which a server only reads, besides its own `/tmp`.
fn sandbox(services: &Services, host: &ShellHost, tmp: &Path) -> Sandbox {
    let usual = SandboxSettings::default();
    let settings = host.sandbox().unwrap_or(&usual);
    let sandbox = command_sandbox(services, settings, tmp);
    let read_only = [sandbox.read_only, sandbox.writable].concat();
    let limits = Limits { memory: Amount::Percent(MEMORY_PERCENT), ..settings.limits };
    Sandbox {
        writable: Vec::new(),
        read_only,
        replaced: Vec::new(),
        network: Network::None,
        limits,
        ..sandbox
    }
}

/// A script that becomes the server.
fn script(program: &Path, arguments: &[String]) -> Vec<u8> {
    let words = std::iter::once(program.as_os_str().as_bytes());
    let words = words.chain(arguments.iter().map(String::as_bytes));
    words.fold(b"exec".to_vec(), |script, word| [script, quoted_bytes(word)].join(&b' '))
}

/// Lets a server read what commands may read. The sandbox has no writable path in the workspace.
#[derive(Debug)]
struct ReadGuard {
    rules: Arc<PathRules>,
}

impl Guard for ReadGuard {
    fn decide(
        &self,
        accesses: &[FileAccess],
        _program: &dyn Fn() -> Option<Program>,
    ) -> GuardVerdict {
        let refused = accesses.iter().position(|access| self.rules.is_in_workspace(&access.path));
        match refused {
            Some(access) => {
                GuardVerdict::Refuse { access, why: Unwritable::ReadOnly, restore: None }
            }
            None => GuardVerdict::Allow,
        }
    }

    fn review(&self, _path: &Path, _content: &[u8], _is_new: bool) -> Result<(), RefusedContent> {
        Ok(())
    }

    fn may_read(&self, path: &Path) -> bool {
        self.rules.may_read(path)
    }

    fn supervision_failed(&self, _why: &std::io::Error) {}

    fn finished(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted() {
        let script = script(Path::new("/a b/it's"), &["--x=$y".to_owned(), String::new()]);
        assert_eq!(script, b"exec '/a b/it'\\''s' '--x=$y' ''");
    }
}
