//! Builds the index from files.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use toolcrib_fs::{ContentCache, TreeReader, WholeRead};

use super::segment::{Builder, MAX_FILE_BYTES, Segment};
use super::segment_file;
use super::snapshot::View;
use super::{Index, MAX_OPEN};
use crate::content_class::Nature;
use crate::grep::Decoder;
use crate::listing::{EntryOf, FileId, Listed};

/// The files to index.
pub(crate) struct Work {
    pub(crate) directories: Arc<Vec<Arc<Listed>>>,
    pub(crate) letters: &'static dyn Decoder,
    /// Whether segments are kept for later processes.
    pub(crate) is_kept: bool,
}

/// More threads would slow down other work on the machine.
const THREADS: usize = 2;

/// Number of files that a thread takes at once. Files of one directory are opened from the same descriptor.
const AT_ONCE: usize = 64;

/// This many small segments are merged into larger ones. Fewer are not worth reading again.
const MANY_SMALL: usize = 8;
const SMALL_CHUNKS: usize = 1_024;

/// Updates the index to the current files.
pub(super) fn run(index: &Index, tree: &TreeReader, work: &Work) {
    // A process that keeps segments holds the lock. Other processes keep theirs in memory.
    let shelf = index.shelf.as_ref().filter(|_| work.is_kept);
    let lock = shelf.and_then(|shelf| Some((shelf, shelf.lock()?)));
    let shelf = lock.as_ref().map(|(shelf, _)| *shelf);
    let survey = BuildProgress::of(index, tree, work);
    let next = AtomicUsize::new(0);
    let read = || read(&Build { index, shelf, tree, work }, &survey.unknown, &next);
    match survey.unknown.len() <= AT_ONCE {
        true => read(),
        false => std::thread::scope(|scope| {
            (1..THREADS).for_each(|_| drop(scope.spawn(read)));
            read();
        }),
    }
    if !index.stop.load(Ordering::Relaxed) {
        let view = index.view();
        index.publish(|view| view.without(&survey.outdated));
        let gone = view.segments.iter().filter(|segment| survey.outdated.contains(&segment.serial));
        if let Some(shelf) = shelf {
            gone.filter_map(|segment| segment.kept.get()).for_each(|hash| shelf.remove(hash));
        }
    }
}

/// What a reading thread needs.
struct Build<'a> {
    index: &'a Index,
    /// Where segments are kept for later processes.
    shelf: Option<&'a ContentCache>,
    tree: &'a TreeReader,
    work: &'a Work,
}

/// The result of comparing all stat fingerprints with the index.
struct BuildProgress {
    /// Files that are not indexed, or only in an outdated segment.
    unknown: Vec<FileId>,
    /// Serials of the segments to remove.
    outdated: Vec<u32>,
}

impl BuildProgress {
    fn of(index: &Index, tree: &TreeReader, work: &Work) -> BuildProgress {
        let view = index.view();
        let (mut unknown, mut known) = (Vec::new(), Vec::new());
        for (at, listed) in work.directories.iter().enumerate() {
            if index.stop.load(Ordering::Relaxed) {
                break;
            }
            let has_files = listed.entries.iter().any(|entry| entry.kind == EntryOf::File);
            let directory = match listed.gone || !has_files {
                true => continue,
                false => tree.directory(&listed.path),
            };
            let Ok(directory) = directory else { continue };
            if !directory.is_local() {
                continue;
            }
            for (entry_at, entry) in listed.entries.iter().enumerate() {
                let Some(stamp) = (entry.kind == EntryOf::File)
                    .then(|| directory.stamp_of(listed.name(*entry)))
                    .flatten()
                else {
                    continue;
                };
                let file = FileId { directory: at as u32, entry: entry_at as u32 };
                match view.find(&stamp) {
                    Some(place) => known.push((file, place.serial)),
                    None if stamp.size > MAX_FILE_BYTES => {}
                    None => unknown.push(file),
                }
            }
        }
        let outdated = outdated(&view, &known);
        let again = known.iter().filter(|(_, serial)| outdated.contains(serial));
        unknown.extend(again.map(|(file, _)| *file));
        unknown.sort_unstable_by_key(|file| (file.directory, file.entry));
        BuildProgress { unknown, outdated }
    }
}

/// Segments of which most files are gone, and small segments if there are many.
fn outdated(view: &View, known: &[(FileId, u32)]) -> Vec<u32> {
    let mut alive: HashMap<u32, usize> = HashMap::new();
    known.iter().for_each(|(_, serial)| *alive.entry(*serial).or_default() += 1);
    let is_dead = |serial: u32, files: usize| alive.get(&serial).copied().unwrap_or(0) * 2 < files;
    let small = view.segments.iter().filter(|segment| segment.chunk_count() < SMALL_CHUNKS);
    let many_small = small.count() >= MANY_SMALL;
    let goes = view.segments.iter().filter(|segment| {
        is_dead(segment.serial, segment.files.len())
            || (many_small && segment.chunk_count() < SMALL_CHUNKS)
    });
    goes.map(|segment| segment.serial).collect()
}

/// Reads files in batches. Publishes a segment as soon as it is full.
fn read(build: &Build<'_>, files: &[FileId], next: &AtomicUsize) {
    let Build { index, tree, work, .. } = build;
    let mut builder = Builder::new(index.settings.chunk_bytes);
    let mut buffer = Vec::new();
    loop {
        let start = next.fetch_add(AT_ONCE, Ordering::Relaxed);
        let batch = files.iter().skip(start).take(AT_ONCE);
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
                builder.add(stamp, Nature::of(&buffer, work.letters), &buffer);
            }
            if builder.is_full() && !put(build, &mut builder) {
                next.store(files.len(), Ordering::Relaxed);
                return;
            }
        }
    }
    if !builder.is_empty() {
        put(build, &mut builder);
    }
}

/// Publishes the segment that was built. Returns whether there is room for more.
fn put(build: &Build<'_>, builder: &mut Builder) -> bool {
    let index = build.index;
    let segment = builder.finish(index.next_serial());
    let room = index.settings.max_bytes;
    let full = (index.view().bytes() + segment.bytes()) as u64 > room;
    index.building().full = full;
    if !full {
        let segment = match build.shelf {
            Some(shelf) => keep(index, shelf, segment),
            None => segment,
        };
        index.publish(|view| view.with([segment]));
    }
    !full
}

/// Writes a segment to the cache for later processes, if possible.
fn keep(index: &Index, shelf: &ContentCache, segment: Segment) -> Segment {
    let Some(bytes) = segment_file::to_bytes(&segment, index.settings.chunk_bytes) else {
        return segment;
    };
    let Ok(hash) = shelf.put(&bytes) else { return segment };
    let _ = segment.kept.set(hash);
    match shelf.open(&hash).filter(|_| index.view().segments.len() < MAX_OPEN) {
        Some(file) => segment.with_lists_in(file, bytes.len()),
        None => segment,
    }
}
