//! Searches a file that is too large for memory, in windows of whole lines.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::ops::Range;

use toolcrib_fs::{Directory, Stamp};

use super::{BINARY, Grep, Outcome};
use crate::decoder::ChunkDecoder;
use crate::line_matches::{MatchCollector, MatchOptions};

/// Number of bytes read at a time.
const READ_BYTES: u64 = 4 << 20;

/// Number of bytes at the beginning from which the encoding is detected.
const SAMPLE_BYTES: usize = 1 << 20;

/// A longer line is not held in memory. It is reported as undecided.
pub(crate) const MAX_LINE_BYTES: usize = 32 << 20;

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// Searches the file with this stat fingerprint, in constant memory.
pub(crate) fn search(
    grep: &Grep<'_>,
    directory: &Directory,
    name: &OsStr,
    stamp: Stamp,
    keep: MatchOptions,
    buffer: &mut Vec<u8>,
) -> Outcome {
    let parts: Vec<Range<u64>> = (0..stamp.size.div_ceil(READ_BYTES))
        .map(|at| at * READ_BYTES..((at + 1) * READ_BYTES).min(stamp.size))
        .collect();
    let mut search = LargeFileSearch::new(grep, keep);
    let taken = directory.take_parts(name, &stamp, &parts, buffer, |at, part| {
        if at == 0 && !search.detect_encoding(part) {
            return false;
        }
        search.read_to = at + part.len() as u64;
        search.feed(part, search.read_to == stamp.size)
    });
    if search.is_binary {
        return Outcome::Binary;
    }
    // A file that is being written to is searched as it was read. A file that was not read to its end is not
    // reported.
    let to_the_end = search.read_to == stamp.size || search.is_finished();
    if taken.is_err() || !(to_the_end || search.stopped) {
        return Outcome::Unreadable;
    }
    let encoding = search.encoding;
    let mut hits = search.matches.finish();
    hits.stopped |= search.stopped;
    hits.encoding = encoding;
    if hits.is_empty() { Outcome::Nothing } else { Outcome::Found(hits, stamp) }
}

/// Passes the bytes of a binary file through.
struct AsBytes;

impl ChunkDecoder for AsBytes {
    fn encoding(&self) -> Option<&'static str> {
        Some(BINARY)
    }

    fn feed<'b>(&mut self, bytes: &'b [u8], _is_last: bool) -> Cow<'b, [u8]> {
        bytes.into()
    }
}

struct LargeFileSearch<'a> {
    grep: &'a Grep<'a>,
    matches: MatchCollector,
    decoder: Option<Box<dyn ChunkDecoder>>,
    encoding: Option<&'static str>,
    /// Lines that may be shown before the next match, then lines that are not searched yet.
    window: Vec<u8>,
    searched: usize,
    /// The current line is too long, and the rest of it is skipped.
    in_long_line: bool,
    read_to: u64,
    is_binary: bool,
    stopped: bool,
}

impl<'a> LargeFileSearch<'a> {
    fn new(grep: &'a Grep<'a>, keep: MatchOptions) -> LargeFileSearch<'a> {
        LargeFileSearch {
            grep,
            matches: MatchCollector::new(keep),
            decoder: None,
            encoding: None,
            window: Vec::new(),
            searched: 0,
            in_long_line: false,
            read_to: 0,
            is_binary: false,
            stopped: false,
        }
    }

    /// Detects the encoding. Returns whether the file is searched.
    fn detect_encoding(&mut self, part: &[u8]) -> bool {
        let sample = &part[..part.len().min(SAMPLE_BYTES)];
        self.decoder = self.grep.letters.pieces(sample);
        if self.decoder.is_none() && self.grep.named {
            self.decoder = Some(Box::new(AsBytes));
        }
        self.is_binary = self.decoder.is_none();
        self.encoding = self.decoder.as_ref().and_then(|decoder| decoder.encoding());
        !self.is_binary
    }

    /// Searches the next part. Returns whether another part is needed.
    fn feed(&mut self, part: &[u8], is_last: bool) -> bool {
        if self.grep.stop.is_over() {
            self.stopped = true;
            return false;
        }
        let Some(decoder) = &mut self.decoder else { return false };
        let is_first = self.window.is_empty() && self.searched == 0 && !self.in_long_line;
        let letters = decoder.feed(part, is_last);
        let mut letters = &letters[..];
        if is_first && self.matches.is_at_beginning() {
            letters = letters.strip_prefix(UTF8_BOM).unwrap_or(letters);
        }
        if self.in_long_line {
            let Some(end) = memchr::memchr(b'\n', letters) else { return true };
            letters = &letters[end + 1..];
            self.in_long_line = false;
        }
        self.window.extend_from_slice(letters);
        let new = &self.window[self.searched..];
        let whole = if is_last {
            self.window.len()
        } else {
            memchr::memrchr(b'\n', new).map_or(self.searched, |end| self.searched + end + 1)
        };
        if whole > self.searched {
            let LargeFileSearch { grep, matches, window, searched, .. } = self;
            matches.find(grep.pattern, &window[..whole], *searched, grep.stop);
            self.searched = whole;
        }
        if !is_last && self.window.len() - self.searched > MAX_LINE_BYTES {
            self.matches.mark_undecided(&self.window, self.searched);
            self.window.truncate(self.searched);
            self.window.push(b'\n');
            self.searched += 1;
            self.in_long_line = true;
        }
        self.drop_searched();
        self.stopped = self.matches.is_stopped();
        !self.is_finished() && !self.stopped
    }

    /// Whether all wanted matches and context lines were found.
    fn is_finished(&self) -> bool {
        self.matches.is_finished()
    }

    /// Drops the searched lines, except those that may be shown before a match.
    fn drop_searched(&mut self) {
        let kept = self.matches.start_of_context(&self.window[..self.searched]);
        self.matches.discard(&self.window, kept);
        self.window.drain(..kept);
        self.searched -= kept;
    }
}
