//! Listings that a long-lived process keeps between calls.
//!
//! A cached listing is exact even without watches. Every addition, removal or rename in a directory changes
//! the directory's stat fingerprint, and a changed rule changes the fingerprint of its file. So each call
//! stats every directory and every ignore file, and lists the changed directories again. That takes a
//! twentieth of a walk. File contents are not kept here.
//!
//! Each root has an index beside its listing. If the root has enough files for an index (fewer suffice if it is
//! searched often), its directories are watched as well, and watched directories need no stat: see
//! `watched_directories`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use toolcrib_fs::{BulkReader, ContentAddressedCache, ContentHash, FsError};

use crate::deadline::Deadline;
use crate::decoder::Decoder;
use crate::index::{BuildInput, Index, IndexSettings, IndexStatus};
use crate::listing::{
    ListedDirectory, ListedKind, Listing, ListingSummary, has_at_least, invalidate_all,
};
use crate::parallel_ordered::map_in_order;
use crate::walk::{Walk, list_again, walk};
use crate::watch_self_check::WatchSelfCheck;
use crate::watched_directories::{WatchedChanges, WatchedDirectories};

/// Cached listings and indexes of whole roots.
#[derive(Debug, Default)]
pub struct ListingCaches {
    settings: IndexSettings,
    /// Where indexes are kept for later processes.
    index_directory: Option<PathBuf>,
    /// The most recently used root is last.
    roots: Mutex<Vec<Arc<RootCache>>>,
}

#[derive(Debug)]
struct RootCache {
    root: PathBuf,
    listing: Mutex<Option<CachedListing>>,
    /// Number of searches.
    searches: AtomicU64,
    /// Number of watched directories.
    watched: AtomicU64,
    /// Whether a watch missed a change, and whether that was reported.
    watches_failed: AtomicBool,
    is_reported: AtomicBool,
    index: Arc<Index>,
}

#[derive(Debug)]
struct CachedListing {
    directories: Directories,
    /// The excluded paths of the walk.
    excluded: Vec<PathBuf>,
    watched_directories: Option<WatchedDirectories>,
    self_check: WatchSelfCheck,
    summary: Arc<ListingSummary>,
    /// The directories that each call compares, if all others are known to be current. `None` if that must be
    /// determined again.
    to_check: Option<Vec<u32>>,
}

type Directories = Arc<Vec<Arc<ListedDirectory>>>;

/// Number of roots that are cached.
const MAX_ROOTS: usize = 4;

/// A root with more directories is walked for each call. Caching it would take too much memory.
const MAX_DIRECTORIES: usize = 100_000;

/// After this many searches a small tree is indexed, since more searches are likely.
const FREQUENT_SEARCHES: u64 = 3;

/// If more files appeared, all files are statted again. That takes about as long.
const MAX_NEW_FILES_CHECKED: usize = 4_000;

/// How often a waiting thread tries the lock and checks its deadline.
const LOCK_POLL_INTERVAL: Duration = Duration::from_micros(200);

impl ListingCaches {
    /// Creates empty caches. If `index_directory` is given, indexes are kept in that directory for later processes.
    pub fn new(settings: IndexSettings, index_directory: Option<PathBuf>) -> ListingCaches {
        ListingCaches { settings, index_directory, roots: Mutex::default() }
    }

    /// Lists like [`walk`], but faster if the root was listed before.
    pub fn list(&self, request: &Walk<'_>) -> Listing {
        // Ignored and named files are not in the cached listing.
        if request.ignored || !request.named.is_empty() {
            return walk(request);
        }
        let root = self.root(request.tree);
        let Some(mut slot) = lock_until(&root.listing, request.stop) else { return walk(request) };
        // Any early exit, including a panic, leaves no cached listing rather than a wrong one.
        let cached = slot.take().filter(|cached| cached.excluded == request.own);
        let refreshed = cached.and_then(|cached| refresh(request, cached, &root, self.settings));
        let watched = refreshed
            .as_ref()
            .and_then(|cached| Some(cached.watched_directories.as_ref()?.count()));
        root.watched.store(watched.unwrap_or(0) as u64, Ordering::Relaxed);
        let Some(cached) = refreshed else { return walk_and_cache(request, &mut slot) };
        let (directories, summary) = (cached.directories.clone(), cached.summary.clone());
        *slot = Some(cached);
        drop(slot);
        let starts_at =
            |listed: &Arc<ListedDirectory>| !listed.gone && listed.path == request.start;
        match directories.iter().position(starts_at) {
            // In a hidden directory that was named, nothing is hidden. The cached listing has it marked as
            // hidden.
            Some(top) if !directories[top].hidden => {
                let top = u32::try_from(top).unwrap_or(0);
                let summary = if top == 0 { summary } else { Arc::default() };
                Listing { directories, top, complete: true, is_cached: true, summary }
            }
            _ => walk(request),
        }
    }

    /// The state of the index of a root, including segments kept by an earlier process.
    pub fn index_status(&self, tree: &BulkReader) -> IndexStatus {
        let root = self.root(tree);
        root.index.load();
        IndexStatus {
            watched: root.watched.load(Ordering::Relaxed),
            deaf: root.watches_failed.load(Ordering::Relaxed),
            ..root.index.status()
        }
    }

    /// Why the index or the watches of a root were disabled. Returned only once.
    pub fn take_alarm(&self, tree: &BulkReader) -> Option<String> {
        let root = self.root(tree);
        let have_watches_failed = || {
            root.watches_failed.load(Ordering::Relaxed)
                && !root.is_reported.swap(true, Ordering::Relaxed)
        };
        match root.index.take_alarm() {
            Some(why) => {
                Some(format!("the index of this root was wrong and was turned off: {why}"))
            }
            None => have_watches_failed().then(|| {
                "the system did not report a change in this root: from now on every file is checked"
                    .to_owned()
            }),
        }
    }

    /// Whether the root of a listing has enough files for a kept index.
    pub fn is_indexed(&self, listing: &Listing) -> bool {
        has_at_least(&listing.directories, self.settings.least_files)
    }

    /// Deletes the index of a root, including its kept segments.
    pub fn drop_index(&self, tree: &BulkReader) -> Result<(), FsError> {
        self.root(tree).index.clear()
    }

    /// Indexes the new files of a root in this thread.
    pub fn build_index(&self, tree: &BulkReader, listing: &Listing, letters: &'static dyn Decoder) {
        let work = BuildInput {
            directories: listing.directories.clone(),
            decoder: letters,
            is_persistent: true,
        };
        self.root(tree).index.build_now(tree, &work);
    }

    /// The index of a root for a search. `None` if the root does not deserve one.
    pub(crate) fn index(&self, tree: &BulkReader, listing: &Listing) -> Option<Arc<Index>> {
        let root = self.root(tree);
        root.searches.fetch_add(1, Ordering::Relaxed);
        root.deserves_index(&listing.directories, self.settings).then(|| root.index.clone())
    }

    fn index_cache(&self, tree: &BulkReader) -> Option<ContentAddressedCache> {
        let name = ContentHash::of(tree.path().as_os_str().as_bytes()).to_string();
        Some(ContentAddressedCache::new(self.index_directory.as_ref()?.join(name)))
    }

    fn root(&self, tree: &BulkReader) -> Arc<RootCache> {
        let mut roots = self.roots.lock();
        let cache = match roots.iter().position(|cache| cache.root == tree.path()) {
            Some(at) => roots.remove(at),
            None => Arc::new(RootCache {
                root: tree.path().to_owned(),
                listing: Mutex::default(),
                searches: AtomicU64::new(0),
                watched: AtomicU64::new(0),
                watches_failed: AtomicBool::new(false),
                is_reported: AtomicBool::new(false),
                index: Arc::new(Index::new(self.settings, self.index_cache(tree))),
            }),
        };
        if roots.len() >= MAX_ROOTS {
            roots.remove(0).index.stop();
        }
        roots.push(cache.clone());
        cache
    }
}

impl RootCache {
    fn deserves_index(
        &self,
        directories: &[Arc<ListedDirectory>],
        settings: IndexSettings,
    ) -> bool {
        let is_often = self.searches.load(Ordering::Relaxed) > FREQUENT_SEARCHES;
        let often = if is_often { settings.least_files_often } else { u64::MAX };
        has_at_least(directories, settings.least_files.min(often))
    }
}

impl Drop for ListingCaches {
    fn drop(&mut self) {
        let roots = self.roots.get_mut();
        roots.iter().for_each(|cache| cache.index.stop());
    }
}

/// Locks a cached listing. `None` if the deadline passes first.
fn lock_until<'a, T>(mutex: &'a Mutex<T>, stop: &Deadline<'_>) -> Option<MutexGuard<'a, T>> {
    loop {
        match mutex.try_lock_for(LOCK_POLL_INTERVAL) {
            None if !stop.is_over() => {}
            outcome => return outcome,
        }
    }
}

fn walk_and_cache(request: &Walk<'_>, slot: &mut Option<CachedListing>) -> Listing {
    let mut listing = walk(request);
    let is_root = request.start.as_os_str().is_empty();
    listing.is_cached = is_root && listing.complete && listing.directories.len() <= MAX_DIRECTORIES;
    if listing.is_cached {
        *slot = Some(CachedListing {
            directories: listing.directories.clone(),
            excluded: request.own.to_vec(),
            watched_directories: None,
            self_check: WatchSelfCheck::default(),
            summary: listing.summary.clone(),
            to_check: None,
        });
    }
    listing
}

/// Updates a cached listing to the current state. `None` if only a full walk can do that.
fn refresh(
    request: &Walk<'_>,
    cached: CachedListing,
    root: &RootCache,
    settings: IndexSettings,
) -> Option<CachedListing> {
    let CachedListing {
        directories,
        excluded,
        mut watched_directories,
        mut self_check,
        mut summary,
        to_check,
    } = cached;
    let mut changes =
        watched_directories.as_mut().map_or_else(WatchedChanges::default, |watched_directories| {
            watched_directories.drain_events(&directories)
        });
    if changes.many_cleared {
        summary.doc_map.forget();
    } else {
        summary.doc_map.note_cleared(&changes.cleared);
    }
    if self_check.missed_event(&directories) {
        root.watches_failed.store(true, Ordering::Relaxed);
        return None;
    }
    let known_to_check = to_check.filter(|_| !changes.states_changed);
    let is_quiet = known_to_check.is_some();
    let to_check = known_to_check.unwrap_or_else(|| directories_to_check(&directories));
    compare_all(request.tree, &directories, &to_check, &mut changes);
    if changes.rules_changed || changes.paths_changed || request.stop.is_over() {
        return None;
    }
    if is_quiet && changes.changed.is_empty() {
        let invalidated =
            run_self_check(&mut self_check, request.tree, &directories, &summary, root, settings);
        let to_check = (!invalidated).then_some(to_check);
        return Some(CachedListing {
            directories,
            excluded,
            watched_directories,
            self_check,
            summary,
            to_check,
        });
    }
    let gone = directories.iter().filter(|listed| listed.gone).count();
    if gone > directories.len() / 4 {
        return None;
    }
    let directories = if changes.changed.is_empty() {
        directories
    } else {
        let old = directories.clone();
        // Another thread may still read the old listing. It keeps its copy.
        let new = list_again(request, Arc::unwrap_or_clone(directories), &changes.changed)?;
        if let Some(watched_directories) = &mut watched_directories {
            watched_directories.end_stale_watches(&old, &new);
            // Another thread may still fill the old summary from the old listing. So this one gets its own.
            summary = summary_of(&old, &new, &changes.changed, &summary);
            if has_new_links(request.tree, &new, &changes.names, old.len()) {
                invalidate_all(&new);
                summary.doc_map.forget();
            }
        } else {
            summary = Arc::default();
        }
        Arc::new(new)
    };
    let may_watch = !root.watches_failed.load(Ordering::Relaxed);
    if watched_directories.is_none() && may_watch && root.deserves_index(&directories, settings) {
        watched_directories = WatchedDirectories::start(settings.max_watches);
    }
    let mut to_check = None;
    if let Some(watched_directories) = &mut watched_directories {
        watched_directories.watch(request.tree, &directories);
        let is_final =
            |listed: &Arc<ListedDirectory>| listed.gone || !listed.cache.watch.may_become_current();
        to_check = directories.iter().all(is_final).then(|| directories_to_check(&directories));
        if run_self_check(&mut self_check, request.tree, &directories, &summary, root, settings) {
            to_check = None;
        }
    }
    Some(CachedListing {
        directories,
        excluded,
        watched_directories,
        self_check,
        summary,
        to_check,
    })
}

/// The summary of a new listing. If it has the same files with the same cached ids, that of the old one is copied:
/// a file that is replaced by another of its name, as most programs write files, changes nothing here.
fn summary_of(
    old: &[Arc<ListedDirectory>],
    new: &[Arc<ListedDirectory>],
    changed: &[u32],
    summary: &ListingSummary,
) -> Arc<ListingSummary> {
    let is_same = |at: &u32| old[*at as usize].has_same_entries(&new[*at as usize]);
    let is_kept = old.len() == new.len() && changed.iter().all(is_same);
    if is_kept { Arc::new(summary.copied()) } else { Arc::default() }
}

/// Whether a new file has, or may have, a second name. A write through that name may change an indexed file
/// in another directory without an event there. Directories from `known` on are new.
fn has_new_links(
    tree: &BulkReader,
    directories: &[Arc<ListedDirectory>],
    names: &[(u32, OsString)],
    known: usize,
) -> bool {
    let come = names.iter().map(|(at, name)| directories[*at as usize].path.join(name));
    let within = |listed: &Arc<ListedDirectory>| {
        let files = listed.entries.iter().filter(|entry| entry.kind == ListedKind::File);
        files.map(|entry| listed.path.join(listed.name(*entry))).collect::<Vec<_>>()
    };
    let new = directories[known.min(directories.len())..].iter().flat_map(within);
    let mut checked = 0;
    come.chain(new).any(|path| {
        checked += 1;
        checked > MAX_NEW_FILES_CHECKED || tree.stamp(&path).is_some_and(|stamp| stamp.is_shared)
    })
}

/// Checks some cached positions. Returns whether everything had to be invalidated.
fn run_self_check(
    self_check: &mut WatchSelfCheck,
    tree: &BulkReader,
    directories: &Directories,
    summary: &ListingSummary,
    root: &RootCache,
    settings: IndexSettings,
) -> bool {
    let snapshot = root.index.snapshot();
    let stamp_of = |position| snapshot.stamp(position);
    let is_invalidated = self_check.check_some(tree, directories, settings.trial_pause, stamp_of);
    if is_invalidated {
        summary.doc_map.forget();
    }
    is_invalidated
}

/// The directories that must be compared with the disk.
fn directories_to_check(directories: &Directories) -> Vec<u32> {
    let numbered = (0..).zip(directories.iter());
    numbered.filter(|(_, listed)| needs_check(listed)).map(|(at, _)| at).collect()
}

/// Compares directories with the disk and records the changed ones.
fn compare_all(
    tree: &BulkReader,
    directories: &Directories,
    to_check: &[u32],
    changes: &mut WatchedChanges,
) {
    map_in_order(
        to_check,
        || (),
        |(), at| compare_with_disk(tree, &directories[*at as usize]),
        |at, state| {
            match state {
                Comparison::Same => directories[*at as usize].cache.watch.set_current(),
                Comparison::Changed => changes.changed.push(*at),
                Comparison::RulesChanged => changes.rules_changed = true,
            }
            !changes.rules_changed
        },
    );
}

enum Comparison {
    Same,
    Changed,
    RulesChanged,
}

/// Whether something must be statted. The exclude file of a repository is in an unwatched directory.
fn needs_check(listed: &ListedDirectory) -> bool {
    !listed.gone && (!listed.cache.watch.is_current() || listed.ignore_files.repository)
}

fn compare_with_disk(tree: &BulkReader, listed: &ListedDirectory) -> Comparison {
    let rules_same = listed.ignore_stamps.iter().all(|(then, path)| tree.stamp(path) == *then);
    if !rules_same {
        return Comparison::RulesChanged;
    }
    if listed.cache.watch.is_current() {
        return Comparison::Same;
    }
    let now = tree.stamp(&listed.path);
    if now.is_some() && now == listed.stamp { Comparison::Same } else { Comparison::Changed }
}
