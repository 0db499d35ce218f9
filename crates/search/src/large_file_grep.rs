//! Searches a file that is too large for memory, in windows of whole lines.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::ops::Range;

use toolcrib_fs::{Directory, Stamp};

use crate::grep::{BINARY, ChunkDecoder, Grep, Outcome};
use crate::line_matches::{Finding, MatchOptions};

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
    let mut stream = Stream::new(grep, keep);
    let taken = directory.take_parts(name, &stamp, &parts, buffer, |at, part| {
        if at == 0 && !stream.begin(part) {
            return false;
        }
        stream.read_to = at + part.len() as u64;
        stream.feed(part, stream.read_to == stamp.size)
    });
    if stream.is_binary {
        return Outcome::Binary;
    }
    // A file that is being written to is searched as it was read. A file that was not read to its end is not
    // reported.
    let to_the_end = stream.read_to == stamp.size || stream.is_enough();
    if taken.is_err() || !(to_the_end || stream.stopped) {
        return Outcome::Unreadable;
    }
    let encoding = stream.encoding;
    let mut hits = stream.finding.finish();
    hits.stopped |= stream.stopped;
    hits.encoding = encoding;
    match hits.is_nothing() {
        true => Outcome::Nothing,
        false => Outcome::Found(hits, stamp),
    }
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

struct Stream<'a> {
    grep: &'a Grep<'a>,
    finding: Finding,
    pieces: Option<Box<dyn ChunkDecoder>>,
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

impl<'a> Stream<'a> {
    fn new(grep: &'a Grep<'a>, keep: MatchOptions) -> Stream<'a> {
        Stream {
            grep,
            finding: Finding::new(keep),
            pieces: None,
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
    fn begin(&mut self, part: &[u8]) -> bool {
        let sample = &part[..part.len().min(SAMPLE_BYTES)];
        self.pieces = self.grep.letters.pieces(sample);
        if self.pieces.is_none() && self.grep.named {
            self.pieces = Some(Box::new(AsBytes));
        }
        self.is_binary = self.pieces.is_none();
        self.encoding = self.pieces.as_ref().and_then(|pieces| pieces.encoding());
        !self.is_binary
    }

    /// Searches the next part. Returns whether another part is needed.
    fn feed(&mut self, part: &[u8], is_last: bool) -> bool {
        if self.grep.stop.is_over() {
            self.stopped = true;
            return false;
        }
        let Some(pieces) = &mut self.pieces else { return false };
        let is_first = self.window.is_empty() && self.searched == 0 && !self.in_long_line;
        let letters = pieces.feed(part, is_last);
        let mut letters = &letters[..];
        if is_first && self.finding.is_at_beginning() {
            letters = letters.strip_prefix(UTF8_BOM).unwrap_or(letters);
        }
        if self.in_long_line {
            let Some(end) = memchr::memchr(b'\n', letters) else { return true };
            letters = &letters[end + 1..];
            self.in_long_line = false;
        }
        self.window.extend_from_slice(letters);
        let new = &self.window[self.searched..];
        let whole = match is_last {
            true => self.window.len(),
            false => {
                memchr::memrchr(b'\n', new).map_or(self.searched, |end| self.searched + end + 1)
            }
        };
        if whole > self.searched {
            let Stream { grep, finding, window, searched, .. } = self;
            finding.find(grep.pattern, &window[..whole], *searched, grep.stop);
            self.searched = whole;
        }
        if !is_last && self.window.len() - self.searched > MAX_LINE_BYTES {
            self.finding.pass_over(&self.window, self.searched);
            self.window.truncate(self.searched);
            self.window.push(b'\n');
            self.searched += 1;
            self.in_long_line = true;
        }
        self.forget();
        self.stopped = self.finding.is_stopped();
        !self.is_enough() && !self.stopped
    }

    /// Whether all wanted matches and context lines were found.
    fn is_enough(&self) -> bool {
        self.finding.is_enough()
    }

    /// Drops the searched lines, except those that may be shown before a match.
    fn forget(&mut self) {
        let kept = self.finding.start_of_context(&self.window[..self.searched]);
        self.finding.forget(&self.window, kept);
        self.window.drain(..kept);
        self.searched -= kept;
    }
}
