//! Searches many files for a pattern.

mod index_filter;
mod known_files;
mod large_file;
mod mapped_files;
#[cfg(test)]
mod mapped_files_tests;

use std::ffi::OsStr;

use toolcrib_fs::{BulkReader, Directory, FsErrorKind, Stamp, WholeRead};

use self::index_filter::{FileToRead, IndexFilter};
use crate::content_class::needs_inspection;
use crate::deadline::Deadline;
use crate::decoder::{Decoded, Decoder};
use crate::file_id::FileId;
use crate::index::FileVerdict;
use crate::line_matches::{LineMatches, MatchOptions, find};
use crate::listing::Listing;
use crate::listing_cache::ListingCaches;
use crate::parallel_ordered::map_in_order;
use crate::pattern::Pattern;

/// A search: its pattern, its files and its limits.
pub struct Grep<'a> {
    /// The root and its tree.
    pub tree: &'a BulkReader,
    /// The listing that the file ids refer to.
    pub listing: &'a Listing,
    /// The pattern.
    pub pattern: &'a Pattern,
    /// Decodes content that is not plain UTF-8.
    pub letters: &'static dyn Decoder,
    /// Listing caches, whose index can exclude files. `None` searches without an index.
    pub tables: Option<&'a ListingCaches>,
    /// Larger files are not read into memory.
    pub max_bytes: u64,
    /// The caller named the file. It is then searched as bytes if it is not text, and window by window if it
    /// is larger than `max_bytes`, unless matches may span lines. Otherwise such files are skipped.
    pub named: bool,
    /// Limits and context lines for each file.
    pub keep: MatchOptions,
    /// When to stop.
    pub stop: &'a Deadline<'a>,
}

/// The result of searching one file.
#[derive(Debug)]
pub enum Outcome {
    /// At least one match, or undecided lines.
    Found(LineMatches, Stamp),
    /// No match.
    Nothing,
    /// The file is not text.
    Binary,
    /// The file is too large.
    Large(Stamp),
    /// The file cannot be read.
    Unreadable,
    /// The file no longer exists.
    Gone,
    /// The deadline passed before the file was searched.
    Stopped,
}

/// Statistics of a search.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Searched {
    /// Number of files that were searched.
    pub searched: u64,
    /// Files that were skipped.
    pub skipped: Skipped,
    /// Number of undecided lines: the pattern backtracks too much on them.
    pub undecided: u64,
    /// The first files with undecided lines, each with the numbers of its first undecided lines.
    pub undecided_lines: Vec<(std::path::PathBuf, Vec<u64>)>,
    /// Number of files with undecided lines.
    pub undecided_files: u64,
    /// Whether all files were searched or skipped before the deadline.
    pub complete: bool,
}

/// Files that were not searched, by reason.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Not text.
    pub binary: u64,
    /// Too large.
    pub large: u64,
    /// The first files that are too large.
    pub large_names: Vec<std::path::PathBuf>,
    /// Not readable.
    pub unreadable: u64,
    /// The first files that are not readable.
    pub unreadable_names: Vec<std::path::PathBuf>,
}

/// Number of skipped files that are named.
const MAX_NAMED: usize = 3;

/// These files often fill a page of results. The index filter is applied to the others only if they do not.
const FIRST_BATCH: usize = 4_096;

/// Searches the files on all cores and passes each result to `take`, in the order of `files`, until `take`
/// returns false.
pub fn grep(
    grep: &Grep<'_>,
    files: &[FileId],
    mut take: impl FnMut(FileId, LineMatches, Stamp) -> bool + Send,
) -> Searched {
    let mut stats = Searched { complete: true, ..Searched::default() };
    let mut index_filter = IndexFilter::begin(grep, files);
    let first = files.len().min(FIRST_BATCH);
    for range in [0..first, first..files.len()] {
        let (to_read, skipped_before) = match &mut index_filter {
            Some(index_filter) => index_filter.files_to_read(grep, files, range),
            None => (
                files[range]
                    .iter()
                    .map(|file| FileToRead { file: *file, skipped_before: 0 })
                    .collect(),
                0,
            ),
        };
        let mut to_the_end = true;
        map_in_order(
            &to_read,
            || Reader::new(grep, index_filter.as_ref()),
            |reader, to_read| {
                if grep.stop.is_over() {
                    Outcome::Stopped
                } else {
                    reader.search_file(to_read.file, grep.keep)
                }
            },
            |FileToRead { file, skipped_before }, outcome| {
                stats.searched += skipped_before;
                to_the_end = record_outcome(&mut stats, grep, *file, outcome, &mut take);
                to_the_end
            },
        );
        if !to_the_end {
            break;
        }
        stats.searched += skipped_before;
    }
    if let Some(index_filter) = index_filter {
        index_filter.finish(grep, files);
    }
    stats
}

/// Counts an outcome and passes matches to `take`. Returns whether to continue.
fn record_outcome(
    stats: &mut Searched,
    grep: &Grep<'_>,
    file: FileId,
    outcome: Outcome,
    take: &mut impl FnMut(FileId, LineMatches, Stamp) -> bool,
) -> bool {
    match outcome {
        Outcome::Found(hits, stamp) => {
            record_undecided(stats, grep, file, &hits);
            let stopped = hits.stopped;
            stats.searched += u64::from(!stopped);
            stats.complete &= !stopped;
            let goes_on = hits.count == 0 || take(file, hits, stamp);
            return goes_on && !stopped;
        }
        Outcome::Nothing => stats.searched += 1,
        Outcome::Binary => stats.skipped.binary += 1,
        Outcome::Large(_) => {
            stats.skipped.large += 1;
            record_name(&mut stats.skipped.large_names, grep.listing, file);
        }
        Outcome::Unreadable => {
            stats.skipped.unreadable += 1;
            record_name(&mut stats.skipped.unreadable_names, grep.listing, file);
        }
        Outcome::Gone => {}
        Outcome::Stopped => {
            stats.complete = false;
            return false;
        }
    }
    true
}

fn record_undecided(stats: &mut Searched, grep: &Grep<'_>, file: FileId, hits: &LineMatches) {
    let undecided = &hits.undecided;
    if undecided.count == 0 {
        return;
    }
    stats.undecided += undecided.count;
    stats.undecided_files += 1;
    if stats.undecided_lines.len() < MAX_NAMED {
        stats.undecided_lines.push((grep.listing.path(file), undecided.first.clone()));
    }
}

/// Searches one file again with other options. Returns `None` if it has no match.
pub fn grep_ignored(grep: &Grep<'_>, file: FileId, keep: MatchOptions) -> Option<LineMatches> {
    match Reader::new(grep, None).search_file(file, keep) {
        Outcome::Found(hits, _) => Some(hits),
        _ => None,
    }
}

fn record_name(names: &mut Vec<std::path::PathBuf>, listing: &Listing, file: FileId) {
    if names.len() < MAX_NAMED {
        names.push(listing.path(file));
    }
}

/// State of one thread: the open directory, since the next file is most likely in it too, and a read buffer.
struct Reader<'a> {
    grep: &'a Grep<'a>,
    index_filter: Option<&'a IndexFilter>,
    directory: Option<(u32, Directory)>,
    buffer: Vec<u8>,
    /// The stat fingerprint of the current file, if its indexed content is plain text.
    plain: Option<Stamp>,
}

/// A larger buffer is freed after use.
const MAX_KEPT_BUFFER_BYTES: usize = 1 << 20;

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// The encoding that is reported for a file that is searched as bytes.
pub(crate) const BINARY: &str = "binary";

impl<'a> Reader<'a> {
    fn new(grep: &'a Grep<'a>, index_filter: Option<&'a IndexFilter>) -> Self {
        Reader { grep, index_filter, directory: None, buffer: Vec::new(), plain: None }
    }

    fn search_file(&mut self, file: FileId, keep: MatchOptions) -> Outcome {
        if self.buffer.capacity() > MAX_KEPT_BUFFER_BYTES {
            self.buffer = Vec::new();
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        self.plain = None;
        let outcome = self
            .outcome_from_index(file, &mut buffer)
            .unwrap_or_else(|| self.read_and_search(file, keep, &mut buffer));
        self.buffer = buffer;
        outcome
    }

    fn read_and_search(
        &mut self,
        file: FileId,
        keep: MatchOptions,
        buffer: &mut Vec<u8>,
    ) -> Outcome {
        let stamp = match self.read_whole(file, buffer).map_err(|outcome| *outcome) {
            Ok(stamp) => stamp,
            Err(Outcome::Large(stamp)) if self.grep.named && !self.grep.pattern.multiline => {
                return self.stream(file, stamp, keep, buffer);
            }
            Err(outcome) => return outcome,
        };
        match self.search(buffer, self.plain == Some(stamp), keep) {
            Some(hits) if hits.is_empty() => Outcome::Nothing,
            Some(hits) => Outcome::Found(hits, stamp),
            None => Outcome::Binary,
        }
    }

    /// The outcome that the index knows, if the file is unchanged since it was indexed. If the index only
    /// knows in which parts a match could be, those parts are searched.
    fn outcome_from_index(&mut self, file: FileId, buffer: &mut Vec<u8>) -> Option<Outcome> {
        let index_filter = self.index_filter?;
        let name: &OsStr = self.grep.listing.name(file);
        let listing = self.grep.listing;
        let (position, stamp) = index_filter.find(listing, file, || self.open(file))?;
        self.plain = index_filter.is_plain(position).then_some(stamp);
        match index_filter.verdict(position) {
            FileVerdict::NoMatch => Some(Outcome::Nothing),
            FileVerdict::Binary if self.grep.named => None,
            FileVerdict::Binary => Some(Outcome::Binary),
            FileVerdict::Unknown => None,
            FileVerdict::Within(parts) => {
                let Grep { pattern, stop, .. } = self.grep;
                // Or a line is undecided, or the deadline passed.
                let mut found = false;
                let directory = self.open(file)?;
                let same = directory.take_parts(name, &stamp, &parts, buffer, |at, part| {
                    let mark = part.strip_prefix(UTF8_BOM).filter(|_| at == 0);
                    let text = mark.unwrap_or(part);
                    found = !find(pattern, text, MatchOptions::count(1), stop).is_empty();
                    !found
                });
                (same == Ok(true) && !found).then_some(Outcome::Nothing)
            }
        }
    }

    /// Reads a whole file. `Err` has the outcome if there is no content to search.
    fn read_whole(&mut self, file: FileId, buffer: &mut Vec<u8>) -> Result<Stamp, Box<Outcome>> {
        let name: &OsStr = self.grep.listing.name(file);
        let max_bytes = self.grep.max_bytes;
        let Some(directory) = self.open(file) else { return Err(Outcome::Unreadable.into()) };
        match directory.take(name, max_bytes, buffer) {
            Ok(WholeRead::Whole(stamp)) => Ok(stamp),
            Ok(WholeRead::TooLarge(stamp)) => Err(Outcome::Large(stamp).into()),
            Ok(WholeRead::NotRegular) | Err(FsErrorKind::NotFound) => Err(Outcome::Gone.into()),
            Err(_) => Err(Outcome::Unreadable.into()),
        }
    }

    /// Searches a file that is too large to be read whole.
    fn stream(
        &mut self,
        file: FileId,
        stamp: Stamp,
        keep: MatchOptions,
        buffer: &mut Vec<u8>,
    ) -> Outcome {
        let (grep, name) = (self.grep, self.grep.listing.name(file));
        match self.open(file) {
            Some(directory) => large_file::search(grep, directory, name, stamp, keep, buffer),
            None => Outcome::Unreadable,
        }
    }

    fn open(&mut self, file: FileId) -> Option<&Directory> {
        if self.directory.as_ref().is_none_or(|(at, _)| *at != file.directory) {
            let opened = self.grep.tree.directory(self.grep.listing.directory_of(file));
            self.directory = opened.ok().map(|directory| (file.directory, directory));
        }
        self.directory.as_ref().map(|(_, directory)| directory)
    }

    /// Searches bytes for the pattern. Returns `None` if they are not text. `is_plain`: the index knows that they are
    /// plain text.
    ///
    /// Nearly all files are plain UTF-8, and validating that takes as long as searching. So a file is
    /// inspected first only if it has a NUL or another mark of unusual text. The encoding is checked only
    /// where it could matter: if the pattern has characters beyond ASCII, or if there was a match.
    fn search(&self, bytes: &[u8], is_plain: bool, keep: MatchOptions) -> Option<LineMatches> {
        let Grep { pattern, stop, .. } = self.grep;
        let is_not_utf8 = |bytes: &[u8]| !is_plain && std::str::from_utf8(bytes).is_err();
        if (is_plain || !needs_inspection(bytes)) && (pattern.ascii || !is_not_utf8(bytes)) {
            let text = bytes.strip_prefix(UTF8_BOM).unwrap_or(bytes);
            let hits = find(pattern, text, keep, stop);
            if hits.count == 0 || !pattern.ascii || !is_not_utf8(bytes) {
                return Some(hits);
            }
        }
        match self.grep.letters.read(bytes) {
            Decoded::Binary if self.grep.named => {
                Some(LineMatches { encoding: Some(BINARY), ..find(pattern, bytes, keep, stop) })
            }
            Decoded::Binary => None,
            Decoded::Text(text, encoding) => {
                let text = text.strip_prefix(UTF8_BOM).unwrap_or(&text);
                Some(LineMatches { encoding, ..find(pattern, text, keep, stop) })
            }
        }
    }
}
