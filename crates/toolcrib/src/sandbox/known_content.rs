//! What protected files of a work tree may say: what the user's own commits say in the same place, and what the files
//! themselves said before.
//!
//! Git writes protected files whenever it goes from one commit to another. A commit that was there before the commands
//! of this runtime changed anything is the user's own, and so is each that leads to it. The names of these commits are
//! taken down before the first change to a repository; since a commit's name vouches for its content and for the
//! commits before it, nothing that a command writes later is among them. The path counts, too: content that is
//! harmless in one file may not be so in another.
//!
//! A content that a protected file had when a command replaced or removed it is the user's as well, as no command
//! could have written another. So a stash is brought back.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_fs::{Root, RootMode, TreeReader, Workspace, real_path};
use toolcrib_policy::git_config;

use super::git_directory;
use super::git_history;
use super::git_objects::{ObjectId, ObjectStore};
use super::git_refs;
use crate::hidden_paths::Hidden;

/// Names in a git directory that tell which commits there are.
const TELL_COMMITS: [&str; 5] = ["HEAD", "logs", "packed-refs", "refs", "reftable"];

/// As many commits are known by their names.
const MAX_COMMITS: usize = 100_000;

/// As many contents of files are known.
const MAX_CONTENTS: usize = 100_000;

/// As many bytes of removed files are kept, for the case that what should replace them is refused.
const MAX_REMOVED_BYTES: usize = 16 << 20;

/// As many repositories that others were cloned from, or borrow objects from, are looked at.
const MAX_SOURCES: usize = 16;

/// Where commands write under a path that means something else to this process.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// What is known of the user's own content.
#[derive(Debug, Default)]
pub(super) struct KnownContent {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Commits that were there before the commands, each once.
    commits: Vec<ObjectId>,
    known_commits: HashSet<ObjectId>,
    /// Git directories whose commits are known, by their identity.
    recorded: HashSet<(u64, u64)>,
    /// Git directories that commands have made.
    made: HashSet<(u64, u64)>,
    /// The git directories of work trees whose `.git` file was changed or removed, by the real paths of the trees.
    former: HashMap<PathBuf, PathBuf>,
    /// Contents that protected files had, or got after a review.
    had: HashSet<(PathBuf, ObjectId)>,
    /// The same, wherever.
    had_anywhere: HashSet<ObjectId>,
    /// Protected files that commands have removed, with their modes.
    removed: HashMap<PathBuf, (Vec<u8>, u32)>,
    removed_bytes: usize,
}

/// Where repositories are looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) caches: Option<&'a Workspace>,
    pub(super) hidden: &'a Hidden,
}

impl KnownContent {
    /// A command is about to change something. If it is what tells the commits of a repository, they are taken down
    /// first.
    pub(super) fn before_change(&self, tree: &TreeReader, relative: &Path) {
        if relative.file_name().is_some_and(|name| name == ".git")
            && let Some(work_tree) = relative.parent()
            && let Some(directory) = git_directory::of_work_tree(tree, work_tree)
        {
            self.lock().former.entry(tree.path().join(work_tree)).or_insert(directory);
        }
        let mut directory = PathBuf::new();
        for name in relative.iter() {
            if TELL_COMMITS.iter().any(|tells| name == *tells) {
                self.record(tree, &directory);
            }
            directory.push(name);
        }
    }

    /// Takes down the commits of the repositories around a directory.
    pub(super) fn record_around(&self, tree: &TreeReader, directory: &Path) {
        for work_tree in directory.ancestors() {
            if let Some(directory) = git_directory::of_work_tree(tree, work_tree) {
                self.record(tree, &directory);
            }
        }
    }

    /// A command is about to make a directory a git directory: its commits are not the user's.
    pub(super) fn is_being_made(&self, tree: &TreeReader, directory: &Path) {
        if let Some(stamp) = tree.stamp(directory) {
            self.lock().made.insert(stamp.identity);
        }
    }

    /// Whether a command has made a git directory.
    pub(super) fn was_made(&self, tree: &TreeReader, directory: &Path) -> bool {
        let stamp = tree.stamp(directory);
        stamp.is_some_and(|stamp| self.lock().made.contains(&stamp.identity))
    }

    /// A directory is about to be removed. Another one may get its number.
    pub(super) fn forget(&self, tree: &TreeReader, directory: &Path) {
        let mut state = self.lock();
        if !state.made.is_empty()
            && let Some(stamp) = tree.stamp(directory)
        {
            state.made.remove(&stamp.identity);
        }
    }

    /// A protected file is about to be replaced or removed.
    pub(super) fn remember(&self, path: &Path, content: &[u8], mode: u32) {
        self.accept(path, content);
        let mut state = self.lock();
        if state.removed_bytes + content.len() > MAX_REMOVED_BYTES {
            state.removed.clear();
            state.removed_bytes = 0;
        }
        state.removed_bytes += content.len();
        state.removed.insert(path.to_owned(), (content.to_owned(), mode));
    }

    /// A protected file has a content, or gets it after a review.
    pub(super) fn accept(&self, path: &Path, content: &[u8]) {
        let mut state = self.lock();
        if state.had.len() < MAX_CONTENTS {
            let id = ObjectId::of_file(content);
            state.had.insert((path.to_owned(), id));
            state.had_anywhere.insert(id);
        }
    }

    /// Whether a content was accepted for some protected file. Then there is no harm in removing it from another.
    pub(super) fn has_anywhere(&self, content: &[u8]) -> bool {
        self.lock().had_anywhere.contains(&ObjectId::of_file(content))
    }

    /// The content and the mode of a protected file that a command has removed.
    pub(super) fn removed(&self, path: &Path) -> Option<(Vec<u8>, u32)> {
        self.lock().removed.get(path).cloned()
    }

    /// Whether a protected file may have a content.
    pub(super) fn has(
        &self,
        places: Places<'_>,
        tree: &TreeReader,
        file: &Path,
        content: &[u8],
    ) -> bool {
        let id = ObjectId::of_file(content);
        if self.lock().had.contains(&(tree.path().join(file), id)) {
            return true;
        }
        let found = file.ancestors().skip(1).find_map(|work_tree| {
            let former = || self.lock().former.get(&tree.path().join(work_tree)).cloned();
            let directory = git_directory::of_work_tree(tree, work_tree).or_else(former)?;
            Some((work_tree, directory))
        });
        let Some((work_tree, directory)) = found else { return false };
        let Ok(inner) = file.strip_prefix(work_tree) else { return false };
        self.record_sources(places, tree, work_tree, &directory);
        let store = ObjectStore::new(object_directories(places, tree, &directory));
        let commits = self.lock().commits.clone();
        // Most contents that no commit has are told by that.
        store.has(id) && git_history::had(&store, &commits, inner, id)
    }

    /// Takes down the commits of a git directory that no command has made, the first time.
    fn record(&self, tree: &TreeReader, directory: &Path) {
        let Some(stamp) = tree.stamp(directory) else { return };
        let mut state = self.lock();
        if state.made.contains(&stamp.identity) || state.recorded.contains(&stamp.identity) {
            return;
        }
        if !git_directory::is_complete(tree, directory, None) {
            return;
        }
        state.recorded.insert(stamp.identity);
        for commit in git_refs::tips(tree, directory) {
            if state.commits.len() < MAX_COMMITS && state.known_commits.insert(commit) {
                state.commits.push(commit);
            }
        }
    }

    /// Takes down the commits of a repository that was not changed yet, and of those on this machine that it was
    /// cloned from.
    fn record_sources(
        &self,
        places: Places<'_>,
        tree: &TreeReader,
        work_tree: &Path,
        directory: &Path,
    ) {
        let mut pending = vec![(tree.clone(), work_tree.to_owned(), directory.to_owned())];
        for _ in 0..MAX_SOURCES {
            let Some((tree, work_tree, directory)) = pending.pop() else { return };
            self.record(&tree, &directory);
            for address in addresses(&tree, &directory).iter().take(MAX_SOURCES) {
                let path = tree.path().join(&work_tree).join(address);
                let Some((tree, place)) = places.find(&path) else { continue };
                if git_directory::is_complete(&tree, &place, None) {
                    pending.push((tree, place.clone(), place));
                } else if let Some(directory) = git_directory::of_work_tree(&tree, &place) {
                    pending.push((tree, place, directory));
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places<'_> {
    /// A directory by its path, wherever it is, with the tree that it is in. Nothing, if it is where commands have
    /// other files than this process sees.
    fn find(&self, path: &Path) -> Option<(TreeReader, PathBuf)> {
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

/// The paths on this machine that the configuration of a repository has as addresses of others.
fn addresses(tree: &TreeReader, directory: &Path) -> Vec<PathBuf> {
    let text = git_directory::read(tree, &directory.join("config")).unwrap_or_default();
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

/// The object directory of a repository, and those that it borrows from.
fn object_directories(
    places: Places<'_>,
    tree: &TreeReader,
    directory: &Path,
) -> Vec<(TreeReader, PathBuf)> {
    let mut found = vec![(tree.clone(), directory.join("objects"))];
    let mut next = 0;
    while let Some((tree, objects)) = found.get(next).cloned() {
        next += 1;
        let text = git_directory::read(&tree, &objects.join("info/alternates")).unwrap_or_default();
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
