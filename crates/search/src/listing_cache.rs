//! Listings that a long-lived process keeps between calls.
//!
//! A cached listing is exact even without watches. Every addition, removal or rename in a directory changes
//! the directory's stat fingerprint, and a changed rule changes the fingerprint of its file. So each call
//! stats every directory and every ignore file, and lists the changed directories again. That takes a
//! twentieth of a walk. File contents are not kept here.
//!
//! Each root has an index beside its listing. If the root deserves an index, its directories are watched as
//! well, and watched directories need no stat: see `watching`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use toolcrib_fs::{ContentCache, ContentHash, FsError, TreeReader};

use crate::deadline::Deadline;
use crate::grep::Decoder;
use crate::index::{Index, IndexSettings, IndexStatus, Work};
use crate::listing::{EntryOf, Listed, Listing, Summary, forget_all, has_entries};
use crate::parallel_ordered::in_order;
use crate::walk::{Walk, list_again, walk};
use crate::watch_self_check::WatchSelfCheck;
use crate::watching::{News, Watching};

/// Cached listings and indexes of whole roots.
#[derive(Debug, Default)]
pub struct ListingCaches {
    settings: IndexSettings,
    /// Where indexes are kept for later processes.
    shelves: Option<PathBuf>,
    /// The most recently used root is last.
    roots: Mutex<Vec<Arc<Kept>>>,
}

#[derive(Debug)]
struct Kept {
    root: PathBuf,
    table: Mutex<Option<Table>>,
    /// Number of searches.
    searches: AtomicU64,
    /// Number of watched directories.
    watched: AtomicU64,
    /// Whether a watch missed a change, and whether that was reported.
    deaf: AtomicBool,
    is_told: AtomicBool,
    index: Arc<Index>,
}

#[derive(Debug)]
struct Table {
    directories: Directories,
    /// The excluded paths of the walk.
    own: Vec<PathBuf>,
    watching: Option<Watching>,
    spots: WatchSelfCheck,
    summary: Arc<Summary>,
    /// The directories that each call compares, if all others are known to be current. `None` if that must be
    /// determined again.
    unsure: Option<Vec<u32>>,
}

type Directories = Arc<Vec<Arc<Listed>>>;

/// Number of roots that are cached.
const ROOTS: usize = 4;

/// A root with more directories is walked for each call. Caching it would take too much memory.
const MAX_DIRECTORIES: usize = 100_000;

/// After this many searches a small tree is indexed, since more searches are likely.
const OFTEN: u64 = 3;

/// If more files appeared, all files are statted again. That takes about as long.
const MANY_NEW: usize = 4_000;

/// How often a waiting thread tries the lock and checks its deadline.
const PAUSE: Duration = Duration::from_micros(200);

impl ListingCaches {
    /// Creates empty caches. If `shelves` is given, indexes are kept in that directory for later processes.
    pub fn new(settings: IndexSettings, shelves: Option<PathBuf>) -> ListingCaches {
        ListingCaches { settings, shelves, roots: Mutex::default() }
    }

    /// Lists like [`walk`], but faster if the root was listed before.
    pub fn list(&self, asked: &Walk<'_>) -> Listing {
        // Ignored and named files are not in the cached listing.
        if asked.ignored || !asked.named.is_empty() {
            return walk(asked);
        }
        let root = self.root(asked.tree);
        let Some(mut kept) = wait_for(&root.table, asked.stop) else { return walk(asked) };
        // Any early exit, including a panic, leaves no cached listing rather than a wrong one.
        let table = kept.take().filter(|table| table.own == asked.own);
        let refreshed = table.and_then(|table| refresh(asked, table, &root, self.settings));
        let watched = refreshed.as_ref().and_then(|table| Some(table.watching.as_ref()?.count()));
        root.watched.store(watched.unwrap_or(0) as u64, Ordering::Relaxed);
        let Some(table) = refreshed else { return list_new(asked, &mut kept) };
        let (directories, summary) = (table.directories.clone(), table.summary.clone());
        *kept = Some(table);
        drop(kept);
        let starts_at = |listed: &Arc<Listed>| !listed.gone && listed.path == asked.start;
        match directories.iter().position(starts_at) {
            // In a hidden directory that was named, nothing is hidden. The cached listing has it marked as
            // hidden.
            Some(top) if !directories[top].hidden => {
                let top = u32::try_from(top).unwrap_or(0);
                let summary = if top == 0 { summary } else { Arc::default() };
                Listing { directories, top, complete: true, hot: true, summary }
            }
            _ => walk(asked),
        }
    }

    /// The state of the index of a root, including segments kept by an earlier process.
    pub fn index_status(&self, tree: &TreeReader) -> IndexStatus {
        let kept = self.root(tree);
        kept.index.load();
        IndexStatus {
            watched: kept.watched.load(Ordering::Relaxed),
            deaf: kept.deaf.load(Ordering::Relaxed),
            ..kept.index.status()
        }
    }

    /// Why the index or the watches of a root were disabled. Returned only once.
    pub fn take_alarm(&self, tree: &TreeReader) -> Option<String> {
        let kept = self.root(tree);
        let is_deaf =
            || kept.deaf.load(Ordering::Relaxed) && !kept.is_told.swap(true, Ordering::Relaxed);
        match kept.index.take_alarm() {
            Some(why) => Some(format!("the index of this root was wrong and is off: {why}")),
            None => is_deaf().then(|| {
                "the system did not tell of a change of this root: from now on every file is compared"
                    .to_owned()
            }),
        }
    }

    /// Whether the root of a listing has enough files for a kept index.
    pub fn is_indexed(&self, listing: &Listing) -> bool {
        has_entries(&listing.directories, self.settings.least_files)
    }

    /// Deletes the index of a root, including its kept segments.
    pub fn drop_index(&self, tree: &TreeReader) -> Result<(), FsError> {
        self.root(tree).index.forget()
    }

    /// Indexes the new files of a root in this thread.
    pub fn build_index(&self, tree: &TreeReader, listing: &Listing, letters: &'static dyn Decoder) {
        let work = Work { directories: listing.directories.clone(), letters, is_kept: true };
        self.root(tree).index.build_now(tree, &work);
    }

    /// The index of a root for a search. `None` if the root does not deserve one.
    pub(crate) fn index(&self, tree: &TreeReader, listing: &Listing) -> Option<Arc<Index>> {
        let root = self.root(tree);
        root.searches.fetch_add(1, Ordering::Relaxed);
        root.is_worth_an_index(&listing.directories, self.settings).then(|| root.index.clone())
    }

    fn shelf(&self, tree: &TreeReader) -> Option<ContentCache> {
        let name = ContentHash::of(tree.path().as_os_str().as_bytes()).to_string();
        Some(ContentCache::new(self.shelves.as_ref()?.join(name)))
    }

    fn root(&self, tree: &TreeReader) -> Arc<Kept> {
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = match roots.iter().position(|kept| kept.root == tree.path()) {
            Some(at) => roots.remove(at),
            None => Arc::new(Kept {
                root: tree.path().to_owned(),
                table: Mutex::default(),
                searches: AtomicU64::new(0),
                watched: AtomicU64::new(0),
                deaf: AtomicBool::new(false),
                is_told: AtomicBool::new(false),
                index: Arc::new(Index::new(self.settings, self.shelf(tree))),
            }),
        };
        if roots.len() >= ROOTS {
            roots.remove(0).index.end();
        }
        roots.push(kept.clone());
        kept
    }
}

impl Kept {
    fn is_worth_an_index(&self, directories: &[Arc<Listed>], settings: IndexSettings) -> bool {
        let is_often = self.searches.load(Ordering::Relaxed) > OFTEN;
        let often = if is_often { settings.least_files_often } else { u64::MAX };
        has_entries(directories, settings.least_files.min(often))
    }
}

impl Drop for ListingCaches {
    fn drop(&mut self) {
        let roots = self.roots.get_mut().unwrap_or_else(PoisonError::into_inner);
        roots.iter().for_each(|kept| kept.index.end());
    }
}

/// Locks a cached listing. `None` if the deadline passes first.
fn wait_for<'a, T>(table: &'a Mutex<T>, stop: &Deadline<'_>) -> Option<MutexGuard<'a, T>> {
    loop {
        match table.try_lock() {
            Ok(table) => return Some(table),
            Err(TryLockError::Poisoned(table)) => return Some(table.into_inner()),
            Err(TryLockError::WouldBlock) if stop.is_over() => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
}

fn list_new(asked: &Walk<'_>, kept: &mut Option<Table>) -> Listing {
    let mut listing = walk(asked);
    let is_root = asked.start.as_os_str().is_empty();
    listing.hot = is_root && listing.complete && listing.directories.len() <= MAX_DIRECTORIES;
    if listing.hot {
        *kept = Some(Table {
            directories: listing.directories.clone(),
            own: asked.own.to_vec(),
            watching: None,
            spots: WatchSelfCheck::default(),
            summary: listing.summary.clone(),
            unsure: None,
        });
    }
    listing
}

/// Updates a cached listing to the current state. `None` if only a full walk can do that.
fn refresh(asked: &Walk<'_>, table: Table, root: &Kept, settings: IndexSettings) -> Option<Table> {
    let Table { directories, own, mut watching, mut spots, mut summary, unsure } = table;
    let mut news =
        watching.as_mut().map_or_else(News::default, |watching| watching.news(&directories));
    if spots.missed_one(&directories) {
        root.deaf.store(true, Ordering::Relaxed);
        return None;
    }
    let known_unsure = unsure.filter(|_| !news.states_changed);
    let is_quiet = known_unsure.is_some();
    let unsure = known_unsure.unwrap_or_else(|| all_unsure(&directories));
    compare_all(asked.tree, &directories, &unsure, &mut news);
    if news.rules_changed || news.paths_changed || asked.stop.is_over() {
        return None;
    }
    if is_quiet && news.changed.is_empty() {
        let forgotten = look_at_spots(&mut spots, asked.tree, &directories, root, settings);
        let unsure = (!forgotten).then_some(unsure);
        return Some(Table { directories, own, watching, spots, summary, unsure });
    }
    let gone = directories.iter().filter(|listed| listed.gone).count();
    if gone > directories.len() / 4 {
        return None;
    }
    let directories = match news.changed.is_empty() {
        true => directories,
        false => {
            let old = directories.clone();
            // Another thread may still read the old listing. It keeps its copy.
            let new = list_again(asked, Arc::unwrap_or_clone(directories), &news.changed)?;
            if let Some(watching) = &mut watching {
                watching.leave(&old, &new);
                if has_new_links(asked.tree, &new, &news.names, old.len()) {
                    forget_all(&new);
                }
            }
            summary = Arc::default();
            Arc::new(new)
        }
    };
    let may_watch = !root.deaf.load(Ordering::Relaxed);
    if watching.is_none() && may_watch && root.is_worth_an_index(&directories, settings) {
        watching = Watching::begin(settings.max_watches);
    }
    let mut unsure = None;
    if let Some(watching) = &mut watching {
        watching.watch(asked.tree, &directories);
        let is_settled = |listed: &Arc<Listed>| listed.gone || !listed.state.may_become_sure();
        unsure = directories.iter().all(is_settled).then(|| all_unsure(&directories));
        if look_at_spots(&mut spots, asked.tree, &directories, root, settings) {
            unsure = None;
        }
    }
    Some(Table { directories, own, watching, spots, summary, unsure })
}

/// Whether a new file has, or may have, a second name. A write through that name may change an indexed file
/// in another directory without an event there. Directories from `known` on are new.
fn has_new_links(
    tree: &TreeReader,
    directories: &[Arc<Listed>],
    names: &[(u32, OsString)],
    known: usize,
) -> bool {
    let come = names.iter().map(|(at, name)| directories[*at as usize].path.join(name));
    let within = |listed: &Arc<Listed>| {
        let files = listed.entries.iter().filter(|entry| entry.kind == EntryOf::File);
        files.map(|entry| listed.path.join(listed.name(*entry))).collect::<Vec<_>>()
    };
    let new = directories[known.min(directories.len())..].iter().flat_map(within);
    let mut asked = 0;
    come.chain(new).any(|path| {
        asked += 1;
        asked > MANY_NEW || tree.stamp(&path).is_some_and(|stamp| stamp.is_shared)
    })
}

/// Checks some cached positions. Returns whether everything had to be invalidated.
fn look_at_spots(
    spots: &mut WatchSelfCheck,
    tree: &TreeReader,
    directories: &Directories,
    root: &Kept,
    settings: IndexSettings,
) -> bool {
    let view = root.index.view();
    spots.look(tree, directories, settings.trial_pause, |place| view.stamp(place))
}

/// The directories that must be compared with the disk.
fn all_unsure(directories: &Directories) -> Vec<u32> {
    let numbered = (0..).zip(directories.iter());
    numbered.filter(|(_, listed)| is_unsure(listed)).map(|(at, _)| at).collect()
}

/// Compares directories with the disk and records the changed ones.
fn compare_all(tree: &TreeReader, directories: &Directories, unsure: &[u32], news: &mut News) {
    in_order(
        unsure,
        || (),
        |(), at| compare(tree, &directories[*at as usize]),
        |at, state| {
            match state {
                State::Same => directories[*at as usize].state.set_sure(),
                State::Changed => news.changed.push(*at),
                State::RulesChanged => news.rules_changed = true,
            }
            !news.rules_changed
        },
    );
}

enum State {
    Same,
    Changed,
    RulesChanged,
}

/// Whether something must be statted. The exclude file of a repository is in an unwatched directory.
fn is_unsure(listed: &Listed) -> bool {
    !listed.gone && (!listed.state.is_sure() || listed.ignore_files.repository)
}

fn compare(tree: &TreeReader, listed: &Listed) -> State {
    let rules_same = listed.ignore_stamps.iter().all(|(then, path)| tree.stamp(path) == *then);
    if !rules_same {
        return State::RulesChanged;
    }
    if listed.state.is_sure() {
        return State::Same;
    }
    let now = tree.stamp(&listed.path);
    if now.is_some() && now == listed.stamp { State::Same } else { State::Changed }
}
