//! A self-check of the index: searches a sample of files without it, in the background.
//!
//! It should never find an error. If it does, the index of that root is disabled and its status says why:
//! slower, but right.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolcrib_fs::{BulkReader, Directory, Stamp, WholeRead};

use super::{BuildInput, FileVerdict, Index, IndexQuery};
use crate::content_class::needs_inspection;
use crate::deadline::Deadline;
use crate::line_matches::{MatchOptions, find};
use crate::listing::{ListedDirectory, ListedKind};
use crate::pattern::Pattern;

/// Number of files in one check.
const CHECKED_FILES: usize = 400;

/// Longer than any file takes.
const MATCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Larger files are not checked.
const MAX_BYTES: u64 = 1 << 20;

/// Compares the index with full searches of some files. Returns a description of the first error.
pub(crate) fn find_missed_match(
    index: &Index,
    tree: &BulkReader,
    work: &BuildInput,
    pattern: &Pattern,
) -> Option<String> {
    let query = index.query(pattern, MAX_BYTES)?;
    let count = work.directories.iter().filter(|listed| !listed.gone).count().max(1);
    // Starts at another directory each time.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let first = now.subsec_nanos() as usize % count;
    let mut checked = 0;
    let mut buffer = Vec::new();
    for listed in work.directories.iter().cycle().skip(first).take(work.directories.len()) {
        let Some(directory) = (!listed.gone).then(|| tree.directory(&listed.path).ok()).flatten()
        else {
            continue;
        };
        for entry in listed.entries.iter().filter(|entry| entry.kind == ListedKind::File) {
            checked += 1;
            if checked > CHECKED_FILES || index.is_stopped() {
                return None;
            }
            let name = listed.name(*entry);
            if let Ok(WholeRead::Whole(stamp)) = directory.take(name, MAX_BYTES, &mut buffer)
                && misses_match(&query, pattern, &stamp, &buffer)
                && is_unchanged(&directory, listed, *entry, &stamp)
            {
                return Some(format!("a match was missed in {}", listed.path.join(name).display()));
            }
        }
    }
    None
}

/// Whether the index excludes a match that exists.
fn misses_match(query: &IndexQuery, pattern: &Pattern, stamp: &Stamp, bytes: &[u8]) -> bool {
    let Some(position) = query.snapshot().find(stamp) else { return false };
    // Files that need inspection are not checked here.
    if needs_inspection(bytes) || std::str::from_utf8(bytes).is_err() {
        return false;
    }
    let never = || false;
    let matches = |text: &[u8]| {
        let stop = Deadline::new(std::time::Instant::now() + MATCH_TIMEOUT, &never);
        find(pattern, text, MatchOptions::count(1), &stop).count > 0
    };
    match query.verdict(position) {
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
fn is_unchanged(
    directory: &Directory,
    listed: &ListedDirectory,
    entry: crate::listing::Entry,
    stamp: &Stamp,
) -> bool {
    directory.stamp_of(listed.name(entry)).as_ref() == Some(stamp)
}
