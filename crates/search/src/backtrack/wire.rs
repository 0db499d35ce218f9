//! The protocol between the two processes. A request is a header and a text. A response is a sequence of
//! records of fixed size; the first record of a response may have a text behind it.

use std::io::{self, Read, Write};

use super::relaxed::MAX_RELAXED_BYTES;

/// A request to search a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SearchRequest<'a> {
    pub(super) multiline: bool,
    /// Report progress at every line.
    pub(super) report_every_line: bool,
    /// Maximum number of matches.
    pub(super) max_matches: u64,
    /// Everything before this offset is decided.
    pub(super) from: usize,
    pub(super) text: &'a [u8],
}

const COMPILE: u8 = 0;
const SEARCH: u8 = 1;
const MULTILINE: u8 = 1;
const REPORT_EVERY_LINE: u8 = 2;
const HEADER_BYTES: usize = 14;

impl SearchRequest<'_> {
    /// The header. `None` if the text is too long for the protocol.
    pub(super) fn header(&self) -> Option<[u8; HEADER_BYTES]> {
        let max_matches = u32::try_from(self.max_matches).unwrap_or(u32::MAX);
        let (from, length) = (u32::try_from(self.from).ok()?, u32::try_from(self.text.len()).ok()?);
        let flags = if self.multiline { MULTILINE } else { 0 };
        let flags = flags | if self.report_every_line { REPORT_EVERY_LINE } else { 0 };
        Some(header(SEARCH, flags, max_matches, from, length))
    }
}

/// The header of a request to compile a pattern. The text of that request is the pattern.
pub(super) fn compile_header(pattern: &str) -> Option<[u8; HEADER_BYTES]> {
    Some(header(COMPILE, 0, 0, 0, u32::try_from(pattern.len()).ok()?))
}

fn header(kind: u8, flags: u8, max_matches: u32, from: u32, length: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[0] = kind;
    header[1] = flags;
    header[2..6].copy_from_slice(&max_matches.to_le_bytes());
    header[6..10].copy_from_slice(&from.to_le_bytes());
    header[10..].copy_from_slice(&length.to_le_bytes());
    header
}

/// A request as received.
pub(super) enum Request {
    Compile {
        pattern: Vec<u8>,
    },
    Search {
        multiline: bool,
        report_every_line: bool,
        max_matches: usize,
        from: usize,
        text: Vec<u8>,
    },
}

/// Reads the next request. Returns `None` at the end of the input.
pub(super) fn read_request(input: &mut dyn Read) -> io::Result<Option<Request>> {
    let mut header = [0; HEADER_BYTES];
    match input.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let number = |at: usize| {
        let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        u32::from_le_bytes(bytes) as usize
    };
    let (max_matches, from, length) = (number(2), number(6), number(10));
    let mut text = Vec::new();
    input.take(length as u64).read_to_end(&mut text)?;
    let flags = header[1];
    Ok(match header[0] {
        COMPILE => Some(Request::Compile { pattern: text }),
        _ => Some(Request::Search {
            multiline: flags & MULTILINE != 0,
            report_every_line: flags & REPORT_EVERY_LINE != 0,
            max_matches,
            from: from.min(text.len()),
            text,
        }),
    })
}

/// A record of a response. Positions are byte offsets in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Response {
    /// The pattern is compiled. With the relaxed pattern, which is empty if there is none.
    Ready(String),
    /// The pattern is invalid, with the reason.
    Invalid(String),
    /// Everything before this offset is decided.
    DecidedTo(usize),
    Match {
        start: usize,
        end: usize,
    },
    /// The line at this offset takes too many steps.
    GaveUp(usize),
    /// The response is complete.
    Done,
}

const RECORD_BYTES: usize = 9;

/// A longer reason is cut.
const MAX_REASON_BYTES: usize = 1_000;

impl Response {
    pub(super) fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let number = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let (tag, first, second, text) = match self {
            Response::Ready(relaxed) if relaxed.len() <= MAX_RELAXED_BYTES => {
                (0, relaxed.len(), 0, relaxed.as_str())
            }
            Response::Ready(_) => (0, 0, 0, ""),
            Response::Invalid(reason) => {
                let end = (0..=reason.len().min(MAX_REASON_BYTES))
                    .rfind(|&at| reason.is_char_boundary(at))
                    .unwrap_or(0);
                (1, end, 0, &reason[..end])
            }
            Response::DecidedTo(at) => (2, *at, 0, ""),
            Response::Match { start, end } => (3, *start, *end, ""),
            Response::GaveUp(at) => (4, *at, 0, ""),
            Response::Done => (5, 0, 0, ""),
        };
        let mut record = [tag; RECORD_BYTES];
        record[1..5].copy_from_slice(&number(first).to_le_bytes());
        record[5..].copy_from_slice(&number(second).to_le_bytes());
        output.write_all(&record)?;
        output.write_all(text.as_bytes())
    }
}

/// Parses responses from bytes that arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct ResponseReader {
    bytes: Vec<u8>,
    read: usize,
}

impl ResponseReader {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read);
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }
}

impl Iterator for ResponseReader {
    type Item = Response;

    fn next(&mut self) -> Option<Response> {
        let rest = self.bytes.get(self.read..)?;
        let record: &[u8; RECORD_BYTES] = rest.first_chunk()?;
        let number = |at: usize| {
            u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
        };
        let (first, second) = (number(1) as usize, number(5) as usize);
        let mut length = RECORD_BYTES;
        let response = match record[0] {
            0 => {
                let relaxed = rest.get(RECORD_BYTES..)?.get(..first.min(MAX_RELAXED_BYTES))?;
                length += relaxed.len();
                Response::Ready(String::from_utf8_lossy(relaxed).into_owned())
            }
            1 => {
                let reason = rest.get(RECORD_BYTES..)?.get(..first.min(MAX_REASON_BYTES))?;
                length += reason.len();
                Response::Invalid(String::from_utf8_lossy(reason).into_owned())
            }
            2 => Response::DecidedTo(first),
            3 => Response::Match { start: first, end: second },
            4 => Response::GaveUp(first),
            _ => Response::Done,
        };
        self.read += length;
        Some(response)
    }
}
