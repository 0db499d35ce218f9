//! Looking for a pattern in many files.

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

/// What to look for, and where.
pub struct Grep<'a> {
    /// The root and what is beneath.
    pub tree: &'a TreeReader,
    /// Where the files are from.
    pub listing: &'a Listing,
    /// What to look for.
    pub pattern: &'a Pattern,
    /// How to read what is not plain UTF-8.
    pub letters: &'static dyn Decoder,
    /// Who knows which files need not be looked into.
    pub tables: Option<&'a ListingCaches>,
    /// Larger files are not held in memory.
    pub max_bytes: u64,
    /// The caller has named the file: it is searched whatever it is, as bytes if it is no text, and window by window if it is
    /// larger, unless matches may go over lines. Otherwise such files are left out.
    pub named: bool,
    /// What is wanted of each file.
    pub keep: MatchOptions,
    /// When to stop.
    pub stop: &'a Deadline<'a>,
}

/// Knows encodings.
pub trait Decoder: Sync {
    /// The letters of bytes that are not plain UTF-8 with lines that end in `\n`.
    fn read<'b>(&self, bytes: &'b [u8]) -> Decoded<'b>;

    /// Reads a text that begins like this piece by piece; nothing, if it is no text.
    fn pieces(&self, beginning: &[u8]) -> Option<Box<dyn ChunkDecoder>>;
}

/// A text that comes in pieces.
pub trait ChunkDecoder {
    /// The name of its encoding, if that is not UTF-8.
    fn encoding(&self) -> Option<&'static str>;

    /// The letters of the next piece in UTF-8 as far as it goes, lines ended by `\n`.
    fn feed<'b>(&mut self, bytes: &'b [u8], is_last: bool) -> Cow<'b, [u8]>;
}

/// What bytes turned out to be.
#[derive(Debug)]
pub enum Decoded<'b> {
    /// A text: its letters in UTF-8 as far as it goes, lines ended by `\n`, and the name of the encoding
    /// if it is another.
    Text(Cow<'b, [u8]>, Option<&'static str>),
    /// Something else.
    Binary,
}

/// What came of one file.
#[derive(Debug)]
pub enum Outcome {
    /// There are hits.
    Found(LineMatches, Stamp),
    /// There are none.
    Nothing,
    /// It is no text.
    Binary,
    /// It is too large.
    Large(Stamp),
    /// It cannot be read.
    Unreadable,
    /// It is not there any more.
    Gone,
    /// Time was over before it was looked at.
    Stopped,
}

/// What was looked at.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Searched {
    /// Files that were searched.
    pub searched: u64,
    /// Files that were not.
    pub skipped: Skipped,
    /// Lines of which nothing is known, because the pattern backtracks too much there.
    pub undecided: u64,
    /// The first files that have such lines, each with the numbers of the first of them.
    pub undecided_lines: Vec<(std::path::PathBuf, Vec<u64>)>,
    /// Files that have such lines.
    pub undecided_files: u64,
    /// Whether all files were looked at.
    pub complete: bool,
}

/// Files that were not searched, by why.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// No text.
    pub binary: u64,
    /// Too large.
    pub large: u64,
    /// The first of those that are too large.
    pub large_names: Vec<std::path::PathBuf>,
    /// The system does not let us.
    pub unreadable: u64,
    /// The first of those.
    pub unreadable_names: Vec<std::path::PathBuf>,
}

/// So many of the files that were skipped are named.
const NAMED: usize = 3;

/// Among so many files there is often a page of hits, and then the others need not be sifted.
const SIFTED_FIRST: usize = 4_096;

/// Looks into the files, on all cores, and gives what is found to `take` in the order of the files, until
/// it answers that it has enough.
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
            |reader, sifted| match grep.stop.now() {
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

/// Counts what came of a file, and hands on what was found; answers whether to go on.
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

/// Looks into one file once more, for other lines than before.
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

/// What one thread needs: a directory that is open, since the next file is most likely in it too, and room
/// for a file.
struct Reader<'a> {
    grep: &'a Grep<'a>,
    narrowing: Option<&'a Narrowing>,
    directory: Option<(u32, Directory)>,
    buffer: Vec<u8>,
}

/// More room than this is given back after a large file.
const KEPT_ROOM: usize = 1 << 20;

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// What stands for the encoding of a file that is searched as bytes.
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

    /// What the index knows of a file, if it is just what the index has read. Where it knows only in which
    /// parts a match would be, those are looked into.
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

    /// Reads a file whole, or says why not: then there is nothing to search.
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

    /// Looks into a file that is too large to be read whole.
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

    /// Looks for the pattern in bytes; nothing, if they are no text.
    ///
    /// Nearly all files are plain, and to prove it takes as long as to search them. So a file that has a
    /// NUL is looked at closely before, and one in another encoding only where that could matter: when
    /// the pattern has letters beyond ASCII, or when there was a hit.
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
