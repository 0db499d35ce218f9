//! Lists a tree, on all cores if it is large.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use toolcrib_fs::{BulkReader, EntryKind, Stamp};

use crate::deadline::Deadline;
use crate::ignore_rules::{IgnoreFiles, IgnoreRules, RuleScope, ignores};
use crate::listing::{ListedDirectory, ListedKind, Listing, MAX_NAMED};
use crate::parallel_ordered::threads;

/// The parameters of a walk.
pub struct Walk<'a> {
    /// The root and its tree.
    pub tree: &'a BulkReader,
    /// The directory to begin with, relative to the root. No rule hides it, since it was named.
    pub start: &'a Path,
    /// Include ignored files.
    pub ignored: bool,
    /// Paths that were named, relative to the root. No rule hides them.
    pub named: &'a [PathBuf],
    /// Absolute paths to exclude: our own state and configuration.
    pub own: &'a [PathBuf],
    /// When to stop.
    pub stop: &'a Deadline<'a>,
}

/// Number of directories that one thread lists before it starts others. Most trees have fewer, and starting a
/// thread takes as long as listing some.
const SINGLE_THREAD_DIRECTORIES: usize = 48;

/// The longest path that the system opens.
const MAX_PATH_BYTES: usize = 4095;

/// Version control directories. They are skipped unless named.
pub const VERSION_CONTROL: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// Lists all files and symlinks beneath a directory, except ignored ones. Symlinks are not followed, so that
/// each file is listed once. The result is in path order, independent of the number of threads.
pub fn walk(walk: &Walk<'_>) -> Listing {
    let rules = walk.rules_at_start();
    let first = ListedDirectory { path: walk.start.to_owned(), ..ListedDirectory::default() };
    let task = Task { directory: 0, path: walk.start.to_owned(), hidden: false, rules };
    let (directories, complete) = walk_pending(walk, vec![Arc::new(first)], vec![task]);
    let directories = Arc::new(directories);
    Listing { directories, top: 0, complete, is_cached: false, summary: Arc::default() }
}

/// Lists the pending directories and everything beneath them. Also returns whether the walk finished before
/// its deadline.
pub(crate) fn walk_pending(
    walk: &Walk<'_>,
    directories: Vec<Arc<ListedDirectory>>,
    pending: Vec<Task>,
) -> (Vec<Arc<ListedDirectory>>, bool) {
    let state = State { directories, pending, busy: 0, stopped: false };
    let shared = Shared { state: Mutex::new(state), wake: Condvar::new() };
    work(walk, &shared, SINGLE_THREAD_DIRECTORIES);
    if !shared.state.lock().pending.is_empty() {
        std::thread::scope(|scope| {
            for _ in 1..threads() {
                scope.spawn(|| work(walk, &shared, usize::MAX));
            }
            work(walk, &shared, usize::MAX);
        });
    }
    let state = shared.state.into_inner();
    (state.directories, !state.stopped)
}

/// Lists changed directories again, and new ones beneath them. The rest of the old listing stays. `None` if a
/// full walk is needed: an ignore file changed, or the deadline passed.
pub(crate) fn list_again(
    walk: &Walk<'_>,
    mut directories: Vec<Arc<ListedDirectory>>,
    changed: &[u32],
) -> Option<Vec<Arc<ListedDirectory>>> {
    let mut worker = Worker::new(walk);
    let mut pending = Vec::new();
    for &at in changed {
        let old = directories[at as usize].clone();
        if old.gone {
            continue;
        }
        let task = Task {
            directory: at,
            path: old.path.clone(),
            hidden: old.hidden,
            rules: old.inherited_rules.clone(),
        };
        let (listed, subdirectories) = worker.list(&task, Some(&old));
        if worker.rules_changed || walk.stop.is_over() {
            return None;
        }
        let mut kept: HashMap<&OsStr, u32> = HashMap::new();
        kept.extend(old.entries.iter().filter_map(|entry| match entry.kind {
            ListedKind::Directory(child) => Some((old.name(*entry), child)),
            _ => None,
        }));
        store_directory(
            &mut directories,
            &mut pending,
            task,
            listed,
            subdirectories,
            Some(&old),
            &mut kept,
        );
        kept.into_values().for_each(|child| remove_subtree(&mut directories, child));
    }
    let (directories, complete) = walk_pending(walk, directories, pending);
    complete.then_some(directories)
}

/// Removes a directory and everything beneath it from a listing.
fn remove_subtree(directories: &mut [Arc<ListedDirectory>], at: u32) {
    let mut pending = vec![at];
    while let Some(at) = pending.pop() {
        let gone = Arc::new(ListedDirectory { gone: true, ..ListedDirectory::default() });
        let old = std::mem::replace(&mut directories[at as usize], gone);
        pending.extend(old.entries.iter().filter_map(|entry| match entry.kind {
            ListedKind::Directory(child) => Some(child),
            _ => None,
        }));
    }
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    directories: Vec<Arc<ListedDirectory>>,
    pending: Vec<Task>,
    busy: usize,
    stopped: bool,
}

pub(crate) struct Task {
    pub(crate) directory: u32,
    pub(crate) path: PathBuf,
    pub(crate) hidden: bool,
    pub(crate) rules: RuleScope,
}

/// Lists pending directories, at most `most`, until there are none.
fn work(walk: &Walk<'_>, shared: &Shared, most: usize) {
    let mut worker = Worker::new(walk);
    let mut state = shared.state.lock();
    for _ in 0..most {
        let task = loop {
            if state.stopped {
                return;
            }
            if let Some(task) = state.pending.pop() {
                break task;
            }
            if state.busy == 0 {
                shared.wake.notify_all();
                return;
            }
            shared.wake.wait(&mut state);
        };
        state.busy += 1;
        drop(state);
        let stop = walk.stop.is_over();
        let found = if stop { None } else { Some(worker.list(&task, None)) };
        state = shared.state.lock();
        state.busy -= 1;
        state.stopped |= stop;
        if let Some((listed, subdirectories)) = found {
            let State { directories, pending, .. } = &mut *state;
            store_directory(
                directories,
                pending,
                task,
                listed,
                subdirectories,
                None,
                &mut HashMap::new(),
            );
        }
        if state.pending.len() > 1 || state.busy == 0 {
            shared.wake.notify_all();
        }
    }
}

/// Stores a listed directory and adds its subdirectories to `pending`, except those that are already known.
pub(crate) fn store_directory(
    directories: &mut Vec<Arc<ListedDirectory>>,
    pending: &mut Vec<Task>,
    task: Task,
    mut listed: ListedDirectory,
    subdirectories: Vec<(OsString, RuleScope)>,
    old: Option<&ListedDirectory>,
    known: &mut HashMap<&OsStr, u32>,
) {
    let mut subdirectories = subdirectories.into_iter();
    for entry in &mut listed.entries {
        if !matches!(entry.kind, ListedKind::Directory(_)) {
            continue;
        }
        let Some((name, rules)) = subdirectories.next() else { break };
        if let Some(directory) = known.remove(name.as_os_str()) {
            entry.kind = ListedKind::Directory(directory);
            continue;
        }
        let directory = u32::try_from(directories.len()).unwrap_or(u32::MAX);
        let path = task.path.join(&name);
        let hidden = task.hidden || name.as_bytes().starts_with(b".");
        entry.kind = ListedKind::Directory(directory);
        directories.push(Arc::new(ListedDirectory {
            path: path.clone(),
            hidden,
            ..ListedDirectory::default()
        }));
        pending.push(Task { directory, path, hidden, rules });
    }
    listed.sort();
    listed.make_slots(old);
    directories[task.directory as usize] = Arc::new(listed);
}

pub(crate) struct Worker<'a> {
    walk: &'a Walk<'a>,
    /// Excluded names, by directory.
    own: HashMap<&'a Path, Vec<&'a OsStr>>,
    /// For `getdents`.
    buffer: Vec<u8>,
    /// The names in the current directory, concatenated, with the end and kind of each.
    names: Vec<u8>,
    found: Vec<(usize, EntryKind)>,
    /// The current path, relative to the root.
    path: Vec<u8>,
    /// Whether an ignore file has appeared in or disappeared from a directory that was listed before.
    rules_changed: bool,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(walk: &'a Walk<'a>) -> Self {
        let (buffer, names, found, path) = Default::default();
        let mut own: HashMap<&Path, Vec<&OsStr>> = HashMap::new();
        for path in walk.own.iter().filter_map(|own| own.strip_prefix(walk.tree.path()).ok()) {
            if let (Some(directory), Some(name)) = (path.parent(), path.file_name()) {
                own.entry(directory).or_default().push(name);
            }
        }
        Worker { walk, own, buffer, names, found, path, rules_changed: false }
    }

    /// Lists a directory. Returns its entries, and its subdirectories with the rules that apply in them.
    /// `old` is the previous listing.
    pub(crate) fn list(
        &mut self,
        task: &Task,
        old: Option<&ListedDirectory>,
    ) -> (ListedDirectory, Vec<(OsString, RuleScope)>) {
        let mut listed = ListedDirectory {
            path: task.path.clone(),
            hidden: task.hidden,
            inherited_rules: task.rules.clone(),
            ..ListedDirectory::default()
        };
        if task.path.as_os_str().len() > MAX_PATH_BYTES {
            listed.pruned.too_deep = 1;
            return (listed, Vec::new());
        }
        let Some(scope) = self.read_names(task, &mut listed, old) else {
            listed.pruned.unreadable = 1;
            listed.pruned.unreadable_names.push(task.path.clone());
            return (listed, Vec::new());
        };
        let own = self.own.get(task.path.as_path()).cloned().unwrap_or_default();
        self.path.clear();
        self.path.extend_from_slice(task.path.as_os_str().as_bytes());
        if !self.path.is_empty() {
            self.path.push(b'/');
        }
        let (prefix, names) = (self.path.len(), std::mem::take(&mut self.names));
        let (mut start, mut subdirectories) = (0, Vec::new());
        for at in 0..self.found.len() {
            let (end, kind) = self.found[at];
            let name = OsStr::from_bytes(&names[start..end]);
            start = end;
            self.path.truncate(prefix);
            self.path.extend_from_slice(name.as_bytes());
            if kind != EntryKind::Special && !own.contains(&name) && !self.is_unnamed_vcs(name) {
                self.add_entry(&scope, name, kind, &mut listed, &mut subdirectories);
            }
        }
        self.names = names;
        (listed, subdirectories)
    }

    /// Reads the names in a directory. Returns the rules that apply in it.
    fn read_names(
        &mut self,
        task: &Task,
        listed: &mut ListedDirectory,
        old: Option<&ListedDirectory>,
    ) -> Option<RuleScope> {
        let Worker { walk, buffer, names, found, .. } = self;
        names.clear();
        found.clear();
        let mut files = IgnoreFiles::default();
        let directory = walk.tree.directory(&task.path).ok()?;
        let stamp = directory.stamp();
        listed.identity = stamp.map(|stamp| stamp.identity);
        listed.stamp = stamp.filter(Stamp::is_settled);
        let read = directory.each_with(buffer, |name, kind| {
            files.note(name);
            names.extend_from_slice(name.as_bytes());
            found.push((names.len(), kind));
            true
        });
        read.ok()?;
        listed.ignore_files = files;
        if let Some(old) = old {
            self.rules_changed |= old.ignore_files != files;
            listed.ignore_stamps.clone_from(&old.ignore_stamps);
            listed.rules = old.rules.clone();
            return Some(old.rules.clone());
        }
        listed.rules = match &task.rules {
            RuleScope::Ruled(rules) if !walk.ignored => {
                // Before the files are read, so that a concurrent change is detected.
                let stamped = |name| {
                    let path = task.path.join(name);
                    (walk.tree.stamp(&path).map(Stamp::settled), path)
                };
                listed.ignore_stamps = files.paths().map(stamped).collect();
                let rules = rules.as_ref();
                RuleScope::Ruled(IgnoreRules::enter(
                    rules, walk.tree, &directory, &task.path, files,
                ))
            }
            scope => scope.clone(),
        };
        Some(listed.rules.clone())
    }

    fn add_entry(
        &self,
        scope: &RuleScope,
        name: &OsStr,
        kind: EntryKind,
        listed: &mut ListedDirectory,
        subdirectories: &mut Vec<(OsString, RuleScope)>,
    ) {
        let is_directory = kind == EntryKind::Directory;
        let ignored = !self.walk.ignored
            && match scope {
                RuleScope::Ruled(rules) => ignores(rules.as_ref(), &self.path, is_directory),
                RuleScope::NamedBelow => true,
            };
        let scope = if ignored {
            match self.named_relation() {
                NamedRelation::Itself => RuleScope::Ruled(Some(IgnoreRules::allow_all())),
                NamedRelation::Descendant if is_directory => RuleScope::NamedBelow,
                _ => return record_ignored(listed, &self.path, is_directory),
            }
        } else {
            scope.clone()
        };
        match kind {
            EntryKind::Directory => {
                listed.push(name, ListedKind::Directory(u32::MAX));
                subdirectories.push((name.to_owned(), scope));
            }
            EntryKind::Link => listed.push(name, ListedKind::Symlink),
            _ => listed.push(name, ListedKind::File),
        }
    }

    /// Whether the name is a version control directory that was not named.
    fn is_unnamed_vcs(&self, name: &OsStr) -> bool {
        VERSION_CONTROL.iter().any(|known| name == *known)
            && !self.is_named_or_above_named(Path::new(OsStr::from_bytes(&self.path)))
    }

    fn is_named_or_above_named(&self, path: &Path) -> bool {
        self.walk.named.iter().any(|named| named.starts_with(path))
    }

    /// How the current path relates to the named paths.
    fn named_relation(&self) -> NamedRelation {
        let path = Path::new(OsStr::from_bytes(&self.path));
        let mut named_relation = NamedRelation::None;
        for named in self.walk.named {
            if path == named {
                return NamedRelation::Itself;
            }
            if named.starts_with(path) {
                named_relation = NamedRelation::Descendant;
            }
        }
        named_relation
    }
}

enum NamedRelation {
    None,
    /// It is a named path.
    Itself,
    /// It is above a named path.
    Descendant,
}

fn record_ignored(listed: &mut ListedDirectory, path: &[u8], is_directory: bool) {
    let pruned = &mut listed.pruned;
    if is_directory {
        pruned.ignored_directories += 1;
    } else {
        pruned.ignored_files += 1;
    }
    // Directories first: they hide more.
    if pruned.ignored_names.len() < MAX_NAMED || is_directory {
        let mut name = path.to_vec();
        let at = if is_directory { 0 } else { pruned.ignored_names.len() };
        if is_directory {
            name.push(b'/');
        }
        pruned.ignored_names.insert(at, PathBuf::from(OsStr::from_bytes(&name)));
        pruned.ignored_names.truncate(MAX_NAMED);
    }
}

impl Walk<'_> {
    /// The rules that apply at the start of the walk. If they ignore the start itself, no rule applies, since
    /// a named directory is not hidden.
    fn rules_at_start(&self) -> RuleScope {
        if self.ignored {
            return RuleScope::Ruled(Some(IgnoreRules::allow_all()));
        }
        let mut rules: Option<Arc<IgnoreRules>> = None;
        let mut here = PathBuf::new();
        let mut buffer = Vec::new();
        for name in self.start.components() {
            let mut files = IgnoreFiles::default();
            let Ok(directory) = self.tree.directory(&here) else { break };
            let read = directory.each_with(&mut buffer, |name, _| {
                files.note(name);
                true
            });
            if read.is_err() {
                break;
            }
            rules = IgnoreRules::enter(rules.as_ref(), self.tree, &directory, &here, files);
            here.push(name);
            if ignores(rules.as_ref(), here.as_os_str().as_bytes(), true) {
                return RuleScope::Ruled(Some(IgnoreRules::allow_all()));
            }
        }
        RuleScope::Ruled(rules)
    }
}
