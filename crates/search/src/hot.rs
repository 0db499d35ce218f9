//! The file table of a process that lives long: what was listed for one question serves the next.
//!
//! It is exact without anybody watching. Whatever appears, goes or is renamed in a directory changes the
//! directory's stamp, and a rule that changes changes the stamp of its file; so at each question every
//! directory and every ignore file is asked for its stamp, and those that are not what they were are
//! listed again. That takes a twentieth of a walk. What files say is never kept here.
//!
//! Each root has its index beside its table.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use toolcrib_fs::Tree;

use crate::grep::Letters;
use crate::index::{Index, IndexSettings, IndexStatus, Work};
use crate::listing::{Listed, Listing};
use crate::ordered::in_order;
use crate::stop::Stop;
use crate::walk::{Walk, list_again, walk};

/// Listings of whole roots, and what is known of their files.
#[derive(Debug, Default)]
pub struct Tables {
    settings: IndexSettings,
    /// The one used last at the end.
    roots: Mutex<Vec<Arc<Kept>>>,
}

#[derive(Debug)]
struct Kept {
    root: PathBuf,
    directories: Mutex<Option<Directories>>,
    index: Arc<Index>,
}

type Directories = Arc<Vec<Arc<Listed>>>;

/// So many roots are kept.
const ROOTS: usize = 4;

/// A root of more directories is walked each time: to keep it would take too much memory.
const MAX_DIRECTORIES: usize = 100_000;

/// Who waits for a table looks after so long whether it is free, and whether to wait at all.
const PAUSE: Duration = Duration::from_micros(200);

impl Tables {
    /// Tables whose roots are indexed as these settings say.
    pub fn new(settings: IndexSettings) -> Tables {
        Tables { settings, roots: Mutex::default() }
    }

    /// Lists as [`walk`] does, and quicker where the root was listed before.
    pub fn list(&self, asked: &Walk<'_>) -> Listing {
        // What is usually left out is not in a table.
        if asked.ignored || !asked.named.is_empty() {
            return walk(asked);
        }
        let root = self.root(asked.tree);
        let Some(mut kept) = wait_for(&root.directories, asked.stop) else { return walk(asked) };
        // Whatever ends this, a panic too, leaves no table rather than a wrong one.
        let refreshed = kept.take().and_then(|directories| refresh(asked, directories));
        let Some(directories) = refreshed else { return list_new(asked, &mut kept) };
        *kept = Some(directories.clone());
        drop(kept);
        let starts_at = |listed: &Arc<Listed>| !listed.gone && listed.path == asked.start;
        match directories.iter().position(starts_at) {
            // Beneath a hidden directory that was named, nothing is hidden: the table has it otherwise.
            Some(top) if !directories[top].hidden => {
                let top = u32::try_from(top).unwrap_or(0);
                Listing { directories, top, complete: true, hot: true }
            }
            _ => walk(asked),
        }
    }

    /// How far the index of a root is; nothing, if there was never a reason for one.
    pub fn index_status(&self, tree: &Tree) -> Option<IndexStatus> {
        let roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = roots.iter().find(|kept| kept.root == tree.path())?;
        Some(kept.index.status())
    }

    /// Takes into the index of a root what is not in it yet, here and now.
    pub fn build_index(&self, tree: &Tree, listing: &Listing, letters: &'static dyn Letters) {
        let work = Work { directories: listing.directories.clone(), letters };
        self.root(tree).index.build_now(tree, &work);
    }

    /// The index of a root, if it is large enough for one.
    pub(crate) fn index(&self, tree: &Tree, listing: &Listing) -> Option<Arc<Index>> {
        let is_large = listing.has_entries(self.settings.least_files);
        is_large.then(|| self.root(tree).index.clone())
    }

    fn root(&self, tree: &Tree) -> Arc<Kept> {
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = match roots.iter().position(|kept| kept.root == tree.path()) {
            Some(at) => roots.remove(at),
            None => Arc::new(Kept {
                root: tree.path().to_owned(),
                directories: Mutex::default(),
                index: Arc::new(Index::new(self.settings)),
            }),
        };
        if roots.len() >= ROOTS {
            roots.remove(0).index.end();
        }
        roots.push(kept.clone());
        kept
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        let roots = self.roots.get_mut().unwrap_or_else(PoisonError::into_inner);
        roots.iter().for_each(|kept| kept.index.end());
    }
}

/// The table once nobody else is at it; nothing, if time is over before.
fn wait_for<'a, T>(table: &'a Mutex<T>, stop: &Stop<'_>) -> Option<MutexGuard<'a, T>> {
    loop {
        match table.try_lock() {
            Ok(table) => return Some(table),
            Err(TryLockError::Poisoned(table)) => return Some(table.into_inner()),
            Err(TryLockError::WouldBlock) if stop.now() => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
}

fn list_new(asked: &Walk<'_>, kept: &mut Option<Directories>) -> Listing {
    let mut listing = walk(asked);
    let is_root = asked.start.as_os_str().is_empty();
    listing.hot = is_root && listing.complete && listing.directories.len() <= MAX_DIRECTORIES;
    if listing.hot {
        *kept = Some(listing.directories.clone());
    }
    listing
}

/// The table as it must be now; nothing, if only a walk can tell.
fn refresh(asked: &Walk<'_>, kept: Directories) -> Option<Directories> {
    let (mut at, mut changed, mut rules_changed, mut gone) = (0, Vec::new(), false, 0);
    in_order(
        &kept,
        || (),
        |(), listed| compare(asked.tree, listed),
        |listed, state| {
            match state {
                State::Same => {}
                State::Changed => changed.push(at),
                State::RulesChanged => rules_changed = true,
            }
            gone += usize::from(listed.gone);
            at += 1;
            !rules_changed
        },
    );
    if rules_changed || asked.stop.now() || gone > kept.len() / 4 {
        return None;
    }
    if changed.is_empty() {
        return Some(kept);
    }
    // Who still reads the table as it was keeps it so.
    list_again(asked, Arc::unwrap_or_clone(kept), &changed).map(Arc::new)
}

enum State {
    Same,
    Changed,
    RulesChanged,
}

fn compare(tree: &Tree, listed: &Listed) -> State {
    if listed.gone {
        return State::Same;
    }
    let rules_same = listed.ignore_stamps.iter().all(|(then, path)| tree.stamp(path) == *then);
    let now = tree.stamp(&listed.path);
    match (rules_same, now.is_some() && now == listed.stamp) {
        (false, _) => State::RulesChanged,
        (_, true) => State::Same,
        (_, false) => State::Changed,
    }
}
