//! Builds the index from files.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use toolcrib_fs::{BulkReader, ContentAddressedCache, WholeRead};

use super::segment::{MAX_FILE_BYTES, Segment, SegmentBuilder};
use super::segment_file;
use super::snapshot::Snapshot;
use super::{Index, MAX_OPEN_SEGMENTS};
use crate::content_class::ContentClass;
use crate::decoder::Decoder;
use crate::file_id::FileId;
use crate::listing::{ListedDirectory, ListedKind};

/// The files to index.
pub(crate) struct BuildInput {
    pub(crate) directories: Arc<Vec<Arc<ListedDirectory>>>,
    pub(crate) decoder: &'static dyn Decoder,
    /// Whether segments are kept for later processes.
    pub(crate) is_persistent: bool,
}

/// More threads would slow down other work on the machine.
const THREADS: usize = 2;

/// Number of files that a thread takes at once. Files of one directory are opened from the same descriptor.
const BATCH_FILES: usize = 64;

/// This many small segments are merged into larger ones. Fewer are not worth reading again.
const MIN_SMALL_SEGMENTS: usize = 8;
const SMALL_SEGMENT_CHUNKS: usize = 1_024;

/// Updates the index to the current files.
pub(super) fn run(index: &Index, tree: &BulkReader, work: &BuildInput) {
    // A process that keeps segments holds the lock. Other processes keep theirs in memory.
    let cache = index.cache.as_ref().filter(|_| work.is_persistent);
    let lock = cache.and_then(|cache| Some((cache, cache.lock()?)));
    let cache = lock.as_ref().map(|(cache, _)| *cache);
    let plan = BuildPlan::new(index, tree, work);
    let next = AtomicUsize::new(0);
    let read = || read_files(&BuildContext { index, cache, tree, work }, &plan.unindexed, &next);
    if plan.unindexed.len() <= BATCH_FILES {
        read();
    } else {
        std::thread::scope(|scope| {
            (1..THREADS).for_each(|_| drop(scope.spawn(read)));
            read();
        });
    }
    if !index.stop.load(Ordering::Relaxed) {
        let snapshot = index.snapshot();
        index.publish(|snapshot| snapshot.without(&plan.outdated));
        let gone =
            snapshot.segments.iter().filter(|segment| plan.outdated.contains(&segment.serial));
        if let Some(cache) = cache {
            gone.filter_map(|segment| segment.cache_hash.get()).for_each(|hash| cache.remove(hash));
        }
    }
}

/// The inputs of a reading thread.
struct BuildContext<'a> {
    index: &'a Index,
    /// Where segments are kept for later processes.
    cache: Option<&'a ContentAddressedCache>,
    tree: &'a BulkReader,
    work: &'a BuildInput,
}

/// The result of comparing all stat fingerprints with the index.
struct BuildPlan {
    /// Files that are not indexed, or only in an outdated segment.
    unindexed: Vec<FileId>,
    /// Serials of the segments to remove.
    outdated: Vec<u32>,
}

impl BuildPlan {
    fn new(index: &Index, tree: &BulkReader, work: &BuildInput) -> BuildPlan {
        let snapshot = index.snapshot();
        let (mut unindexed, mut known) = (Vec::new(), Vec::new());
        for (at, listed) in work.directories.iter().enumerate() {
            if index.stop.load(Ordering::Relaxed) {
                break;
            }
            let has_files = listed.entries.iter().any(|entry| entry.kind == ListedKind::File);
            let directory =
                if listed.gone || !has_files { continue } else { tree.directory(&listed.path) };
            let Ok(directory) = directory else { continue };
            if !directory.is_local() {
                continue;
            }
            for (entry_at, entry) in listed.entries.iter().enumerate() {
                let Some(stamp) = (entry.kind == ListedKind::File)
                    .then(|| directory.stamp_of(listed.name(*entry)))
                    .flatten()
                else {
                    continue;
                };
                let file = FileId { directory: at as u32, entry: entry_at as u32 };
                match snapshot.find(&stamp) {
                    Some(position) => known.push((file, position.serial)),
                    None if stamp.size > MAX_FILE_BYTES => {}
                    None => unindexed.push(file),
                }
            }
        }
        let outdated = outdated(&snapshot, &known);
        let again = known.iter().filter(|(_, serial)| outdated.contains(serial));
        unindexed.extend(again.map(|(file, _)| *file));
        unindexed.sort_unstable_by_key(|file| (file.directory, file.entry));
        BuildPlan { unindexed, outdated }
    }
}

/// Segments of which most files are gone, and small segments if there are many.
fn outdated(snapshot: &Snapshot, known: &[(FileId, u32)]) -> Vec<u32> {
    let mut alive: HashMap<u32, usize> = HashMap::new();
    known.iter().for_each(|(_, serial)| *alive.entry(*serial).or_default() += 1);
    let is_dead = |serial: u32, files: usize| alive.get(&serial).copied().unwrap_or(0) * 2 < files;
    let small =
        snapshot.segments.iter().filter(|segment| segment.chunk_count() < SMALL_SEGMENT_CHUNKS);
    let many_small = small.count() >= MIN_SMALL_SEGMENTS;
    let goes = snapshot.segments.iter().filter(|segment| {
        is_dead(segment.serial, segment.files.len())
            || (many_small && segment.chunk_count() < SMALL_SEGMENT_CHUNKS)
    });
    goes.map(|segment| segment.serial).collect()
}

/// Reads files in batches. Publishes a segment as soon as it is full.
fn read_files(build: &BuildContext<'_>, files: &[FileId], next: &AtomicUsize) {
    let BuildContext { index, tree, work, .. } = build;
    let mut builder = SegmentBuilder::new(index.settings.chunk_bytes);
    let mut buffer = Vec::new();
    loop {
        let start = next.fetch_add(BATCH_FILES, Ordering::Relaxed);
        let batch = files.iter().skip(start).take(BATCH_FILES);
        if batch.len() == 0 {
            break;
        }
        let mut open: Option<(u32, toolcrib_fs::Directory)> = None;
        for file in batch {
            if index.stop.load(Ordering::Relaxed) {
                return;
            }
            let listed = &work.directories[file.directory as usize];
            if open.as_ref().is_none_or(|(at, _)| *at != file.directory) {
                open = tree.directory(&listed.path).ok().map(|opened| (file.directory, opened));
            }
            let Some((_, directory)) = &open else { continue };
            let name = listed.name(listed.entries[file.entry as usize]);
            // Taken before the file is opened, so that a later change is detected.
            let now = SystemTime::now();
            if let Ok(WholeRead::Whole(stamp)) = directory.take(name, MAX_FILE_BYTES, &mut buffer)
                && stamp.is_settled_at(now)
                && stamp.size == buffer.len() as u64
            {
                builder.add(stamp, ContentClass::of(&buffer, work.decoder), &buffer);
            }
            if builder.is_full() && !publish_segment(build, &mut builder) {
                next.store(files.len(), Ordering::Relaxed);
                return;
            }
        }
    }
    if !builder.is_empty() {
        publish_segment(build, &mut builder);
    }
}

/// Publishes the segment that was built. Returns whether there is room for more.
fn publish_segment(build: &BuildContext<'_>, builder: &mut SegmentBuilder) -> bool {
    let index = build.index;
    let segment = builder.finish(Index::next_serial());
    let room = index.settings.max_bytes;
    let full = (index.snapshot().bytes() + segment.bytes()) as u64 > room;
    index.building.lock().full = full;
    if !full {
        let segment = match build.cache {
            Some(cache) => persist(index, cache, segment),
            None => segment,
        };
        index.publish(|snapshot| snapshot.with([segment]));
    }
    !full
}

/// Writes a segment to the cache for later processes, if possible.
fn persist(index: &Index, cache: &ContentAddressedCache, segment: Segment) -> Segment {
    let Some(bytes) = segment_file::to_bytes(&segment, index.settings.chunk_bytes) else {
        return segment;
    };
    let Ok(hash) = cache.put(&bytes) else { return segment };
    let _ = segment.cache_hash.set(hash);
    match cache.open(&hash).filter(|_| index.snapshot().segments.len() < MAX_OPEN_SEGMENTS) {
        Some(file) => segment.with_lists_in(file, bytes.len()),
        None => segment,
    }
}
