//! The workspace as a program reads it that copies it elsewhere.

use std::path::PathBuf;
use std::sync::Arc;

use toolcrib_fs::{BulkReader, ChangeOutbox, Journal, RootMode};

use crate::error::{Error, ErrorKind};
use crate::hidden_paths::Hidden;
use crate::history::History;
use crate::reachable_paths::Paths;

/// The files and the history of a workspace, for a copy of both.
pub struct BackupSource {
    tree: BulkReader,
    root: PathBuf,
    hidden: Arc<Hidden>,
    journal: Journal,
}

impl BackupSource {
    pub(crate) fn new(paths: &Paths, history: &History) -> Result<BackupSource, Error> {
        let journal = history.require_journal()?.clone();
        let is_writable = |tree: &BulkReader| {
            let mut roots = paths.workspace.roots();
            roots.any(|root| root.path() == tree.path() && root.mode() == RootMode::ReadWrite)
        };
        let mut trees = paths.workspace.trees().filter(is_writable);
        let (Some(tree), None) = (trees.next(), trees.next()) else {
            let message =
                "a backup is of one root that tools may change, and there is not exactly one";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let root = paths.workspace.location(tree.path());
        Ok(BackupSource { tree, root, hidden: paths.hidden.clone(), journal })
    }

    /// The root.
    pub fn tree(&self) -> BulkReader {
        self.tree.clone()
    }

    /// The paths in the root that tools do not see. They can become more while the runtime exists.
    pub fn hidden(&self) -> Vec<PathBuf> {
        self.hidden.beneath(self.tree.path())
    }

    /// The history of the root, whose copy goes to `copy`.
    pub fn outbox(&self, copy: &str) -> ChangeOutbox {
        ChangeOutbox::of(self.journal.clone(), &self.root, copy)
    }
}
