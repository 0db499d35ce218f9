//! Places that no tool reads, writes or lists: the host's own, those of other servers of the user, and the
//! user's secrets.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_fs::{Registry, Workspace, real_path};

/// All such places.
#[derive(Debug)]
pub(crate) struct Hidden {
    own: Vec<PathBuf>,
    /// What other servers have recorded as theirs.
    registry: Option<Registry>,
    roots: Vec<PathBuf>,
    /// The user's secrets, by the real paths of their directories and by their own.
    secrets: HashSet<PathBuf>,
}

/// Why a place is hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is the host's own, or another server's.
    Own,
    /// It lies in this place, which is said to hold secrets.
    Secret(PathBuf),
    /// It lies in this directory of the system, which is closed to file tools.
    System(PathBuf),
}

impl Hidden {
    /// `own` are real paths. A root in a secret place is not hidden: the operator has opened it.
    pub(crate) fn new(
        own: Vec<PathBuf>,
        secrets: &[PathBuf],
        registry: Option<Registry>,
        workspace: &Workspace,
    ) -> Hidden {
        let roots: Vec<PathBuf> = workspace.roots().map(|root| root.path().to_owned()).collect();
        let secrets = secrets.iter().flat_map(|path| [named_path(path), real_path(path)]).collect();
        Hidden { own, registry, roots, secrets }
    }

    /// What is the host's own, or another server's.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        let recorded = self.recorded();
        self.own.iter().chain(self.of_others(&recorded)).cloned().collect()
    }

    /// Everything, always in the same order.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        let mut secrets: Vec<PathBuf> = self.secrets.iter().cloned().collect();
        secrets.sort();
        [self.own(), secrets].concat()
    }

    /// What is beneath a directory, for a walk that leaves it out.
    pub(crate) fn beneath(&self, directory: &Path) -> Vec<PathBuf> {
        let mut all = self.all();
        all.retain(|path| path.starts_with(directory) && path != directory);
        all
    }

    /// Why a real path is hidden, if it is.
    pub(crate) fn reason(&self, path: &Path) -> Option<Reason> {
        let recorded = self.recorded();
        let mut own = self.own.iter().chain(self.of_others(&recorded));
        if own.any(|own| path.starts_with(own)) {
            return Some(Reason::Own);
        }
        // From the innermost root on, the operator has opened it.
        let root = self.roots.iter().filter(|root| path.starts_with(root));
        let root = root.max_by_key(|root| root.components().count());
        let mut around = path.ancestors().take_while(|path| root.is_none_or(|root| root != path));
        around.find(|path| self.secrets.contains(*path)).map(|path| Reason::Secret(path.to_owned()))
    }

    fn recorded(&self) -> Arc<[PathBuf]> {
        self.registry.as_ref().map(Registry::paths).unwrap_or_default()
    }

    /// What is recorded, but for what holds a root: the operator has opened it.
    fn of_others<'a>(&'a self, recorded: &'a [PathBuf]) -> impl Iterator<Item = &'a PathBuf> {
        recorded.iter().filter(|path| !holds_any(path, &self.roots))
    }
}

/// Whether a path is one of the roots, or leads to one.
fn holds_any(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| root.starts_with(path))
}

/// A path whose directory is real and whose last name is as given: it may be a link.
fn named_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or(OsStr::new(""));
    path.parent().map_or_else(|| path.to_owned(), |above| real_path(above).join(name))
}
