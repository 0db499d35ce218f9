//! Paths outside the roots that file tools may still reach: the session's private `/tmp`, which its commands
//! share, and paths outside the workspace, as far as the operator allows.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_exec::SESSION_TMP;
use toolcrib_fs::{ForbiddenFiles, FsError, FsErrorKind, ResolvedPath, Root, Workspace};
use toolcrib_policy::{Outside, Profile, Protection, SettingHints};
use toolcrib_text::visible_name;

use crate::command_state::ShellHost;
use crate::error::Error;
use crate::hidden_paths::{Hidden, Reason};
use crate::path_rules::PathRules;
use crate::session::Session;

/// Kernel file systems: processes, devices, settings. Closed to file tools in every profile.
const KERNEL_DIRECTORIES: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Sockets and secrets of services. Empty for commands in a sandbox.
const SERVICES_DIRECTORY: &str = "/run";

/// The paths that tools reach, and the rules about them that do not depend on a call.
pub(crate) struct Paths {
    pub(crate) workspace: Workspace,
    pub(crate) hidden: Arc<Hidden>,
    pub(crate) protection: Protection,
    /// Rules for files whose protection does not follow from a name pattern.
    pub(crate) path_rules: Arc<PathRules>,
    /// The user's home directory.
    pub(crate) home: Option<PathBuf>,
    /// Whether calls give absolute paths only.
    pub(crate) only_absolute: bool,
    pub(crate) profile: Profile,
    /// Access of file tools outside the roots.
    pub(crate) outside: Outside,
    /// How messages say that a setting is changed.
    pub(crate) settings: SettingHints,
    /// Whether commands have a private `/tmp` depends on their sandbox.
    pub(crate) commands: Option<Arc<ShellHost>>,
}

impl Paths {
    /// A resolved path as replies show it: on one line, and relative to `directory` if it is below it.
    pub(crate) fn show(&self, directory: &ResolvedPath, path: &Path) -> String {
        let shown = match path.strip_prefix(directory.path()) {
            Ok(relative) if !self.only_absolute => relative,
            _ => path,
        };
        let shown = if shown.as_os_str().is_empty() { Path::new(".") } else { shown };
        visible_name(shown.as_os_str().as_encoded_bytes())
    }

    /// Resolves a path in the roots, in the session's own directories, or outside.
    pub(crate) fn resolve(
        &self,
        session: &Session,
        directory: &ResolvedPath,
        path: &Path,
    ) -> Result<ResolvedPath, FsError> {
        let inside = self.workspace.resolve(directory, path);
        let is_outside = matches!(&inside, Err(error) if error.kind() == FsErrorKind::Outside);
        if !is_outside && !self.has_root_around_tmp() {
            return inside;
        }
        self.reachable_workspace(session).resolve(directory, path)
    }

    /// The roots and the session's own directories. Changes there are recorded.
    pub(crate) fn session_workspace(&self, session: &Session) -> Workspace {
        self.workspace.with(self.session_roots(session).iter().cloned())
    }

    /// The session's own directories, at the paths that its tools and commands see.
    pub(crate) fn session_roots<'a>(&self, session: &'a Session) -> &'a [Arc<Root>] {
        session.own_roots(|| self.open_session_roots(session))
    }

    /// Replaces a leading `~` by the user's home.
    pub(crate) fn expand_home<'a>(&self, path: &'a Path) -> Result<Cow<'a, Path>, Error> {
        let Ok(beneath) = path.strip_prefix("~") else { return Ok(Cow::Borrowed(path)) };
        match &self.home {
            Some(home) if beneath.as_os_str().is_empty() => Ok(Cow::Owned(home.to_owned())),
            Some(home) => Ok(Cow::Owned(home.join(beneath))),
            None => {
                Err(Error::invalid("`~` is the home directory, but this host does not define one")
                    .hint("Give an absolute path, or `./~` for a file of that name."))
            }
        }
    }

    /// Why a path is closed to all tools. `None` if it is not.
    pub(crate) fn closed_reason(&self, session: &Session, path: &Path) -> Option<Reason> {
        let length = |root: &Path| root.components().count();
        let beneath = |root: &&Root| path.starts_with(root.path());
        let innermost = self.workspace.roots().filter(beneath).map(|root| length(root.path()));
        let innermost = innermost.max();
        let own = session.opened_roots().iter().map(AsRef::as_ref).filter(beneath);
        let own = own.map(|root| length(root.path())).max();
        if own > innermost {
            return None;
        }
        let of_system = || self.closed_system_directory(path).map(Reason::System);
        innermost.map_or_else(of_system, |_| None).or_else(|| self.hidden.reason(path))
    }

    /// Closed system directories, for a search that starts above them.
    pub(crate) fn closed_directories(&self) -> Vec<PathBuf> {
        let tmp = SESSION_TMP.iter().filter(|_| self.has_private_tmp());
        let services = [SERVICES_DIRECTORY].into_iter().filter(|_| self.is_sandboxed());
        KERNEL_DIRECTORIES
            .into_iter()
            .chain(services)
            .chain(tmp.copied())
            .map(PathBuf::from)
            .collect()
    }

    /// The closed system directory that contains a path.
    fn closed_system_directory(&self, path: &Path) -> Option<PathBuf> {
        // Whether commands have a private `/tmp` is determined by a test, so ask only for paths in it.
        let is_tmp = SESSION_TMP.iter().any(|top| path.starts_with(top));
        let tmp = SESSION_TMP.into_iter().filter(|_| is_tmp && self.has_private_tmp());
        let services = [SERVICES_DIRECTORY].into_iter().filter(|_| self.is_sandboxed());
        let mut closed = KERNEL_DIRECTORIES.into_iter().chain(services).chain(tmp);
        closed.find(|top| path.starts_with(top)).map(PathBuf::from)
    }

    /// All directories that the tools of a session may reach.
    fn reachable_workspace(&self, session: &Session) -> Workspace {
        let workspace = self.session_workspace(session);
        if self.outside == Outside::Deny {
            return workspace;
        }
        let hidden = self.hidden.paths_for_sandbox().existing();
        let system = Root::of_system(ForbiddenFiles::of(hidden.iter().map(PathBuf::as_path)));
        workspace.with(system.ok().map(Arc::new))
    }

    fn open_session_roots(&self, session: &Session) -> Vec<Arc<Root>> {
        let host = self.commands.as_ref().filter(|_| self.is_sandboxed() && self.runs_commands());
        let Some((host, shell)) = host.filter(|host| host.confines()).zip(session.shell()) else {
            return Vec::new();
        };
        let Ok(tmp) = shell.jobs().tmp(host.tmp()) else { return Vec::new() };
        let places = if host.enforced().level.has_namespaces() {
            SESSION_TMP.map(PathBuf::from).to_vec()
        } else {
            vec![tmp.clone()]
        };
        let roots = places.iter().filter_map(|seen_at| Root::of_session(&tmp, seen_at).ok());
        roots.map(Arc::new).collect()
    }

    /// Whether commands have a private `/tmp`.
    fn has_private_tmp(&self) -> bool {
        let host = self.commands.as_ref().filter(|_| self.is_sandboxed() && self.runs_commands());
        host.is_some_and(|host| host.confines() && host.enforced().level.has_namespaces())
    }

    /// Whether the profile runs commands in a sandbox.
    pub(crate) fn is_sandboxed(&self) -> bool {
        self.profile != Profile::Open
    }

    fn runs_commands(&self) -> bool {
        self.profile != Profile::ReadOnly
    }

    /// Whether a root contains the private `/tmp` of commands.
    fn has_root_around_tmp(&self) -> bool {
        let around = |root: &Root| {
            SESSION_TMP
                .iter()
                .map(Path::new)
                .any(|tmp| tmp != root.path() && tmp.starts_with(root.path()))
        };
        self.workspace.roots().any(around)
    }
}
