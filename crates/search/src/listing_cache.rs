//! The file table of a process that lives long: what was listed for one question serves the next.
//!
//! It is exact without anybody watching. Whatever appears, goes or is renamed in a directory changes the
//! directory's stamp, and a rule that changes changes the stamp of its file; so at each question every
//! directory and every ignore file is asked for its stamp, and those that are not what they were are
//! listed again. That takes a twentieth of a walk. What files say is never kept here.
//!
//! Each root has its index beside its table. Where the index is worth it, directories are watched as well, and
//! what is watched is not asked for its stamp: see `watching`.

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

/// Listings of whole roots, and what is known of their files.
#[derive(Debug, Default)]
pub struct ListingCaches {
    settings: IndexSettings,
    /// Where indexes are kept for the next process.
    shelves: Option<PathBuf>,
    /// The one used last at the end.
    roots: Mutex<Vec<Arc<Kept>>>,
}

#[derive(Debug)]
struct Kept {
    root: PathBuf,
    table: Mutex<Option<Table>>,
    /// How often it was searched.
    searches: AtomicU64,
    /// How many directories are watched.
    watched: AtomicU64,
    /// A change was made that no watch told of, and whether somebody was told.
    deaf: AtomicBool,
    is_told: AtomicBool,
    index: Arc<Index>,
}

#[derive(Debug)]
struct Table {
    directories: Directories,
    /// What was left out of it as nobody's business.
    own: Vec<PathBuf>,
    watching: Option<Watching>,
    spots: WatchSelfCheck,
    summary: Arc<Summary>,
    /// The directories that are compared at each question, if all others are sure; nothing, if that is not
    /// known.
    unsure: Option<Vec<u32>>,
}

type Directories = Arc<Vec<Arc<Listed>>>;

/// So many roots are kept.
const ROOTS: usize = 4;

/// A root of more directories is walked each time: to keep it would take too much memory.
const MAX_DIRECTORIES: usize = 100_000;

/// After so many searches a small tree is worth an index: there will be more of them.
const OFTEN: u64 = 3;

/// Where more files than these have come, all are asked for their stamps: it takes as long.
const MANY_NEW: usize = 4_000;

/// Who waits for a table looks after so long whether it is free, and whether to wait at all.
const PAUSE: Duration = Duration::from_micros(200);

impl ListingCaches {
    /// Tables whose roots are indexed as these settings say. In a directory, if there is one, indexes are
    /// kept for the next process.
    pub fn new(settings: IndexSettings, shelves: Option<PathBuf>) -> ListingCaches {
        ListingCaches { settings, shelves, roots: Mutex::default() }
    }

    /// Lists as [`walk`] does, and quicker where the root was listed before.
    pub fn list(&self, asked: &Walk<'_>) -> Listing {
        // What is usually left out is not in a table.
        if asked.ignored || !asked.named.is_empty() {
            return walk(asked);
        }
        let root = self.root(asked.tree);
        let Some(mut kept) = wait_for(&root.table, asked.stop) else { return walk(asked) };
        // Whatever ends this, a panic too, leaves no table rather than a wrong one.
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
            // Beneath a hidden directory that was named, nothing is hidden: the table has it otherwise.
            Some(top) if !directories[top].hidden => {
                let top = u32::try_from(top).unwrap_or(0);
                let summary = if top == 0 { summary } else { Arc::default() };
                Listing { directories, top, complete: true, hot: true, summary }
            }
            _ => walk(asked),
        }
    }

    /// How far the index of a root is, with what an earlier process has kept.
    pub fn index_status(&self, tree: &TreeReader) -> IndexStatus {
        let kept = self.root(tree);
        kept.index.load();
        IndexStatus {
            watched: kept.watched.load(Ordering::Relaxed),
            deaf: kept.deaf.load(Ordering::Relaxed),
            ..kept.index.status()
        }
    }

    /// What went wrong with the index of a root, or with its watches, so that they are not used any more: for the
    /// first who asks.
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

    /// Whether the root of a listing has enough files for an index that is kept.
    pub fn is_indexed(&self, listing: &Listing) -> bool {
        has_entries(&listing.directories, self.settings.least_files)
    }

    /// Forgets the index of a root, and what is kept of it.
    pub fn drop_index(&self, tree: &TreeReader) -> Result<(), FsError> {
        self.root(tree).index.forget()
    }

    /// Takes into the index of a root what is not in it yet, here and now.
    pub fn build_index(&self, tree: &TreeReader, listing: &Listing, letters: &'static dyn Decoder) {
        let work = Work { directories: listing.directories.clone(), letters, is_kept: true };
        self.root(tree).index.build_now(tree, &work);
    }

    /// The index of a root that is searched, if it is worth one.
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

/// The table once nobody else is at it; nothing, if time is over before.
fn wait_for<'a, T>(table: &'a Mutex<T>, stop: &Deadline<'_>) -> Option<MutexGuard<'a, T>> {
    loop {
        match table.try_lock() {
            Ok(table) => return Some(table),
            Err(TryLockError::Poisoned(table)) => return Some(table.into_inner()),
            Err(TryLockError::WouldBlock) if stop.now() => return None,
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

/// The table as it must be now; nothing, if only a walk can tell.
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
    if news.rules_changed || news.paths_changed || asked.stop.now() {
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
            // Who still reads the table as it was keeps it so.
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

/// Whether something that has come has another name as well, or may have: what is written through it may be a
/// file that is noted, and no notice comes where that is. From `known` on directories are new.
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

/// Tries whether what is noted is so; answers whether everything had to be forgotten.
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

/// The directories of which something must be asked of the disk.
fn all_unsure(directories: &Directories) -> Vec<u32> {
    let numbered = (0..).zip(directories.iter());
    numbered.filter(|(_, listed)| is_unsure(listed)).map(|(at, _)| at).collect()
}

/// Compares directories with what they were, and notes those that changed.
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

/// Whether something must be asked of the disk. The excludes of a repository are where nobody watches.
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
