//! A self-check of the index: searches a sample of files without it, in the background.
//!
//! It should never find an error. If it does, the index of that root is disabled and its status says why:
//! slower, but right.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolcrib_fs::{Directory, Stamp, TreeReader, WholeRead};

use crate::content_class::is_strange;
use crate::deadline::Deadline;
use crate::index::{FileVerdict, Index, Narrowed, Work};
use crate::line_matches::{MatchOptions, find};
use crate::listing::{EntryOf, Listed};
use crate::pattern::Pattern;

/// Number of files in one check.
const TRIED: usize = 400;

/// Longer than any file takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Larger files are not checked.
const MAX_BYTES: u64 = 1 << 20;

/// Compares the index with full searches of some files. Returns a description of the first error.
pub(crate) fn cast(
    index: &Index,
    tree: &TreeReader,
    work: &Work,
    pattern: &Pattern,
) -> Option<String> {
    let narrowed = index.narrow(pattern, MAX_BYTES)?;
    let count = work.directories.iter().filter(|listed| !listed.gone).count().max(1);
    // Starts at another directory each time.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let first = now.subsec_nanos() as usize % count;
    let mut tried = 0;
    let mut buffer = Vec::new();
    for listed in work.directories.iter().cycle().skip(first).take(work.directories.len()) {
        let Some(directory) = (!listed.gone).then(|| tree.directory(&listed.path).ok()).flatten()
        else {
            continue;
        };
        for entry in listed.entries.iter().filter(|entry| entry.kind == EntryOf::File) {
            tried += 1;
            if tried > TRIED || index.is_ended() {
                return None;
            }
            let name = listed.name(*entry);
            if let Ok(WholeRead::Whole(stamp)) = directory.take(name, MAX_BYTES, &mut buffer)
                && is_wrong(&narrowed, pattern, &stamp, &buffer)
                && is_still(&directory, listed, *entry, &stamp)
            {
                return Some(format!("a match was missed in {}", listed.path.join(name).display()));
            }
        }
    }
    None
}

/// Whether the index excludes a match that exists.
fn is_wrong(narrowed: &Narrowed, pattern: &Pattern, stamp: &Stamp, bytes: &[u8]) -> bool {
    let Some(place) = narrowed.view().find(stamp) else { return false };
    // Files that need inspection are not checked here.
    if is_strange(bytes) || std::str::from_utf8(bytes).is_err() {
        return false;
    }
    let never = || false;
    let matches = |text: &[u8]| {
        let stop = Deadline::new(std::time::Instant::now() + PATIENCE, &never);
        find(pattern, text, MatchOptions::count(1), &stop).count > 0
    };
    match narrowed.verdict(place) {
        FileVerdict::NoMatch | FileVerdict::Binary => matches(bytes),
        FileVerdict::Unknown => false,
        FileVerdict::Within(parts) => {
            let part = |part: &std::ops::Range<u64>| {
                let end = usize::try_from(part.end).ok()?;
                bytes.get(usize::try_from(part.start).ok()?..end)
            };
            matches(bytes) && !parts.iter().filter_map(part).any(matches)
        }
    }
}

/// Whether the file did not change while it was checked.
fn is_still(
    directory: &Directory,
    listed: &Listed,
    entry: crate::listing::Entry,
    stamp: &Stamp,
) -> bool {
    directory.stamp_of(listed.name(entry)).as_ref() == Some(stamp)
}
