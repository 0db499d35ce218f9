//! The store of a server in a program without the feature `postgres`: there is none.

use std::path::PathBuf;
use std::sync::Arc;

use toolcrib::{Runtime, WriteGate};
use toolcrib_monitor::SharedQuestions;

use crate::args::{Common, ServeArgs};

/// No value of it exists.
#[derive(Clone)]
pub(crate) enum ServedStore {}

impl ServedStore {
    pub(crate) fn start(_: &Common, _: &ServeArgs) -> Result<Option<ServedStore>, String> {
        Ok(None)
    }

    pub(crate) fn own(_: Option<&ServedStore>) -> Vec<PathBuf> {
        Vec::new()
    }

    pub(crate) fn hold(
        _: Option<&ServedStore>,
        _: Option<&str>,
    ) -> Result<Option<ServedStore>, String> {
        Ok(None)
    }

    pub(crate) fn gate(_: Option<&ServedStore>) -> Option<Arc<dyn WriteGate>> {
        None
    }

    pub(crate) fn limit(_: Option<&ServedStore>, _: &mut Runtime, _: Option<&str>) {}

    pub(crate) fn questions(
        _: Option<&ServedStore>,
        _: &Runtime,
        _: Option<&str>,
    ) -> Option<Arc<dyn SharedQuestions>> {
        None
    }

    pub(crate) fn follow(
        _: Option<&ServedStore>,
        _: &Runtime,
        _: Option<&str>,
    ) -> Option<ServedStore> {
        None
    }
}
