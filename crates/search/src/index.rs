//! The index: it knows that some files cannot match, without reading them.
//!
//! It never answers a search by itself. A file is identified by its stat fingerprint (device, inode, size,
//! mtime, ctime), not by its name. For a file with the fingerprint of indexed content, the index knows the
//! trigrams. If a trigram that the pattern requires is missing, the file is not read. Any other file is
//! searched as if there were no index. So nothing can be out of date: a changed file has another fingerprint.
//!
//! A file that was modified very recently is racy: a later write might not change its fingerprint. It is
//! indexed only after it has aged. Only local file systems are indexed.

mod build;
mod posting_codec;
mod posting_storage;
mod query;
mod segment;
mod segment_file;
mod self_check;
#[cfg(test)]
mod self_check_tests;
mod snapshot;
mod text_chunks;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolcrib_fs::{BulkReader, ContentAddressedCache, FsError};

pub(crate) use self::build::BuildInput;
pub(crate) use self::query::{FileVerdict, IndexQuery, NoMatchLookup};
use self::segment_file::SegmentVersion;
pub(crate) use self::snapshot::Snapshot;
pub(crate) use self::text_chunks::CHUNK_BYTES;
use crate::pattern::Pattern;

/// Settings of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexSettings {
    /// A tree with this many files is indexed from its first search, and the index is kept for later
    /// processes. `u64::MAX` disables the index.
    pub least_files: u64,
    /// A tree with this many files is indexed in memory, once it was searched several times.
    pub least_files_often: u64,
    /// Size limit of the index of a root, in memory and in files together. Files beyond it are searched
    /// without the index.
    pub max_bytes: u64,
    /// Size of the chunks that files are split into.
    pub chunk_bytes: usize,
    /// Maximum number of watched directories. The system limit applies too.
    pub max_watches: usize,
    /// Interval between two self-checks of index and watches.
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

/// The state of an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexStatus {
    /// Number of indexed files.
    pub files: u64,
    /// Size in memory and in files.
    pub bytes: u64,
    /// Whether a build is running.
    pub building: bool,
    /// Duration of the last build.
    pub built_in: Option<Duration>,
    /// Whether the size limit excluded some files.
    pub full: bool,
    /// Number of watched directories. Their files need no stat.
    pub watched: u64,
    /// Why the index was disabled, if a self-check found an error.
    pub off: Option<String>,
    /// Whether watching was disabled, because a watch missed a change.
    pub deaf: bool,
    /// Whether an index of an older version was deleted. It is built again.
    pub dropped_older: bool,
    /// Whether there is an index of a newer version, which is not used.
    pub has_newer: bool,
}

/// The index of a root.
#[derive(Debug)]
pub(crate) struct Index {
    settings: IndexSettings,
    /// Where segments are kept for later processes.
    cache: Option<ContentAddressedCache>,
    /// Whether the kept segments were loaded.
    is_loaded: AtomicBool,
    snapshot: Mutex<Arc<Snapshot>>,
    building: Mutex<BuildState>,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct BuildState {
    running: bool,
    /// No build starts before this time.
    not_before: Option<Instant>,
    last_duration: Option<Duration>,
    full: bool,
    /// Time of the last self-check.
    last_check: Option<Instant>,
    /// Why the index was disabled, and whether that was reported.
    off: Option<String>,
    is_reported: bool,
    /// Whether segments of other versions were found: older ones are deleted, newer ones are not used.
    dropped_older: bool,
    has_newer: bool,
}

/// The last serial of any index. A listing with cached ids may outlive the index that they come from, so an id must not
/// mean another file in the next index of that root.
static LAST_SERIAL: AtomicU32 = AtomicU32::new(0);

/// Minimum pause between two builds: this, or ten times the duration of the last build. Few unindexed files
/// cost little.
const MIN_BUILD_INTERVAL: Duration = Duration::from_millis(250);
const BUILD_INTERVAL_FACTOR: u32 = 10;

/// The kept index of a root that was not changed for this time is deleted when another root is loaded.
const MAX_UNUSED_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Number of segment files that are held open. The posting lists of further ones are held in memory, since
/// file descriptors are scarcer.
const MAX_OPEN_SEGMENTS: usize = 64;

/// Pause after a build that hit the size limit. Another build would find little room.
const FULL_BUILD_INTERVAL: Duration = Duration::from_secs(600);

impl Index {
    pub(crate) fn new(settings: IndexSettings, cache: Option<ContentAddressedCache>) -> Index {
        let (is_loaded, snapshot, building, stop) = Default::default();
        Index { settings, cache, is_loaded, snapshot, building, stop }
    }

    /// Loads the kept segments, once. Deletes segments that are invalid, exceed the size limit, or were written by
    /// an older version. Leaves those of a newer version alone.
    pub(crate) fn load(&self) {
        let Some(cache) = &self.cache else { return };
        if self.is_loaded.swap(true, Ordering::Relaxed) {
            return;
        }
        cache.remove_old_siblings(MAX_UNUSED_AGE);
        let (mut segments, mut bytes) = (Vec::new(), 0);
        for cached in cache.list() {
            let version = cache.open(&cached.hash).map(|file| SegmentVersion::of(&file));
            match version {
                Some(SegmentVersion::Newer) => {
                    self.building.lock().has_newer = true;
                    continue;
                }
                Some(SegmentVersion::Older) => {
                    self.building.lock().dropped_older = true;
                    cache.remove(&cached.hash);
                    continue;
                }
                Some(SegmentVersion::Same) | None => {}
            }
            bytes += cached.bytes;
            let fits = bytes <= self.settings.max_bytes;
            let read = || {
                let (bytes, file) = cache.get(&cached)?;
                let serial = Index::next_serial();
                let segment = segment_file::from_bytes(&bytes, self.settings.chunk_bytes, serial)?;
                let _ = segment.cache_hash.set(cached.hash);
                Some(if segments.len() < MAX_OPEN_SEGMENTS {
                    segment.with_lists_in(file, bytes.len())
                } else {
                    segment
                })
            };
            match fits.then(read).flatten() {
                Some(segment) => segments.push(segment),
                None => cache.remove(&cached.hash),
            }
        }
        // The newest segment comes first in the cache. It must have the highest serial.
        if !segments.is_empty() {
            self.publish(|snapshot| snapshot.with(segments.into_iter().rev()));
        }
    }

    /// Deletes the index, in memory and in the cache.
    pub(crate) fn clear(&self) -> Result<(), FsError> {
        self.is_loaded.store(true, Ordering::Relaxed);
        self.publish(|_| Snapshot::default());
        self.cache.as_ref().map_or(Ok(()), ContentAddressedCache::clear)
    }

    /// Prepares the index for a pattern and files of at most `max_bytes`. `None` if the index cannot help.
    pub(crate) fn query(&self, pattern: &Pattern, max_bytes: u64) -> Option<IndexQuery> {
        IndexQuery::new(self.snapshot(), pattern, max_bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.snapshot().segments.is_empty()
    }

    /// Indexes new files in the background, unless a build just ran.
    pub(crate) fn build_later(self: &Arc<Self>, tree: &BulkReader, work: BuildInput) {
        let mut building = self.building.lock();
        let is_due = building.not_before.is_none_or(|time| Instant::now() >= time);
        if building.running || !is_due || self.is_stopped() {
            return;
        }
        let (index, tree) = (self.clone(), tree.clone());
        let thread = std::thread::Builder::new().name("toolcrib-index".to_owned());
        building.running = thread.spawn(move || index.build_in_background(&tree, &work)).is_ok();
    }

    /// Checks in the background whether the index is right about a pattern, unless a check just ran. If it is
    /// wrong, the index is disabled.
    pub(crate) fn check_later(
        self: &Arc<Self>,
        tree: &BulkReader,
        work: BuildInput,
        pattern: &Pattern,
    ) {
        let mut building = self.building.lock();
        let is_due =
            building.last_check.is_none_or(|last| last.elapsed() >= self.settings.trial_pause);
        if building.running || !is_due || self.is_stopped() {
            return;
        }
        let Some(pattern) = pattern.duplicate() else { return };
        building.last_check = Some(Instant::now());
        let (index, tree) = (self.clone(), tree.clone());
        let thread = std::thread::Builder::new().name("toolcrib-index".to_owned());
        let check = move || {
            let _ = rustix::process::setpriority_process(None, 19);
            if let Some(why) = self_check::find_missed_match(&index, &tree, &work, &pattern) {
                index.disable(why);
            }
        };
        // If the thread cannot be started, the next check is made later.
        let _ = thread.spawn(check);
    }

    /// Why the index was disabled. Returned only once.
    pub(crate) fn take_alarm(&self) -> Option<String> {
        let mut building = self.building.lock();
        let why = building.off.clone()?;
        (!std::mem::replace(&mut building.is_reported, true)).then_some(why)
    }

    /// Disables the index and deletes its kept segments.
    fn disable(&self, why: String) {
        self.building.lock().off = Some(why);
        self.stop();
        let _ = self.clear();
    }

    /// Indexes new files in this thread.
    pub(crate) fn build_now(&self, tree: &BulkReader, work: &BuildInput) {
        if self.is_stopped() {
            return;
        }
        self.load();
        let began = Instant::now();
        build::run(self, tree, work);
        let duration = began.elapsed();
        let mut building = self.building.lock();
        building.running = false;
        building.last_duration = Some(duration);
        let interval = if building.full {
            FULL_BUILD_INTERVAL
        } else {
            MIN_BUILD_INTERVAL.max(duration * BUILD_INTERVAL_FACTOR)
        };
        building.not_before = Some(Instant::now() + interval);
    }

    pub(crate) fn status(&self) -> IndexStatus {
        let (snapshot, building) = (self.snapshot(), self.building.lock());
        IndexStatus {
            files: snapshot.file_count() as u64,
            bytes: snapshot.bytes() as u64,
            building: building.running,
            built_in: building.last_duration,
            full: building.full,
            watched: 0,
            off: building.off.clone(),
            deaf: false,
            dropped_older: building.dropped_older,
            has_newer: building.has_newer,
        }
    }

    /// Whether the index was disabled or stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Stops work in the background.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn build_in_background(&self, tree: &BulkReader, work: &BuildInput) {
        // Other work on the processor has priority. If the system denies this, the build only competes with
        // it.
        let _ = rustix::process::setpriority_process(None, 19);
        // A panic must reset `running` too.
        struct ResetRunning<'a>(&'a Index);
        impl Drop for ResetRunning<'_> {
            fn drop(&mut self) {
                self.0.building.lock().running = false;
            }
        }
        let _reset = ResetRunning(self);
        self.build_now(tree, work);
    }

    /// The current snapshot.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.lock().clone()
    }

    /// Replaces the current snapshot.
    fn publish(&self, change: impl FnOnce(&Snapshot) -> Snapshot) {
        let mut snapshot = self.snapshot.lock();
        // Discards a build that was running when the index was stopped.
        *snapshot = if self.is_stopped() { Arc::default() } else { Arc::new(change(&snapshot)) };
    }

    fn next_serial() -> u32 {
        LAST_SERIAL.fetch_add(1, Ordering::Relaxed) + 1
    }
}
