//! How a job is started.

use std::sync::Arc;

use crate::guard::Guard;
use crate::sandbox::Sandbox;
use crate::sandbox::level::Level;

/// How a job is started: its id, and its sandbox.
#[derive(Debug, Default)]
pub struct StartOptions<'a> {
    pub(crate) id: Option<ReservedId>,
    pub(crate) sandbox: Option<(&'a Sandbox, Arc<dyn Guard>)>,
    pub(crate) level: Option<Level>,
    /// Without a sandbox, the one whose limits still hold.
    pub(crate) limits_of: Option<&'a Sandbox>,
}

impl<'a> StartOptions<'a> {
    /// No sandbox.
    pub fn unconfined() -> StartOptions<'a> {
        StartOptions::default()
    }

    /// No sandbox, because something around this system confines the command. The limits of this sandbox hold.
    pub fn limited(sandbox: &'a Sandbox) -> StartOptions<'a> {
        StartOptions { limits_of: Some(sandbox), ..StartOptions::default() }
    }

    /// A sandbox, at the level that the system supports. The guard decides about each file change.
    pub fn sandboxed(sandbox: &'a Sandbox, guard: Arc<dyn Guard>) -> StartOptions<'a> {
        StartOptions { sandbox: Some((sandbox, guard)), ..StartOptions::default() }
    }

    /// The same with an id that was reserved before.
    #[must_use]
    pub fn with_id(self, id: ReservedId) -> StartOptions<'a> {
        StartOptions { id: Some(id), ..self }
    }

    /// The same with a sandbox at this level, even if the system supports a higher one.
    pub(crate) fn at_level(self, level: Level) -> StartOptions<'a> {
        StartOptions { level: Some(level), ..self }
    }
}

/// The id of a job that is about to be started.
#[derive(Debug)]
pub struct ReservedId {
    pub(crate) number: u64,
    pub(crate) id: String,
}

impl ReservedId {
    /// The id, such as `sh_1`.
    pub fn as_str(&self) -> &str {
        &self.id
    }
}
