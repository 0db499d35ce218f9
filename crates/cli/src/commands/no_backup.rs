//! The backups of a server in a program without the feature `backup`: there are none.

use std::path::PathBuf;
use std::sync::Arc;

use toolcrib::{Runtime, WriteGate};

use crate::args::Common;

/// No value of it exists.
#[derive(Clone)]
pub(crate) enum ServedBackup {}

impl ServedBackup {
    pub(crate) fn start(_: Option<&String>) -> Result<Option<ServedBackup>, String> {
        Ok(None)
    }

    pub(crate) fn own(_: Option<&ServedBackup>) -> Vec<PathBuf> {
        Vec::new()
    }

    pub(crate) fn follow(
        _: Option<&ServedBackup>,
        _: &Runtime,
        _: Option<&str>,
        _: Option<Arc<dyn WriteGate>>,
    ) -> Result<Option<ServedBackup>, String> {
        Ok(None)
    }
}

/// There is nothing to say about backups.
pub(super) fn finding(_: &Common) -> Option<Result<String, String>> {
    None
}
