//! Hidden paths, which no tool reads, writes or lists: the host's own files, those of the user's other servers,
//! and the user's secrets.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_fs::{ReservedPaths, Workspace, real_path, symlinks_on_the_way};

#[derive(Debug)]
pub(crate) struct Hidden {
    own: Vec<PathBuf>,
    /// Symlinks on the way to the host's own files. A tool that replaces one replaces the files.
    symlinks: HashSet<PathBuf>,
    /// Paths that other servers have registered.
    registry: Option<ReservedPaths>,
    roots: Vec<PathBuf>,
    /// The user's secrets, both by resolved path and by resolved parent directory with the unresolved last
    /// component.
    secrets: HashSet<PathBuf>,
}

/// Why a path is hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Belongs to the host or to another server.
    Own,
    /// Is at or below this secret path.
    Secret(PathBuf),
    /// Is below this system directory, which is closed to file tools.
    System(PathBuf),
}

impl Hidden {
    /// A root inside a secret path is not hidden: the operator has opened it.
    pub(crate) fn new(
        own: &[PathBuf],
        secrets: &[PathBuf],
        registry: Option<ReservedPaths>,
        workspace: &Workspace,
    ) -> Hidden {
        let roots: Vec<PathBuf> = workspace.roots().map(|root| root.path().to_owned()).collect();
        let secrets = secrets.iter().flat_map(|path| [named_path(path), real_path(path)]).collect();
        let symlinks = own.iter().flat_map(|path| symlinks_on_the_way(path)).collect();
        let own = own.iter().map(|path| real_path(path)).collect();
        Hidden { own, symlinks, registry, roots, secrets }
    }

    /// Paths of the host and of other servers.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        let recorded = self.recorded();
        self.own.iter().chain(self.of_others(&recorded)).cloned().collect()
    }

    /// All hidden paths, in a stable order.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        let mut secrets: Vec<PathBuf> = self.secrets.iter().cloned().collect();
        secrets.sort();
        [self.own(), secrets].concat()
    }

    /// Hidden paths below a directory, which a walk skips.
    pub(crate) fn beneath(&self, directory: &Path) -> Vec<PathBuf> {
        let mut all = self.all();
        all.retain(|path| path.starts_with(directory) && path != directory);
        all
    }

    /// Why a resolved path is hidden. `None` if it is not.
    pub(crate) fn reason(&self, path: &Path) -> Option<Reason> {
        let recorded = self.recorded();
        let mut own = self.own.iter().chain(self.of_others(&recorded));
        if own.any(|own| path.starts_with(own)) || self.symlinks.contains(path) {
            return Some(Reason::Own);
        }
        self.secret_containing(path).map(|secret| Reason::Secret(secret.to_owned()))
    }

    /// Whether a directory contains a hidden path, or a symlink on the way to one.
    pub(crate) fn has_beneath(&self, directory: &Path) -> bool {
        let all = self.all();
        let mut all = all.iter().chain(&self.symlinks);
        all.any(|hidden| hidden.starts_with(directory))
    }

    /// The secret path that is or contains a path.
    pub(crate) fn secret_containing<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        // The operator has opened the innermost root.
        let root = self.roots.iter().filter(|root| path.starts_with(root));
        let root = root.max_by_key(|root| root.components().count());
        let mut around = path.ancestors().take_while(|path| root.is_none_or(|root| root != path));
        around.find(|path| self.secrets.contains(*path))
    }

    fn recorded(&self) -> Arc<[PathBuf]> {
        self.registry.as_ref().map(ReservedPaths::paths).unwrap_or_default()
    }

    /// Registered paths, except those that contain a root: the operator has opened them.
    fn of_others<'a>(&'a self, recorded: &'a [PathBuf]) -> impl Iterator<Item = &'a PathBuf> {
        recorded.iter().filter(|path| !holds_any(path, &self.roots))
    }
}

fn holds_any(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| root.starts_with(path))
}

/// Resolves the parent directory and keeps the last component, which may be a symlink.
fn named_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or(OsStr::new(""));
    path.parent().map_or_else(|| path.to_owned(), |above| real_path(above).join(name))
}
