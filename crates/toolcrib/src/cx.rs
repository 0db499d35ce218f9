//! A tool's access to the machine, limited to the accesses that the call declared.

mod change;
mod command;
mod entries;
mod files;
mod open_file;
mod path_suggestions;
mod prepared_command;
mod search;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_fs::{About, Journal, ResolvedPath};
use toolcrib_policy::{Effect, Policy, SessionApprovals};

pub(crate) use self::change::{CHANGE, EditedFile, Revert, Versions};
pub use self::change::{Changed, FileEdit, Updated};
pub(crate) use self::command::HELPER_HINT;
pub(crate) use self::entries::EntryChange;
pub use self::open_file::{Chunks, OpenFile};
pub(crate) use self::prepared_command::{
    CommandRequest, PreparedCommand, RunningCommand, job_error,
};
pub(crate) use self::search::SearchScope;

use crate::cancel_and_progress::Progress;
use crate::error::{Error, ErrorKind};
use crate::history::History;
use crate::limits::Limits;
use crate::message_names::SHELL_TOOL;
use crate::path_access::Grant;
use crate::reachable_paths::Paths;
use crate::request::Options;
use crate::seen_files::Basis;
use crate::services::Services;
use crate::session::Session;

/// Gives a running tool access to files, limits, progress and cancellation.
///
/// [`Tool::run`](crate::Tool::run) receives one per call. A path works only if
/// [`Tool::access`](crate::Tool::access) declared it and the policy allowed it; every other path is an error of
/// kind [`ErrorKind::Denied`]. In a dry run, the methods check everything and write nothing. See
/// [`Tool`](crate::Tool) for an example.
pub struct Cx<'a> {
    services: &'a Services,
    session: &'a Session,
    grant: &'a Grant,
    options: Options<'a>,
    about: About,
    /// Number of the call in its runtime.
    call: u64,
    /// Hashes of the files that the call changes, from before the change.
    basis: RefCell<Basis>,
    /// Files that the call has written and not deleted.
    written: RefCell<Vec<PathBuf>>,
    /// Files that the call has edited, if language servers check them.
    edited: RefCell<Vec<EditedFile>>,
    /// Hashes of the files that the approver has seen in the preview.
    agreed: Option<Basis>,
    /// Hosts that the approver has allowed to the command of this call.
    hosts: SessionApprovals,
    /// The rules for calls of this tool.
    policy: Arc<Policy>,
}

impl<'a> Cx<'a> {
    pub(crate) fn begin(
        services: &'a Services,
        session: &'a Session,
        grant: &'a Grant,
        options: Options<'a>,
        about: About,
    ) -> Self {
        let (basis, written, edited) = (RefCell::default(), RefCell::default(), RefCell::default());
        let policy = services.policy.of_tool(&about.tool);
        let (agreed, hosts) = (None, SessionApprovals::default());
        let call = 0;
        Cx {
            services,
            session,
            grant,
            options,
            about,
            call,
            basis,
            written,
            edited,
            agreed,
            hosts,
            policy,
        }
    }

    /// Sets the number of the call in its runtime.
    pub(crate) fn numbered(mut self, call: u64) -> Self {
        self.call = call;
        self
    }

    /// Makes a change fail if a file differs from the version that the approver has seen.
    pub(crate) fn agreed(mut self, basis: Option<Basis>) -> Self {
        self.agreed = basis;
        self
    }

    /// Hosts that the approver has allowed to the command of this call.
    pub(crate) fn allowing(mut self, hosts: SessionApprovals) -> Self {
        self.hosts = hosts;
        self
    }

    /// Hashes of the files that the call changes, from before the change.
    pub(crate) fn into_basis(self) -> Basis {
        self.basis.into_inner()
    }

    /// Takes the files that the call has edited.
    pub(crate) fn take_edited(&self) -> Vec<EditedFile> {
        std::mem::take(&mut *self.edited.borrow_mut())
    }

    /// Files that the call has written and not deleted.
    pub(crate) fn into_written(self) -> Vec<PathBuf> {
        self.written.into_inner()
    }

    /// Returns whether this is a dry run. Methods that write check this themselves; a tool needs it only to
    /// word its reply.
    pub fn dry_run(&self) -> bool {
        self.options.dry_run
    }

    /// Returns the limits of the runtime.
    pub fn limits(&self) -> &Limits {
        &self.services.limits
    }

    /// Returns an error of kind [`ErrorKind::Cancelled`] if the caller has cancelled the call. Check it in
    /// loops and waits.
    pub fn check_cancelled(&self) -> Result<(), Error> {
        self.options.cancel.check()
    }

    /// Reports progress to the caller.
    pub fn progress(&self, progress: Progress<'_>) {
        (self.options.progress)(progress);
    }

    /// The progress callback, which can be called on other threads.
    pub(crate) fn progress_to(&self) -> &'a (dyn Fn(Progress<'_>) + Sync) {
        self.options.progress
    }

    /// Returns the value of type `T` that was given to [`crate::RuntimeBuilder::state`].
    ///
    /// # Errors
    ///
    /// Fails with kind [`ErrorKind::Internal`] if the runtime has no value of this type.
    pub fn state<T: 'static>(&self) -> Result<&'a T, Error> {
        self.services.states.get().ok_or_else(|| {
            let name = std::any::type_name::<T>();
            Error::new(ErrorKind::Internal, format!("the runtime has no {name}"))
        })
    }

    /// The rules for commands.
    pub(crate) fn command_policy(&self) -> Arc<Policy> {
        self.services.policy.of_tool(SHELL_TOOL)
    }

    /// The paths that tools reach.
    pub(crate) fn paths(&self) -> &'a Paths {
        &self.services.paths
    }

    /// The changes in the journal.
    pub(crate) fn history(&self) -> &'a History {
        &self.services.history
    }

    /// The host's own program, which decodes PDFs and images.
    pub(crate) fn helper(&self) -> Option<&'a Path> {
        self.services.helper.as_deref()
    }

    pub(crate) fn session(&self) -> &'a Session {
        self.session
    }

    pub(crate) fn journal(&self) -> Result<&'a Journal, Error> {
        self.services.history.journal().ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, "there is no journal, so nothing can be undone")
                .hint("The host program gave this runtime no directory for a journal.")
        })
    }

    fn granted_path(&self, effect: Effect, path: &Path) -> Result<ResolvedPath, Error> {
        self.grant.place(&self.services.paths, self.session, effect, path)
    }
}
