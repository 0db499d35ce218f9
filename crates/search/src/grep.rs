//! Looking for a pattern in many files.

use std::borrow::Cow;
use std::ffi::OsStr;

use toolcrib_fs::{Directory, Stamp, Taken, Tree};

use crate::hits::{Hits, Keep, find};
use crate::listing::{FileId, Listing};
use crate::ordered::in_order;
use crate::pattern::Pattern;
use crate::stop::Stop;

/// What to look for, and where.
pub struct Grep<'a> {
    /// The root and what is beneath.
    pub tree: &'a Tree,
    /// Where the files are from.
    pub listing: &'a Listing,
    /// What to look for.
    pub pattern: &'a Pattern,
    /// How to read what is not plain UTF-8.
    pub letters: &'a dyn Letters,
    /// Larger files are not looked into.
    pub max_bytes: u64,
    /// What is wanted of each file.
    pub keep: Keep,
    /// When to stop.
    pub stop: &'a Stop<'a>,
}

/// Knows encodings.
pub trait Letters: Sync {
    /// The letters of bytes that are not plain UTF-8 with lines that end in `\n`.
    fn read<'b>(&self, bytes: &'b [u8]) -> Reading<'b>;
}

/// What bytes turned out to be.
#[derive(Debug)]
pub enum Reading<'b> {
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
    Found(Hits, Stamp),
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
pub struct Looked {
    /// Files that were searched.
    pub searched: u64,
    /// Files that were not.
    pub skipped: Skipped,
    /// Lines that the bounded engine gave up on.
    pub gave_up: u64,
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

/// Looks into the files, on all cores, and gives what is found to `take` in the order of the files, until
/// it answers that it has enough.
pub fn grep(
    grep: &Grep<'_>,
    files: &[FileId],
    mut take: impl FnMut(FileId, Hits, Stamp) -> bool + Send,
) -> Looked {
    let mut looked = Looked { complete: true, ..Looked::default() };
    in_order(
        files,
        || Reader::new(grep),
        |reader, file| match grep.stop.now() {
            true => Outcome::Stopped,
            false => reader.look(*file, grep.keep),
        },
        |file, outcome| {
            let skipped = &mut looked.skipped;
            match outcome {
                Outcome::Found(hits, stamp) => {
                    looked.searched += 1;
                    looked.gave_up += hits.gave_up;
                    if hits.count > 0 {
                        return take(*file, hits, stamp);
                    }
                }
                Outcome::Nothing => looked.searched += 1,
                Outcome::Binary => skipped.binary += 1,
                Outcome::Large(_) => {
                    skipped.large += 1;
                    note(&mut skipped.large_names, grep.listing, *file);
                }
                Outcome::Unreadable => {
                    skipped.unreadable += 1;
                    note(&mut skipped.unreadable_names, grep.listing, *file);
                }
                Outcome::Gone => {}
                Outcome::Stopped => {
                    looked.complete = false;
                    return false;
                }
            }
            true
        },
    );
    looked
}

/// Looks into one file once more, for other lines than before.
pub fn look_again(grep: &Grep<'_>, file: FileId, keep: Keep) -> Option<Hits> {
    match Reader::new(grep).look(file, keep) {
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
    directory: Option<(u32, Directory)>,
    buffer: Vec<u8>,
}

/// More room than this is given back after a large file.
const KEPT_ROOM: usize = 1 << 20;

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

impl<'a> Reader<'a> {
    fn new(grep: &'a Grep<'a>) -> Self {
        Reader { grep, directory: None, buffer: Vec::new() }
    }

    fn look(&mut self, file: FileId, keep: Keep) -> Outcome {
        if self.buffer.capacity() > KEPT_ROOM {
            self.buffer = Vec::new();
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let outcome = self.take(file, &mut buffer).map_or_else(
            |outcome| outcome,
            |stamp| match self.search(&buffer, keep) {
                Some(hits) if hits.count > 0 || hits.gave_up > 0 => Outcome::Found(hits, stamp),
                Some(_) => Outcome::Nothing,
                None => Outcome::Binary,
            },
        );
        self.buffer = buffer;
        outcome
    }

    fn take(&mut self, file: FileId, buffer: &mut Vec<u8>) -> Result<Stamp, Outcome> {
        let name: &OsStr = self.grep.listing.name(file);
        let max_bytes = self.grep.max_bytes;
        let Some(directory) = self.open(file) else { return Err(Outcome::Unreadable) };
        match directory.take(name, max_bytes, buffer) {
            Ok(Taken::Whole(stamp)) => Ok(stamp),
            Ok(Taken::TooLarge(stamp)) => Err(Outcome::Large(stamp)),
            Ok(Taken::NotRegular) | Err(toolcrib_fs::FsErrorKind::NotFound) => Err(Outcome::Gone),
            Err(_) => Err(Outcome::Unreadable),
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
    fn search(&self, bytes: &[u8], keep: Keep) -> Option<Hits> {
        let Grep { pattern, stop, .. } = self.grep;
        let odd = |bytes: &[u8]| std::str::from_utf8(bytes).is_err();
        let no_lines =
            || memchr::memchr(b'\n', bytes).is_none() && memchr::memchr(b'\r', bytes).is_some();
        let strange = memchr::memchr(0, bytes).is_some()
            || bytes.starts_with(b"\xff\xfe")
            || bytes.starts_with(b"\xfe\xff")
            || no_lines()
            || (!pattern.ascii && odd(bytes));
        if !strange {
            let text = bytes.strip_prefix(UTF8_BOM).unwrap_or(bytes);
            let hits = find(pattern, text, keep, stop);
            if hits.count == 0 || !pattern.ascii || !odd(bytes) {
                return Some(hits);
            }
        }
        match self.grep.letters.read(bytes) {
            Reading::Binary => None,
            Reading::Text(text, encoding) => {
                let text = text.strip_prefix(UTF8_BOM).unwrap_or(&text);
                Some(Hits { encoding, ..find(pattern, text, keep, stop) })
            }
        }
    }
}
