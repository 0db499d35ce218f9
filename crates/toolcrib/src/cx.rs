//! A tool's access to the machine, limited to the accesses that the call declared.

mod change;
mod command;
mod files;
mod path_suggestions;
mod search;

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

use toolcrib_fs::{About, Journal, ResolvedPath};
use toolcrib_policy::{Effect, Policy, SessionApprovals};

pub(crate) use self::change::{CHANGE, Revert};
pub use self::change::{Changed, FileEdit, Updated};
pub(crate) use self::command::{StartedCommand, ToStart, job_error};
pub(crate) use self::search::SearchScope;

use crate::call::Options;
use crate::cancel::Progress;
use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use crate::path_access::Grant;
use crate::runtime::Runtime;
use crate::seen_files::Basis;
use crate::session::Session;

/// Gives a running tool access to files, limits, progress and cancellation.
///
/// [`Tool::run`](crate::Tool::run) receives one per call. A path works only if
/// [`Tool::access`](crate::Tool::access) declared it and the policy allowed it; every other path is an error of
/// kind [`ErrorKind::Denied`]. In a dry run, the methods check everything and write nothing. See
/// [`Tool`](crate::Tool) for an example.
pub struct Cx<'a> {
    runtime: &'a Runtime,
    session: &'a Session,
    grant: &'a Grant,
    options: Options<'a>,
    about: About,
    /// Hashes of the files that the call changes, from before the change.
    basis: RefCell<Basis>,
    /// Files that the call has written and not deleted.
    written: RefCell<Vec<PathBuf>>,
    /// Hashes of the files that the approver has seen in the preview.
    agreed: Option<Basis>,
    /// Hosts that the approver has allowed to the command of this call.
    hosts: SessionApprovals,
    /// The rules for calls of this tool.
    policy: Cow<'a, Policy>,
}

impl<'a> Cx<'a> {
    pub(crate) fn begin(
        runtime: &'a Runtime,
        session: &'a Session,
        grant: &'a Grant,
        options: Options<'a>,
        about: About,
    ) -> Self {
        let (basis, written) = (RefCell::default(), RefCell::default());
        let policy = runtime.policy_of(&about.tool);
        let (agreed, hosts) = (None, SessionApprovals::default());
        Cx { runtime, session, grant, options, about, basis, written, agreed, hosts, policy }
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
        self.runtime.limits()
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
        self.runtime.states().get().ok_or_else(|| {
            let name = std::any::type_name::<T>();
            Error::new(ErrorKind::Internal, format!("the runtime has no {name}"))
        })
    }

    pub(crate) fn runtime(&self) -> &'a Runtime {
        self.runtime
    }

    pub(crate) fn session(&self) -> &'a Session {
        self.session
    }

    pub(crate) fn journal(&self) -> Result<&'a Journal, Error> {
        self.runtime.journal().ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, "there is no journal, so nothing can be undone")
                .hint("The host program gave this runtime no directory for a journal.")
        })
    }

    fn granted_path(&self, effect: Effect, path: &Path) -> Result<ResolvedPath, Error> {
        self.grant.place(self.runtime, self.session, effect, path)
    }
}
