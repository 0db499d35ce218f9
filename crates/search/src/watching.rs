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

use toolcrib_fs::{IsDirectory, TreeReader, Unwatched, Watch, WatchEvent, Watcher};

use crate::ignore_rules::is_ignore_file;
use crate::listing::{EntryOf, Listed, forget_all};

/// The watches of a root.
#[derive(Debug)]
pub(crate) struct Watching {
    watcher: Watcher,
    /// The same directory may be reachable by two paths.
    directories: HashMap<Watch, Vec<u32>>,
    /// Limits of watches for this root, and for all roots together.
    room: usize,
    room_of_all: usize,
}

/// Number of watches of all roots. The system limit applies to the user, not to a root.
static ALL: AtomicUsize = AtomicUsize::new(0);

/// The changes since the last call.
#[derive(Debug, Default)]
pub(crate) struct News {
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
}

/// Number of directories that are watched in one call. The rest is left to later calls.
const AT_ONCE: usize = 20_000;

impl Watching {
    /// `None` if the system denies it.
    pub(crate) fn begin(most: usize) -> Option<Watching> {
        let room_of_all = Watcher::room();
        let room = room_of_all.min(most);
        let watcher = if room > 0 { Watcher::new()? } else { return None };
        Some(Watching { watcher, directories: HashMap::new(), room, room_of_all })
    }

    /// Number of watched directories.
    pub(crate) fn count(&self) -> usize {
        self.directories.len()
    }

    /// Drains the events that happened before this call. Invalidates the changed entries of `table`.
    pub(crate) fn news(&mut self, table: &[Arc<Listed>]) -> News {
        let mut news = News::default();
        let Watching { watcher, directories, .. } = self;
        watcher.drain(|notice| match notice {
            WatchEvent::Names(watch, name, IsDirectory(is_directory)) => {
                news.states_changed = true;
                for at in directories.get(&watch).cloned().unwrap_or_default() {
                    let listed = &table[at as usize];
                    note_content(listed, name, &mut news);
                    news.changed.push(at);
                    if !is_directory {
                        news.names.push((at, name.to_owned()));
                    }
                    if is_directory && let Some(child) = listed.directory_called(name) {
                        unwatch_beneath(watcher, directories, table, child);
                    }
                }
            }
            WatchEvent::Content(watch, name) => {
                for at in directories.get(&watch).into_iter().flatten() {
                    note_content(&table[*at as usize], name, &mut news);
                }
            }
            WatchEvent::Moved(watch) => {
                news.states_changed = true;
                for at in directories.get(&watch).cloned().unwrap_or_default() {
                    unwatch_beneath(watcher, directories, table, at);
                }
            }
            WatchEvent::Ended(watch) => {
                news.states_changed = true;
                for at in directories.get(&watch).cloned().unwrap_or_default() {
                    unwatch(watcher, directories, &table[at as usize], at);
                }
            }
            WatchEvent::Mounts => news.paths_changed = true,
            // Permissions of a directory affect everything beneath it.
            WatchEvent::Directory(_) | WatchEvent::Lost => {
                news.states_changed = true;
                forget_all(table);
            }
        });
        news.changed.sort_unstable();
        news.changed.dedup();
        news
    }

    /// Ends the watches of directories that are gone or were replaced.
    pub(crate) fn leave(&mut self, old: &[Arc<Listed>], new: &[Arc<Listed>]) {
        for (at, (old, new)) in old.iter().zip(new).enumerate() {
            let has_moved = !Arc::ptr_eq(old, new) && old.state.watch() != new.state.watch();
            if has_moved {
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                unwatch(&self.watcher, &mut self.directories, old, at);
            }
        }
    }

    /// Adds missing watches. A directory is not current until it was compared once more.
    pub(crate) fn watch(&mut self, tree: &TreeReader, table: &[Arc<Listed>]) {
        let unwatched =
            table.iter().enumerate().filter(|(_, listed)| !listed.gone && listed.state.is_new());
        for (at, listed) in unwatched.take(AT_ONCE) {
            let is_full = self.directories.len() >= self.room
                || ALL.load(Ordering::Relaxed) >= self.room_of_all;
            if is_full {
                return;
            }
            let Ok(directory) = tree.directory(&listed.path) else { continue };
            let identity = directory.stamp().map(|stamp| stamp.identity);
            if identity.is_none() || identity != listed.identity {
                continue;
            }
            let watch = match directory.is_local() {
                true => self.watcher.add(&directory),
                false => Err(Unwatched::Refused),
            };
            match watch {
                Ok(watch) => {
                    let at = u32::try_from(at).unwrap_or(u32::MAX);
                    let same = self.directories.entry(watch).or_default();
                    ALL.fetch_add(usize::from(same.is_empty()), Ordering::Relaxed);
                    same.push(at);
                    listed.state.set_watch(watch);
                }
                Err(Unwatched::Refused) => listed.state.refuse(),
                Err(Unwatched::NoRoom) => {
                    self.room = self.directories.len();
                    return;
                }
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        ALL.fetch_sub(self.directories.len(), Ordering::Relaxed);
    }
}

type Directories = HashMap<Watch, Vec<u32>>;

fn note_content(listed: &Listed, name: &OsStr, news: &mut News) {
    news.rules_changed |= is_ignore_file(name);
    if let Some(slot) = listed.slot_called(name) {
        slot.forget();
    }
}

fn unwatch(watcher: &Watcher, directories: &mut Directories, listed: &Listed, at: u32) {
    let Some(watch) = listed.state.end_watch(&listed.slots) else { return };
    let Some(same) = directories.get_mut(&watch) else { return };
    same.retain(|other| *other != at);
    if same.is_empty() {
        directories.remove(&watch);
        watcher.remove(watch);
        ALL.fetch_sub(1, Ordering::Relaxed);
    }
}

fn unwatch_beneath(
    watcher: &Watcher,
    directories: &mut Directories,
    table: &[Arc<Listed>],
    top: u32,
) {
    let mut pending = vec![top];
    while let Some(at) = pending.pop() {
        let listed = &table[at as usize];
        unwatch(watcher, directories, listed, at);
        pending.extend(listed.entries.iter().filter_map(|entry| match entry.kind {
            EntryOf::Directory(child) => Some(child),
            _ => None,
        }));
    }
}
