//! The workspace that is served: one session of a runtime.

use std::path::PathBuf;
use std::sync::Arc;

use toolcrib::backend::{Backend, SessionInfo};
use toolcrib::{CallOrigin, Cancel, Options, Runtime, Session};
use toolcrib_monitor::{FirstAnswer, Monitor, NoChannel};

/// A session, with what its calls need.
pub(crate) struct Workspace {
    runtime: Runtime,
    session: Session,
    monitor: Arc<Monitor>,
    origin: CallOrigin,
    roots: Vec<PathBuf>,
}

impl Workspace {
    pub(crate) fn new(runtime: Runtime, monitor: Arc<Monitor>) -> Workspace {
        let session = runtime.session();
        let roots = runtime.backend(&session, Options::default()).info().roots;
        let origin = CallOrigin { transport: Some("tcp"), ..CallOrigin::default() };
        Workspace { runtime, session, monitor, origin, roots }
    }

    /// The directories that requests may name.
    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Facts about the session.
    pub(crate) fn info(&self) -> SessionInfo {
        self.runtime.backend(&self.session, Options::default()).info()
    }

    /// Performs operations. They block, and may wait for a person who approves them in another program of the user.
    pub(crate) fn with_backend<T>(
        &self,
        cancel: &Cancel,
        perform: impl FnOnce(Backend<'_>) -> T,
    ) -> T {
        let approver = &FirstAnswer::new(&self.monitor, &NoChannel, cancel);
        let options = Options { cancel, approver, origin: &self.origin, ..Options::default() };
        perform(self.runtime.backend(&self.session, options).roots_only())
    }
}
