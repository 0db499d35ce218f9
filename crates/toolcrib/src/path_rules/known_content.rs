//! The content that protected files of a work tree may have: content of the user's own commits at the same
//! path, and earlier content of the files themselves.
//!
//! Git writes protected files whenever it checks out another commit. A commit that existed before any command
//! of this runtime changed the repository is the user's own, and so are its ancestors. Their ids are recorded
//! before the first change to a repository. A commit's id proves its content and its ancestors, so nothing that
//! a command writes later is among them. The path matters, too: content that is harmless in one file may be
//! dangerous in another.
//!
//! The content that a protected file had when a command replaced or removed it is the user's as well, since no
//! command could have written any other. This allows `git stash pop`.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use toolcrib_fs::{BulkReader, Root, RootMode, Workspace, real_path};
use toolcrib_policy::git_config;

use crate::git::directory;
use crate::git::find_in_history;
use crate::git::objects::{ObjectId, ObjectStore};
use crate::git::refs;
use crate::hidden_paths::Hidden;

/// Entries of a git directory that refer to commits.
const COMMIT_ENTRIES: [&str; 5] = ["HEAD", "logs", "packed-refs", "refs", "reftable"];

/// Limit of recorded commits.
const MAX_COMMITS: usize = 100_000;

/// Limit of recorded contents.
const MAX_CONTENTS: usize = 100_000;

/// Limit of recorded files that commands have added to repositories.
const MAX_ADDED: usize = 100_000;

/// Limit of kept bytes of removed files. They are restored if their replacement is rejected.
const MAX_REMOVED_BYTES: usize = 16 << 20;

/// Limit of repositories from which others were cloned or borrow objects.
const MAX_SOURCES: usize = 16;

/// Directories that are different for commands and for this process.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

#[derive(Debug, Default)]
pub(super) struct KnownContent {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Commits that existed before the commands, without duplicates.
    commits: Vec<ObjectId>,
    known_commits: HashSet<ObjectId>,
    /// Git directories whose commits are recorded, by inode identity.
    recorded: HashSet<(u64, u64)>,
    /// Git directories that commands have created.
    created_by_commands: HashSet<(u64, u64)>,
    /// Files and directories that commands have added to repositories.
    added_by_commands: HashSet<PathBuf>,
    /// Git directories of work trees whose `.git` file was changed or removed, by resolved path of the work
    /// tree.
    former_directories: HashMap<PathBuf, PathBuf>,
    /// Contents that protected files had, or got after a review.
    accepted: HashSet<(PathBuf, ObjectId)>,
    /// The same contents at any path.
    accepted_anywhere: HashSet<ObjectId>,
    /// Protected files that commands have removed, with their modes.
    removed: HashMap<PathBuf, (Vec<u8>, u32)>,
    removed_bytes: usize,
}

/// Where repositories are searched.
#[derive(Debug, Clone, Copy)]
pub(super) struct RepositoryLocations<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) caches: Option<&'a Workspace>,
    pub(super) hidden: &'a Hidden,
}

impl KnownContent {
    /// Called before a command changes a path. Records the commits of a repository first, if the path refers to
    /// them.
    pub(super) fn before_change(&self, tree: &BulkReader, relative: &Path) {
        if relative.file_name().is_some_and(|name| name == ".git")
            && let Some(work_tree) = relative.parent()
            && let Some(directory) = directory::of_work_tree(tree, work_tree)
        {
            self.state
                .lock()
                .former_directories
                .entry(tree.path().join(work_tree))
                .or_insert(directory);
        }
        let mut directory = PathBuf::new();
        for name in relative.iter() {
            if COMMIT_ENTRIES.iter().any(|tells| name == *tells) {
                self.record(tree, &directory);
            }
            directory.push(name);
        }
    }

    /// Records the commits of the repositories that contain a directory.
    pub(super) fn record_around(&self, tree: &BulkReader, directory: &Path) {
        for work_tree in directory.ancestors() {
            if let Some(directory) = directory::of_work_tree(tree, work_tree) {
                self.record(tree, &directory);
            }
        }
    }

    /// Called before a command turns a directory into a git directory: its commits are not the user's.
    pub(super) fn mark_created(&self, tree: &BulkReader, directory: &Path) {
        if let Some(stamp) = tree.stamp(directory) {
            self.state.lock().created_by_commands.insert(stamp.identity);
        }
    }

    /// Whether a command has created a git directory.
    pub(super) fn was_created_by_command(&self, tree: &BulkReader, directory: &Path) -> bool {
        let stamp = tree.stamp(directory);
        stamp.is_some_and(|stamp| self.state.lock().created_by_commands.contains(&stamp.identity))
    }

    /// Called before a command adds a file or directory to a repository.
    pub(super) fn mark_added(&self, path: &Path) {
        let mut state = self.state.lock();
        if state.added_by_commands.len() < MAX_ADDED {
            state.added_by_commands.insert(path.to_owned());
        }
    }

    /// Whether a command has added a path to a repository.
    pub(super) fn was_added_by_command(&self, path: &Path) -> bool {
        self.state.lock().added_by_commands.contains(path)
    }

    /// Called before a directory is removed: another one may get its inode number.
    pub(super) fn forget(&self, tree: &BulkReader, directory: &Path) {
        let mut state = self.state.lock();
        if !state.created_by_commands.is_empty()
            && let Some(stamp) = tree.stamp(directory)
        {
            state.created_by_commands.remove(&stamp.identity);
        }
    }

    /// Called before a protected file is replaced or removed.
    pub(super) fn remember_removed(&self, path: &Path, content: &[u8], mode: u32) {
        self.accept(path, content);
        let mut state = self.state.lock();
        if state.removed_bytes + content.len() > MAX_REMOVED_BYTES {
            state.removed.clear();
            state.removed_bytes = 0;
        }
        state.removed_bytes += content.len();
        state.removed.insert(path.to_owned(), (content.to_owned(), mode));
    }

    /// Accepts a content for a protected file: it has it, or gets it after a review.
    pub(super) fn accept(&self, path: &Path, content: &[u8]) {
        let mut state = self.state.lock();
        if state.accepted.len() < MAX_CONTENTS {
            let id = ObjectId::of_file(content);
            state.accepted.insert((path.to_owned(), id));
            state.accepted_anywhere.insert(id);
        }
    }

    /// Whether a content was accepted for some protected file. Then removing it from another does no harm.
    pub(super) fn accepts_anywhere(&self, content: &[u8]) -> bool {
        self.state.lock().accepted_anywhere.contains(&ObjectId::of_file(content))
    }

    /// Content and mode of a protected file that a command has removed.
    pub(super) fn removed(&self, path: &Path) -> Option<(Vec<u8>, u32)> {
        self.state.lock().removed.get(path).cloned()
    }

    /// Whether a protected file may have a content.
    pub(super) fn allows(
        &self,
        places: RepositoryLocations<'_>,
        tree: &BulkReader,
        file: &Path,
        content: &[u8],
    ) -> bool {
        let id = ObjectId::of_file(content);
        if self.state.lock().accepted.contains(&(tree.path().join(file), id)) {
            return true;
        }
        let found = file.ancestors().skip(1).find_map(|work_tree| {
            let former =
                || self.state.lock().former_directories.get(&tree.path().join(work_tree)).cloned();
            let directory = directory::of_work_tree(tree, work_tree).or_else(former)?;
            Some((work_tree, directory))
        });
        let Some((work_tree, directory)) = found else { return false };
        let Ok(inner) = file.strip_prefix(work_tree) else { return false };
        self.record_sources(places, tree, work_tree, &directory);
        let store = ObjectStore::new(object_directories(places, tree, &directory));
        let commits = self.state.lock().commits.clone();
        // The cheap check first: most unknown contents are not in the store.
        store.has(id) && find_in_history::contains(&store, &commits, inner, id)
    }

    /// Records the commits of a git directory once, unless a command has created it.
    fn record(&self, tree: &BulkReader, directory: &Path) {
        let Some(stamp) = tree.stamp(directory) else { return };
        let mut state = self.state.lock();
        if state.created_by_commands.contains(&stamp.identity)
            || state.recorded.contains(&stamp.identity)
        {
            return;
        }
        if !directory::is_complete(tree, directory, None) {
            return;
        }
        state.recorded.insert(stamp.identity);
        for commit in refs::tips(tree, directory) {
            if state.commits.len() < MAX_COMMITS && state.known_commits.insert(commit) {
                state.commits.push(commit);
            }
        }
    }

    /// Records the commits of a repository that is still unchanged, and of the local repositories from which it
    /// was cloned.
    fn record_sources(
        &self,
        places: RepositoryLocations<'_>,
        tree: &BulkReader,
        work_tree: &Path,
        directory: &Path,
    ) {
        let mut pending = vec![(tree.clone(), work_tree.to_owned(), directory.to_owned())];
        for _ in 0..MAX_SOURCES {
            let Some((tree, work_tree, directory)) = pending.pop() else { return };
            self.record(&tree, &directory);
            for address in local_remotes(&tree, &directory).iter().take(MAX_SOURCES) {
                let path = tree.path().join(&work_tree).join(address);
                let Some((tree, place)) = places.find(&path) else { continue };
                if directory::is_complete(&tree, &place, None) {
                    pending.push((tree, place.clone(), place));
                } else if let Some(directory) = directory::of_work_tree(&tree, &place) {
                    pending.push((tree, place, directory));
                }
            }
        }
    }
}

impl RepositoryLocations<'_> {
    /// Finds a directory by absolute path, with the tree that contains it. `None` if commands have other files
    /// there than this process.
    fn find(&self, path: &Path) -> Option<(BulkReader, PathBuf)> {
        let path = real_path(path);
        let inside = self.workspace.tree_of(&path).or_else(|| self.caches?.tree_of(&path));
        if inside.is_some() {
            return inside;
        }
        let is_temporary = TEMPORARY.iter().any(|temporary| path.starts_with(temporary));
        if is_temporary || self.hidden.reason(&path).is_some() {
            return None;
        }
        let root = Root::open(path, RootMode::ReadOnly).ok()?;
        let tree = Workspace::new(vec![root]).ok()?.trees().next()?;
        Some((tree, PathBuf::new()))
    }
}

/// Local paths among the remote URLs of a repository.
fn local_remotes(tree: &BulkReader, directory: &Path) -> Vec<PathBuf> {
    let text = directory::read(tree, &directory.join("config")).unwrap_or_default();
    let variables = git_config::parse(&text).unwrap_or_default();
    let address = |variable: git_config::Variable| {
        if variable.section != "remote" || variable.name != "url" {
            return None;
        }
        let value = String::from_utf8(variable.value?).ok()?;
        match value.strip_prefix("file://") {
            Some(path) => Some(path.to_owned()),
            None => (!value.contains("://")).then_some(value),
        }
    };
    variables.into_iter().filter_map(address).map(PathBuf::from).collect()
}

/// The object directory of a repository, and its alternates.
fn object_directories(
    places: RepositoryLocations<'_>,
    tree: &BulkReader,
    directory: &Path,
) -> Vec<(BulkReader, PathBuf)> {
    let mut found = vec![(tree.clone(), directory.join("objects"))];
    let mut next = 0;
    while let Some((tree, objects)) = found.get(next).cloned() {
        next += 1;
        let text = directory::read(&tree, &objects.join("info/alternates")).unwrap_or_default();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            use std::os::unix::ffi::OsStrExt as _;
            let path = tree.path().join(&objects).join(OsStr::from_bytes(line));
            if found.len() < MAX_SOURCES {
                found.extend(places.find(&path));
            }
        }
    }
    found
}
