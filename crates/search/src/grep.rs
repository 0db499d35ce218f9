//! Searches many files for a pattern.

use std::borrow::Cow;
use std::ffi::OsStr;

use toolcrib_fs::{Directory, FsErrorKind, Stamp, TreeReader, WholeRead};

use crate::content_class::is_strange;
use crate::deadline::Deadline;
use crate::index::FileVerdict;
use crate::large_file_grep;
use crate::line_matches::{LineMatches, MatchOptions, find};
use crate::listing::{FileId, Listing};
use crate::listing_cache::ListingCaches;
use crate::parallel_ordered::in_order;
use crate::pattern::Pattern;
use crate::prefilter::{Narrowing, Sifted};

/// A search: its pattern, its files and its limits.
pub struct Grep<'a> {
    /// The root and its tree.
    pub tree: &'a TreeReader,
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

/// Decodes text of other encodings.
pub trait Decoder: Sync {
    /// Decodes bytes that are not plain UTF-8 with lines that end in `\n`.
    fn read<'b>(&self, bytes: &'b [u8]) -> Decoded<'b>;

    /// Returns a decoder for a large text that begins with `beginning`. `None` if it is not text.
    fn pieces(&self, beginning: &[u8]) -> Option<Box<dyn ChunkDecoder>>;
}

/// Decodes a text chunk by chunk.
pub trait ChunkDecoder {
    /// The name of the encoding, if it is not UTF-8.
    fn encoding(&self) -> Option<&'static str>;

    /// Decodes the next chunk to UTF-8 as far as possible, with lines that end in `\n`.
    fn feed<'b>(&mut self, bytes: &'b [u8], is_last: bool) -> Cow<'b, [u8]>;
}

/// The result of decoding.
#[derive(Debug)]
pub enum Decoded<'b> {
    /// Text: UTF-8 as far as possible, with lines that end in `\n`, and the name of the encoding if it is not
    /// UTF-8.
    Text(Cow<'b, [u8]>, Option<&'static str>),
    /// Not text.
    Binary,
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
const NAMED: usize = 3;

/// These files often fill a page of results. The prefilter is applied to the others only if they do not.
const SIFTED_FIRST: usize = 4_096;

/// Searches the files on all cores and passes each result to `take`, in the order of `files`, until `take`
/// returns false.
pub fn grep(
    grep: &Grep<'_>,
    files: &[FileId],
    mut take: impl FnMut(FileId, LineMatches, Stamp) -> bool + Send,
) -> Searched {
    let mut looked = Searched { complete: true, ..Searched::default() };
    let narrowing = Narrowing::begin(grep);
    let (first, rest) = files.split_at(files.len().min(SIFTED_FIRST));
    for files in [first, rest] {
        let (files, passed) = match &narrowing {
            Some(narrowing) => narrowing.sift(grep, files),
            None => (files.iter().map(|file| Sifted { file: *file, passed: 0 }).collect(), 0),
        };
        let mut to_the_end = true;
        in_order(
            &files,
            || Reader::new(grep, narrowing.as_ref()),
            |reader, sifted| match grep.stop.is_over() {
                true => Outcome::Stopped,
                false => reader.look(sifted.file, grep.keep),
            },
            |Sifted { file, passed }, outcome| {
                looked.searched += passed;
                to_the_end = note_outcome(&mut looked, grep, *file, outcome, &mut take);
                to_the_end
            },
        );
        if !to_the_end {
            break;
        }
        looked.searched += passed;
    }
    if let Some(narrowing) = narrowing {
        narrowing.end(grep);
    }
    looked
}

/// Counts an outcome and passes matches to `take`. Returns whether to continue.
fn note_outcome(
    looked: &mut Searched,
    grep: &Grep<'_>,
    file: FileId,
    outcome: Outcome,
    take: &mut impl FnMut(FileId, LineMatches, Stamp) -> bool,
) -> bool {
    match outcome {
        Outcome::Found(hits, stamp) => {
            note_undecided(looked, grep, file, &hits);
            let stopped = hits.stopped;
            looked.searched += u64::from(!stopped);
            looked.complete &= !stopped;
            let goes_on = hits.count == 0 || take(file, hits, stamp);
            return goes_on && !stopped;
        }
        Outcome::Nothing => looked.searched += 1,
        Outcome::Binary => looked.skipped.binary += 1,
        Outcome::Large(_) => {
            looked.skipped.large += 1;
            note(&mut looked.skipped.large_names, grep.listing, file);
        }
        Outcome::Unreadable => {
            looked.skipped.unreadable += 1;
            note(&mut looked.skipped.unreadable_names, grep.listing, file);
        }
        Outcome::Gone => {}
        Outcome::Stopped => {
            looked.complete = false;
            return false;
        }
    }
    true
}

fn note_undecided(looked: &mut Searched, grep: &Grep<'_>, file: FileId, hits: &LineMatches) {
    let undecided = &hits.undecided;
    if undecided.count == 0 {
        return;
    }
    looked.undecided += undecided.count;
    looked.undecided_files += 1;
    if looked.undecided_lines.len() < NAMED {
        looked.undecided_lines.push((grep.listing.path(file), undecided.first.clone()));
    }
}

/// Searches one file again with other options. Returns `None` if it has no match.
pub fn grep_ignored(grep: &Grep<'_>, file: FileId, keep: MatchOptions) -> Option<LineMatches> {
    match Reader::new(grep, None).look(file, keep) {
        Outcome::Found(hits, _) => Some(hits),
        _ => None,
    }
}

fn note(names: &mut Vec<std::path::PathBuf>, listing: &Listing, file: FileId) {
    if names.len() < NAMED {
        names.push(listing.path(file));
    }
}

/// State of one thread: the open directory, since the next file is most likely in it too, and a read buffer.
struct Reader<'a> {
    grep: &'a Grep<'a>,
    narrowing: Option<&'a Narrowing>,
    directory: Option<(u32, Directory)>,
    buffer: Vec<u8>,
}

/// A larger buffer is freed after use.
const KEPT_ROOM: usize = 1 << 20;

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// The encoding that is reported for a file that is searched as bytes.
pub(crate) const BINARY: &str = "binary";

impl<'a> Reader<'a> {
    fn new(grep: &'a Grep<'a>, narrowing: Option<&'a Narrowing>) -> Self {
        Reader { grep, narrowing, directory: None, buffer: Vec::new() }
    }

    fn look(&mut self, file: FileId, keep: MatchOptions) -> Outcome {
        if self.buffer.capacity() > KEPT_ROOM {
            self.buffer = Vec::new();
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let outcome = self
            .known(file, &mut buffer)
            .unwrap_or_else(|| self.look_into(file, keep, &mut buffer));
        self.buffer = buffer;
        outcome
    }

    fn look_into(&mut self, file: FileId, keep: MatchOptions, buffer: &mut Vec<u8>) -> Outcome {
        let stamp = match self.take(file, buffer).map_err(|outcome| *outcome) {
            Ok(stamp) => stamp,
            Err(Outcome::Large(stamp)) if self.grep.named && !self.grep.pattern.multiline => {
                return self.stream(file, stamp, keep, buffer);
            }
            Err(outcome) => return outcome,
        };
        match self.search(buffer, keep) {
            Some(hits) if hits.is_nothing() => Outcome::Nothing,
            Some(hits) => Outcome::Found(hits, stamp),
            None => Outcome::Binary,
        }
    }

    /// The outcome that the index knows, if the file is unchanged since it was indexed. If the index only
    /// knows in which parts a match could be, those parts are searched.
    fn known(&mut self, file: FileId, buffer: &mut Vec<u8>) -> Option<Outcome> {
        let narrowing = self.narrowing?;
        let name: &OsStr = self.grep.listing.name(file);
        let listing = self.grep.listing;
        let (place, stamp) = narrowing.find(listing, file, || self.open(file))?;
        match narrowing.verdict(place) {
            FileVerdict::NoMatch => Some(Outcome::Nothing),
            FileVerdict::Binary if self.grep.named => None,
            FileVerdict::Binary => Some(Outcome::Binary),
            FileVerdict::Unknown => None,
            FileVerdict::Within(parts) => {
                let Grep { pattern, stop, .. } = self.grep;
                let mut found = false;
                let directory = self.open(file)?;
                let same = directory.take_parts(name, &stamp, &parts, buffer, |at, part| {
                    let mark = part.strip_prefix(UTF8_BOM).filter(|_| at == 0);
                    let text = mark.unwrap_or(part);
                    found = find(pattern, text, MatchOptions::count(1), stop).count > 0;
                    !found
                });
                (same == Ok(true) && !found).then_some(Outcome::Nothing)
            }
        }
    }

    /// Reads a whole file. `Err` has the outcome if there is no content to search.
    fn take(&mut self, file: FileId, buffer: &mut Vec<u8>) -> Result<Stamp, Box<Outcome>> {
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
            Some(directory) => large_file_grep::search(grep, directory, name, stamp, keep, buffer),
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

    /// Searches bytes for the pattern. Returns `None` if they are not text.
    ///
    /// Nearly all files are plain UTF-8, and validating that takes as long as searching. So a file is
    /// inspected first only if it has a NUL or another mark of unusual text. The encoding is checked only
    /// where it could matter: if the pattern has characters beyond ASCII, or if there was a match.
    fn search(&self, bytes: &[u8], keep: MatchOptions) -> Option<LineMatches> {
        let Grep { pattern, stop, .. } = self.grep;
        let odd = |bytes: &[u8]| std::str::from_utf8(bytes).is_err();
        if !is_strange(bytes) && (pattern.ascii || !odd(bytes)) {
            let text = bytes.strip_prefix(UTF8_BOM).unwrap_or(bytes);
            let hits = find(pattern, text, keep, stop);
            if hits.count == 0 || !pattern.ascii || !odd(bytes) {
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
