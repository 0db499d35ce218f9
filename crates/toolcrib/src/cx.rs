//! All that a tool can reach: the files it said it would touch, and nothing else.

mod change;
mod command;
mod files;
mod path_suggestions;
mod search;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use toolcrib_fs::{About, Journal, ResolvedPath};
use toolcrib_policy::Effect;

pub(crate) use self::change::{CHANGE, Restoring};
pub use self::change::{Changed, FileEdit, Updated};
pub(crate) use self::command::{StartedCommand, trouble};
pub(crate) use self::search::Ground;

use crate::call::Options;
use crate::cancel::Progress;
use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use crate::path_access::Grant;
use crate::runtime::Runtime;
use crate::seen_files::Basis;
use crate::session::Session;

/// The hands of a call. A tool has no other way to the machine.
pub struct Cx<'a> {
    runtime: &'a Runtime,
    session: &'a Session,
    grant: &'a Grant,
    options: Options<'a>,
    about: About,
    /// What the files said that the call has changed, or would.
    basis: RefCell<Basis>,
    /// The files that the call has written, and that are there.
    written: RefCell<Vec<PathBuf>>,
    /// What they said when somebody agreed to it.
    agreed: Option<Basis>,
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
        Cx { runtime, session, grant, options, about, basis, written, agreed: None }
    }

    /// Holds the call to what somebody agreed to: the files must still say what they said then.
    pub(crate) fn agreed(mut self, basis: Option<Basis>) -> Self {
        self.agreed = basis;
        self
    }

    /// What the files said that the call has changed, or would.
    pub(crate) fn into_basis(self) -> Basis {
        self.basis.into_inner()
    }

    /// The files that the call has written, and that are there.
    pub(crate) fn into_written(self) -> Vec<PathBuf> {
        self.written.into_inner()
    }

    /// Whether nothing is to be changed. The methods that change see to it themselves; a tool needs
    /// this only for its words.
    pub fn dry_run(&self) -> bool {
        self.options.dry_run
    }

    /// The bounds of the call.
    pub fn limits(&self) -> &Limits {
        self.runtime.limits()
    }

    /// Fails if the caller does not want the answer any more. For loops and waits.
    pub fn check_cancelled(&self) -> Result<(), Error> {
        self.options.cancel.check()
    }

    /// Tells the caller how far the call is.
    pub fn progress(&self, progress: Progress<'_>) {
        (self.options.progress)(progress);
    }

    /// The same, for threads.
    pub(crate) fn progress_to(&self) -> &'a (dyn Fn(Progress<'_>) + Sync) {
        self.options.progress
    }

    /// What [`crate::RuntimeBuilder::state`] was given of this type.
    pub fn state<T: 'static>(&self) -> Result<&'a T, Error> {
        self.runtime.states().get().ok_or_else(|| {
            let name = std::any::type_name::<T>();
            Error::new(ErrorKind::Internal, format!("the runtime was given no {name}"))
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
                .hint("The host of this runtime has given it no directory to keep one in.")
        })
    }

    fn place(&self, effect: Effect, path: &Path) -> Result<ResolvedPath, Error> {
        self.grant.place(self.runtime, self.session, effect, path)
    }
}
