//! Watched directories: they report changes since the last call, so that only those are examined.
//!
//! Each call drains the event queue. A listing is current if its directory was watched when it was last
//! compared or listed, and no event arrived since. Directories without a watch, because the system denies it
//! or its watches are used up, are compared by stat fingerprint.
//!
//! A watch belongs to a directory, not to its path. So an event that may change where a path leads ends the
//! watches of everything beneath, which is then compared and watched anew.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use toolcrib_fs::{BulkReader, IsDirectory, Unwatched, Watch, WatchEvent, Watcher};

use crate::file_id::FileId;
use crate::ignore_rules::is_ignore_file;
use crate::listing::{ListedDirectory, ListedKind, invalidate_all};

/// The watches of a root.
#[derive(Debug)]
pub(crate) struct WatchedDirectories {
    watcher: Watcher,
    /// The same directory may be reachable by two paths.
    directories: HashMap<Watch, Vec<u32>>,
    /// Limits of watches for this root, and for all roots together.
    max_watches: usize,
    max_total_watches: usize,
}

/// Number of watches of all roots. The system limit applies to the user, not to a root.
static TOTAL_WATCHES: AtomicUsize = AtomicUsize::new(0);

/// The changes since the last call.
#[derive(Debug, Default)]
pub(crate) struct WatchedChanges {
    /// Directories to list again.
    pub(crate) changed: Vec<u32>,
    /// Names that were added, removed or replaced in them, except directories.
    pub(crate) names: Vec<(u32, OsString)>,
    /// An ignore file changed.
    pub(crate) rules_changed: bool,
    /// Something was mounted. Every path may lead elsewhere.
    pub(crate) paths_changed: bool,
    /// Some directories are no longer current.
    pub(crate) states_changed: bool,
    /// Files whose cached id was cleared, and whether further ids were cleared.
    pub(crate) cleared: Vec<FileId>,
    pub(crate) many_cleared: bool,
}

/// Number of directories that are watched in one call. The rest is left to later calls.
const MAX_NEW_WATCHES: usize = 20_000;

impl WatchedDirectories {
    /// `None` if the system denies it.
    pub(crate) fn start(most: usize) -> Option<WatchedDirectories> {
        let max_total_watches = Watcher::recommended_watches();
        let max_watches = max_total_watches.min(most);
        let watcher = if max_watches > 0 { Watcher::new()? } else { return None };
        Some(WatchedDirectories {
            watcher,
            directories: HashMap::new(),
            max_watches,
            max_total_watches,
        })
    }

    /// Number of watched directories.
    pub(crate) fn count(&self) -> usize {
        self.directories.len()
    }

    /// Drains the events that happened before this call. Invalidates the changed entries of `listing`.
    pub(crate) fn drain_events(&mut self, listing: &[Arc<ListedDirectory>]) -> WatchedChanges {
        let mut changes = WatchedChanges::default();
        let WatchedDirectories { watcher, directories, .. } = self;
        watcher.drain(|event| match event {
            WatchEvent::Names(watch, name, IsDirectory(is_directory)) => {
                changes.states_changed = true;
                for at in directories.get(&watch).cloned().unwrap_or_default() {
                    let listed = &listing[at as usize];
                    record_change(listed, at, name, &mut changes);
                    changes.changed.push(at);
                    if !is_directory {
                        changes.names.push((at, name.to_owned()));
                    }
                    if is_directory && let Some(child) = listed.directory_by_name(name) {
                        changes.many_cleared = true;
                        unwatch_beneath(watcher, directories, listing, child);
                    }
                }
            }
            WatchEvent::Content(watch, name) => {
                for &at in directories.get(&watch).into_iter().flatten() {
                    record_change(&listing[at as usize], at, name, &mut changes);
                }
            }
            WatchEvent::Moved(watch) => {
                changes.states_changed = true;
                changes.many_cleared = true;
                for at in directories.get(&watch).cloned().unwrap_or_default() {
                    unwatch_beneath(watcher, directories, listing, at);
                }
            }
            WatchEvent::Ended(watch) => {
                changes.states_changed = true;
                changes.many_cleared = true;
                for at in directories.get(&watch).cloned().unwrap_or_default() {
                    unwatch(watcher, directories, &listing[at as usize], at);
                }
            }
            WatchEvent::Mounts => changes.paths_changed = true,
            // Permissions of a directory affect everything beneath it.
            WatchEvent::Directory(_) | WatchEvent::Lost => {
                changes.states_changed = true;
                changes.many_cleared = true;
                invalidate_all(listing);
            }
        });
        changes.changed.sort_unstable();
        changes.changed.dedup();
        changes
    }

    /// Ends the watches of directories that are gone or were replaced.
    pub(crate) fn end_stale_watches(
        &mut self,
        old: &[Arc<ListedDirectory>],
        new: &[Arc<ListedDirectory>],
    ) {
        for (at, (old, new)) in old.iter().zip(new).enumerate() {
            let has_moved =
                !Arc::ptr_eq(old, new) && old.cache.watch.watch() != new.cache.watch.watch();
            if has_moved {
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                unwatch(&self.watcher, &mut self.directories, old, at);
            }
        }
    }

    /// Adds missing watches. A directory is not current until it was compared once more.
    pub(crate) fn watch(&mut self, tree: &BulkReader, listing: &[Arc<ListedDirectory>]) {
        let unwatched = listing
            .iter()
            .enumerate()
            .filter(|(_, listed)| !listed.gone && listed.cache.watch.is_untried());
        for (at, listed) in unwatched.take(MAX_NEW_WATCHES) {
            let is_full = self.directories.len() >= self.max_watches
                || TOTAL_WATCHES.load(Ordering::Relaxed) >= self.max_total_watches;
            if is_full {
                return;
            }
            let Ok(directory) = tree.directory(&listed.path) else { continue };
            let identity = directory.stamp().map(|stamp| stamp.identity);
            if identity.is_none() || identity != listed.identity {
                continue;
            }
            let watch = if directory.is_local() {
                self.watcher.add(&directory)
            } else {
                Err(Unwatched::Refused)
            };
            match watch {
                Ok(watch) => {
                    let at = u32::try_from(at).unwrap_or(u32::MAX);
                    let same = self.directories.entry(watch).or_default();
                    TOTAL_WATCHES.fetch_add(usize::from(same.is_empty()), Ordering::Relaxed);
                    same.push(at);
                    listed.cache.watch.set_watch(watch);
                }
                Err(Unwatched::Refused) => listed.cache.watch.set_unwatchable(),
                Err(Unwatched::LimitReached) => {
                    self.max_watches = self.directories.len();
                    return;
                }
            }
        }
    }
}

impl Drop for WatchedDirectories {
    fn drop(&mut self) {
        TOTAL_WATCHES.fetch_sub(self.directories.len(), Ordering::Relaxed);
    }
}

type Directories = HashMap<Watch, Vec<u32>>;

fn record_change(listed: &ListedDirectory, at: u32, name: &OsStr, changes: &mut WatchedChanges) {
    changes.rules_changed |= is_ignore_file(name);
    if let Some(entry) = listed.clear_slot(name) {
        changes.cleared.push(FileId { directory: at, entry });
    }
}

fn unwatch(watcher: &Watcher, directories: &mut Directories, listed: &ListedDirectory, at: u32) {
    let Some(watch) = listed.cache.watch.end_watch(&listed.cache.doc_ids) else { return };
    let Some(same) = directories.get_mut(&watch) else { return };
    same.retain(|other| *other != at);
    if same.is_empty() {
        directories.remove(&watch);
        watcher.remove(watch);
        TOTAL_WATCHES.fetch_sub(1, Ordering::Relaxed);
    }
}

fn unwatch_beneath(
    watcher: &Watcher,
    directories: &mut Directories,
    listing: &[Arc<ListedDirectory>],
    top: u32,
) {
    let mut pending = vec![top];
    while let Some(at) = pending.pop() {
        let listed = &listing[at as usize];
        unwatch(watcher, directories, listed, at);
        pending.extend(listed.entries.iter().filter_map(|entry| match entry.kind {
            ListedKind::Directory(child) => Some(child),
            _ => None,
        }));
    }
}
