//! Facts about a session for a program.

use std::path::PathBuf;

use toolcrib_exec::{OuterWall, SESSION_TMP};

use super::Backend;

/// Facts about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The roots of the workspace.
    pub roots: Vec<PathBuf>,
    /// The temporary directory of the session, as its commands see it. `None` if it is not known before the first
    /// command.
    pub tmp: Option<PathBuf>,
    /// The number and the name of the sandbox level. `None` if commands are not confined, or cannot run.
    pub sandbox: Option<(u8, &'static str)>,
    /// The name of the sandbox around this system, if it alone confines commands.
    pub outer: Option<&'static str>,
}

impl Backend<'_> {
    /// Facts about the session.
    pub fn info(&self) -> SessionInfo {
        let services = self.runtime.services();
        let roots = services.paths.workspace.roots().map(|root| root.path().to_owned()).collect();
        let commands = services.commands.as_deref();
        let host = commands.filter(|host| host.confines());
        let level = host.map(|host| host.enforced().level);
        let has_namespaces = level.is_some_and(toolcrib_exec::Level::has_namespaces);
        SessionInfo {
            roots,
            tmp: has_namespaces.then(|| SESSION_TMP[0].into()),
            sandbox: level.map(|level| (level.number(), level.name())),
            outer: commands.and_then(|host| host.outer_wall()).map(OuterWall::name),
        }
    }
}
