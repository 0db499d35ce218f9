//! The index: which files cannot match, known without looking into them.
//!
//! It never answers by itself. A file is known by its stamp (device, inode, size, both times), not by its
//! name; of one that has the stamp of what was read, the index knows the trigrams, and if those that a
//! pattern needs are not among them, it is not looked into. Any other file is searched as if there were no
//! index. So there is nothing that could be out of date: a file that was changed has another stamp.
//!
//! What was read an instant after it was changed might be changed once more without a trace; it is not
//! taken until it has aged. Only file systems of this machine are taken at all.

mod bits;
mod build;
mod chunks;
mod posting_lists;
mod postings;
mod query;
mod segment;
mod segment_file;
mod snapshot;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolcrib_fs::{ContentCache, FsError, TreeReader};

pub(crate) use self::build::Work;
pub(crate) use self::chunks::CHUNK_BYTES;
pub(crate) use self::query::{FileVerdict, Narrowed, Sieve};
pub(crate) use self::snapshot::{IndexPosition, View};
use crate::index_self_check;
use crate::pattern::Pattern;

/// How an index is made, and for which trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexSettings {
    /// A tree of so many files has one from its first search on, and it is kept for the next process. With
    /// `u64::MAX` there is none.
    pub least_files: u64,
    /// A tree of so many has one in memory, once it was searched several times.
    pub least_files_often: u64,
    /// What the index of a root may take, in memory and in files together; what does not fit is searched as it is.
    pub max_bytes: u64,
    /// How large the pieces are that files are cut into.
    pub chunk_bytes: usize,
    /// Directories that may be watched, besides what the system allows.
    pub max_watches: usize,
    /// Between two trials of whether index and watches are right.
    pub trial_pause: Duration,
}

impl Default for IndexSettings {
    fn default() -> Self {
        IndexSettings {
            least_files: 1_500,
            least_files_often: 64,
            max_bytes: 256 << 20,
            chunk_bytes: CHUNK_BYTES,
            max_watches: usize::MAX,
            trial_pause: Duration::from_secs(10),
        }
    }
}

/// What there is of an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexStatus {
    /// Files that are known.
    pub files: u64,
    /// What it takes, in memory and in files.
    pub bytes: u64,
    /// Whether it is being built.
    pub building: bool,
    /// How long the last build took.
    pub built_in: Option<Duration>,
    /// Whether there was no room for all.
    pub full: bool,
    /// Directories that are watched: nothing in them is asked for its stamp.
    pub watched: u64,
    /// Why there is none any more, if it was once wrong.
    pub off: Option<String>,
    /// A change was made that no watch told of: there are none any more.
    pub deaf: bool,
}

/// The index of a root.
#[derive(Debug)]
pub(crate) struct Index {
    settings: IndexSettings,
    /// Where it is kept for the next process.
    shelf: Option<ContentCache>,
    /// Somebody has looked there.
    is_loaded: AtomicBool,
    view: Mutex<Arc<View>>,
    building: Mutex<Building>,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct Building {
    running: bool,
    /// Not before this.
    next: Option<Instant>,
    serial: u32,
    took: Option<Duration>,
    full: bool,
    /// When it was last tried whether the index is right.
    tried: Option<Instant>,
    /// It was not, and this is why; whether somebody was told.
    off: Option<String>,
    is_told: bool,
}

/// Between two builds there is at least this, and ten times what the last one took: a file that is not in the
/// index yet costs little.
const CALM: Duration = Duration::from_millis(250);
const CALM_TIMES: u32 = 10;

/// What was kept of a root and not changed for so long goes when another root is asked for.
const KEPT_UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// So many files of kept segments are held open; the lists of further ones are held in memory, since handles
/// are scarcer.
const MAX_OPEN: usize = 64;

/// Where there was no room for all, trying again is of little use.
const FULL_CALM: Duration = Duration::from_secs(600);

impl Index {
    pub(crate) fn new(settings: IndexSettings, shelf: Option<ContentCache>) -> Index {
        let (is_loaded, view, building, stop) = Default::default();
        Index { settings, shelf, is_loaded, view, building, stop }
    }

    /// Takes in what an earlier process has kept, once. What does not hold together goes, and so does what
    /// there is no room for.
    pub(crate) fn load(&self) {
        let Some(shelf) = &self.shelf else { return };
        if self.is_loaded.swap(true, Ordering::Relaxed) {
            return;
        }
        shelf.remove_old_siblings(KEPT_UNUSED);
        let (mut segments, mut bytes) = (Vec::new(), 0);
        for shelved in shelf.list() {
            bytes += shelved.bytes;
            let fits = bytes <= self.settings.max_bytes;
            let read = || {
                let (bytes, file) = shelf.get(&shelved)?;
                let serial = self.next_serial();
                let segment = segment_file::from_bytes(&bytes, self.settings.chunk_bytes, serial)?;
                let _ = segment.kept.set(shelved.hash);
                Some(match segments.len() < MAX_OPEN {
                    true => segment.with_lists_in(file, bytes.len()),
                    false => segment,
                })
            };
            match fits.then(read).flatten() {
                Some(segment) => segments.push(segment),
                None => shelf.remove(&shelved.hash),
            }
        }
        // The newest came first, and is to be known best.
        if !segments.is_empty() {
            self.publish(|view| view.with(segments.into_iter().rev()));
        }
    }

    /// Forgets everything, and keeps nothing for the next process.
    pub(crate) fn forget(&self) -> Result<(), FsError> {
        self.is_loaded.store(true, Ordering::Relaxed);
        self.publish(|_| View::default());
        self.shelf.as_ref().map_or(Ok(()), ContentCache::clear)
    }

    /// What it makes of a pattern for files of up to so many bytes; nothing, if it cannot help.
    pub(crate) fn narrow(&self, pattern: &Pattern, max_bytes: u64) -> Option<Narrowed> {
        Narrowed::new(self.view(), pattern, max_bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.view().segments.is_empty()
    }

    /// Takes in what is not in it yet, in the background, unless that was done just now.
    pub(crate) fn build_later(self: &Arc<Self>, tree: &TreeReader, work: Work) {
        let mut building = self.building();
        let is_calm = building.next.is_none_or(|next| Instant::now() >= next);
        if building.running || !is_calm || self.is_ended() {
            return;
        }
        let (index, tree) = (self.clone(), tree.clone());
        let thread = std::thread::Builder::new().name("toolcrib-index".to_owned());
        building.running = thread.spawn(move || index.build_aside(&tree, &work)).is_ok();
    }

    /// Tries in the background whether it is right about a pattern, unless that was done just now. If it is not,
    /// there is no index from then on.
    pub(crate) fn try_later(self: &Arc<Self>, tree: &TreeReader, work: Work, pattern: &Pattern) {
        let mut building = self.building();
        let is_due =
            building.tried.is_none_or(|tried| tried.elapsed() >= self.settings.trial_pause);
        if building.running || !is_due || self.is_ended() {
            return;
        }
        let Some(pattern) = pattern.again() else { return };
        building.tried = Some(Instant::now());
        let (index, tree) = (self.clone(), tree.clone());
        let thread = std::thread::Builder::new().name("toolcrib-index".to_owned());
        let trial = move || {
            let _ = rustix::process::setpriority_process(None, 19);
            if let Some(why) = index_self_check::cast(&index, &tree, &work, &pattern) {
                index.turn_off(why);
            }
        };
        // One that cannot be started now is tried another time.
        let _ = thread.spawn(trial);
    }

    /// Why it is off, for the first who asks.
    pub(crate) fn take_alarm(&self) -> Option<String> {
        let mut building = self.building();
        let why = building.off.clone()?;
        (!std::mem::replace(&mut building.is_told, true)).then_some(why)
    }

    /// From now on there is none, and none is left to others.
    fn turn_off(&self, why: String) {
        self.building().off = Some(why);
        self.end();
        let _ = self.forget();
    }

    /// Takes in what is not in it yet, here and now.
    pub(crate) fn build_now(&self, tree: &TreeReader, work: &Work) {
        if self.is_ended() {
            return;
        }
        self.load();
        let began = Instant::now();
        build::run(self, tree, work);
        let took = began.elapsed();
        let mut building = self.building();
        building.running = false;
        building.took = Some(took);
        let calm = if building.full { FULL_CALM } else { CALM.max(took * CALM_TIMES) };
        building.next = Some(Instant::now() + calm);
    }

    pub(crate) fn status(&self) -> IndexStatus {
        let (view, building) = (self.view(), self.building());
        IndexStatus {
            files: view.file_count() as u64,
            bytes: view.bytes() as u64,
            building: building.running,
            built_in: building.took,
            full: building.full,
            watched: 0,
            off: building.off.clone(),
            deaf: false,
        }
    }

    /// Whether nothing more is to be done.
    pub(crate) fn is_ended(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends what is under way in the background.
    pub(crate) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn build_aside(&self, tree: &TreeReader, work: &Work) {
        // Whatever else wants the processor comes first. Of a thread that is all that is asked, and if the
        // system refuses, it is only less polite.
        let _ = rustix::process::setpriority_process(None, 19);
        // A panic must not leave behind that somebody is at it.
        struct Ending<'a>(&'a Index);
        impl Drop for Ending<'_> {
            fn drop(&mut self) {
                self.0.building().running = false;
            }
        }
        let _ending = Ending(self);
        self.build_now(tree, work);
    }

    /// What there is of it now.
    pub(crate) fn view(&self) -> Arc<View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts another view in place of the one that there is.
    fn publish(&self, change: impl FnOnce(&View) -> View) {
        let mut view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        // Also what was under way when it was turned off comes to nothing.
        *view = if self.is_ended() { Arc::default() } else { Arc::new(change(&view)) };
    }

    fn building(&self) -> MutexGuard<'_, Building> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_serial(&self) -> u32 {
        let mut building = self.building();
        building.serial += 1;
        building.serial
    }
}
