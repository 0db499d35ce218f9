//! Hidden paths, which no tool reads, writes or lists: the host's own files, those of the user's other servers,
//! and the user's secrets.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolcrib_exec::{PathSet, SetPath};
use toolcrib_fs::{RealPaths, ReservedPaths, Workspace, symlinks_on_the_way};

/// How long the resolved paths of secrets are used.
const KNOWN_FOR: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Hidden {
    own: Vec<PathBuf>,
    /// Symlinks on the way to the host's own files. A tool that replaces one replaces the files.
    symlinks: HashSet<PathBuf>,
    /// Paths that other servers have registered.
    registry: Option<ReservedPaths>,
    of_others: Mutex<OfOthers>,
    roots: Vec<PathBuf>,
    /// The user's secrets as given.
    secrets: PathSet,
    /// Other spellings of the secrets, both by resolved path and by resolved parent directory with the unresolved last
    /// component. Resolved when they are needed, and again after a while: the user may replace a directory by a symlink.
    other_spellings: Mutex<Option<(Instant, Arc<HashSet<PathBuf>>)>>,
    /// The directory of other workspaces, which is one of the secrets.
    others: Option<PathBuf>,
}

/// Paths of other servers.
#[derive(Debug, Default)]
struct OfOthers {
    /// The registered paths that were read last.
    registered: Option<Arc<[PathBuf]>>,
    /// Those of them that are hidden.
    hidden: Arc<[PathBuf]>,
}

/// Why a path is hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Belongs to the host or to another server.
    Own,
    /// Is at or below this secret path.
    Secret(PathBuf),
    /// Is another workspace, or the directory that contains the workspaces.
    OtherWorkspace,
    /// Is below this system directory, which is closed to file tools.
    System(PathBuf),
}

impl Hidden {
    /// A root inside a secret path is not hidden: the operator has opened it.
    pub(crate) fn new(
        own: &[PathBuf],
        secrets: PathSet,
        registry: Option<ReservedPaths>,
        workspace: &Workspace,
    ) -> Hidden {
        let roots: Vec<PathBuf> = workspace.roots().map(|root| root.path().to_owned()).collect();
        let symlinks = own.iter().flat_map(|path| symlinks_on_the_way(path)).collect();
        let mut real_paths = RealPaths::default();
        let own = own.iter().map(|path| real_paths.resolve(path)).collect();
        let (of_others, other_spellings) = (Mutex::default(), Mutex::default());
        Hidden { own, symlinks, registry, of_others, roots, secrets, other_spellings, others: None }
    }

    /// Names one of the secrets as the directory of other workspaces, so that errors say what it is.
    pub(crate) fn with_other_workspaces(self, others: Option<PathBuf>) -> Hidden {
        Hidden { others, ..self }
    }

    /// Whether a secret is the directory of other workspaces.
    pub(crate) fn contains_other_workspaces(&self, secret: &Path) -> bool {
        self.others.as_deref() == Some(secret)
    }

    /// Paths of the host and of other servers.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        self.own.iter().chain(self.of_others().iter()).cloned().collect()
    }

    /// All hidden paths, in a stable order.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        let others = self.other_spellings();
        let others = others.iter().map(PathBuf::as_path);
        let mut secrets: Vec<PathBuf> =
            self.secrets.iter().chain(others).map(Path::to_owned).collect();
        secrets.sort();
        [self.own(), secrets].concat()
    }

    /// Hidden paths below a directory, which a walk skips.
    pub(crate) fn beneath(&self, directory: &Path) -> Vec<PathBuf> {
        let own = self.own().into_iter().filter(|path| path.starts_with(directory));
        let secrets = self.secrets_at_or_beneath(directory);
        let mut all: Vec<PathBuf> = own.chain(secrets).filter(|path| path != directory).collect();
        all.sort();
        all
    }

    /// The paths that commands do not see.
    pub(crate) fn paths_for_sandbox(&self) -> PathSet {
        let mut all = self.secrets.clone();
        all.add(&self.own());
        all
    }

    /// Why a resolved path is hidden. `None` if it is not.
    pub(crate) fn reason(&self, path: &Path) -> Option<Reason> {
        let of_others = self.of_others();
        let mut own = self.own.iter().chain(of_others.iter());
        if own.any(|own| path.starts_with(own)) || self.symlinks.contains(path) {
            return Some(Reason::Own);
        }
        self.secret_containing(path).map(|secret| {
            if self.contains_other_workspaces(secret) {
                Reason::OtherWorkspace
            } else {
                Reason::Secret(secret.to_owned())
            }
        })
    }

    /// Whether a directory contains a hidden path, or a symlink on the way to one.
    pub(crate) fn has_beneath(&self, directory: &Path) -> bool {
        let own = self.own();
        let mut own = own.iter().chain(&self.symlinks);
        own.any(|hidden| hidden.starts_with(directory))
            || !self.secrets_at_or_beneath(directory).is_empty()
    }

    fn other_spellings(&self) -> Arc<HashSet<PathBuf>> {
        let mut known = self.other_spellings.lock();
        let recent = known.as_ref().filter(|(at, _)| at.elapsed() < KNOWN_FOR);
        if let Some((_, spellings)) = recent {
            return spellings.clone();
        }
        let spellings = Arc::new(other_spellings(&self.secrets));
        *known = Some((Instant::now(), spellings.clone()));
        spellings
    }

    fn secrets_at_or_beneath(&self, directory: &Path) -> Vec<PathBuf> {
        let others = self.other_spellings();
        let others = others.iter().map(PathBuf::as_path).filter(|path| path.starts_with(directory));
        self.secrets.at_or_beneath(directory).chain(others).map(Path::to_owned).collect()
    }

    /// The secret path that is or contains a path.
    pub(crate) fn secret_containing<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        // The operator has opened the innermost root.
        let root = self.roots.iter().filter(|root| path.starts_with(root));
        let root = root.max_by_key(|root| root.components().count());
        let mut around = path.ancestors().take_while(|path| root.is_none_or(|root| root != path));
        let others = self.other_spellings();
        around.find(|path| self.secrets.contains(path) || others.contains(*path))
    }

    /// Paths of other servers, except those that contain a root: the operator has opened them.
    fn of_others(&self) -> Arc<[PathBuf]> {
        let registered = self.registry.as_ref().map(ReservedPaths::paths).unwrap_or_default();
        let mut known = self.of_others.lock();
        if !known.registered.as_ref().is_some_and(|known| Arc::ptr_eq(known, &registered)) {
            let hidden = registered.iter().filter(|path| !holds_any(path, &self.roots));
            known.hidden = hidden.cloned().collect();
            known.registered = Some(registered);
        }
        known.hidden.clone()
    }
}

fn holds_any(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| root.starts_with(path))
}

/// The spellings of paths that a resolved path may have, except the given ones.
fn other_spellings(given: &PathSet) -> HashSet<PathBuf> {
    let mut real_paths = RealPaths::default();
    let mut all = HashSet::new();
    // The last directory with its real path, if that is another one.
    let mut last: (&Path, Option<PathBuf>) = (Path::new(""), None);
    given.look(|SetPath { path, exists, existing }| {
        let mut resolve = |path: &Path| {
            let real = real_paths.resolve(path);
            (real.as_os_str() != path.as_os_str()).then_some(real)
        };
        if last.0.as_os_str() != existing.as_os_str() {
            last = (existing, resolve(existing));
        }
        // The last component stays, also if it is a symlink. Missing directories have no other spelling.
        if let Some(directory) = &last.1
            && let Ok(rest) = path.strip_prefix(existing)
        {
            all.insert(directory.join(rest));
        }
        // A missing path has no other spelling.
        all.extend(exists.then(|| resolve(path)).flatten());
    });
    all
}
