//! The protocol between the two processes. A request is a header and a text. A response is a sequence of
//! records of fixed size.

use std::io::{self, Read, Write};

/// A request to search a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Question<'a> {
    pub(super) multiline: bool,
    /// Report progress at every line.
    pub(super) is_careful: bool,
    /// Maximum number of matches.
    pub(super) most: u64,
    /// Everything before this offset is decided.
    pub(super) from: usize,
    pub(super) text: &'a [u8],
}

const PREPARE: u8 = 0;
const LOOK: u8 = 1;
const MULTILINE: u8 = 1;
const CAREFUL: u8 = 2;
const HEADER_BYTES: usize = 14;

impl Question<'_> {
    /// The header. `None` if the text is too long for the protocol.
    pub(super) fn header(&self) -> Option<[u8; HEADER_BYTES]> {
        let most = u32::try_from(self.most).unwrap_or(u32::MAX);
        let (from, length) = (u32::try_from(self.from).ok()?, u32::try_from(self.text.len()).ok()?);
        let flags = if self.multiline { MULTILINE } else { 0 };
        let flags = flags | if self.is_careful { CAREFUL } else { 0 };
        Some(header(LOOK, flags, most, from, length))
    }
}

/// The header of a request to compile a pattern. The text of that request is the pattern.
pub(super) fn prepare(pattern: &str) -> Option<[u8; HEADER_BYTES]> {
    Some(header(PREPARE, 0, 0, 0, u32::try_from(pattern.len()).ok()?))
}

fn header(kind: u8, flags: u8, most: u32, from: u32, length: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[0] = kind;
    header[1] = flags;
    header[2..6].copy_from_slice(&most.to_le_bytes());
    header[6..10].copy_from_slice(&from.to_le_bytes());
    header[10..].copy_from_slice(&length.to_le_bytes());
    header
}

/// A request as received.
pub(super) enum Asked {
    Prepare { pattern: Vec<u8> },
    Look { multiline: bool, is_careful: bool, most: usize, from: usize, text: Vec<u8> },
}

/// Reads the next request. Returns `None` at the end of the input.
pub(super) fn read(input: &mut dyn Read) -> io::Result<Option<Asked>> {
    let mut header = [0; HEADER_BYTES];
    match input.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let number = |at: usize| {
        let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        u32::from_le_bytes(bytes) as usize
    };
    let (most, from, length) = (number(2), number(6), number(10));
    let mut text = Vec::new();
    input.take(length as u64).read_to_end(&mut text)?;
    let flags = header[1];
    Ok(match header[0] {
        PREPARE => Some(Asked::Prepare { pattern: text }),
        _ => Some(Asked::Look {
            multiline: flags & MULTILINE != 0,
            is_careful: flags & CAREFUL != 0,
            most,
            from: from.min(text.len()),
            text,
        }),
    })
}

/// A record of a response. Positions are byte offsets in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The pattern is compiled.
    Ready,
    /// The pattern is invalid, with the reason.
    Wrong(String),
    /// Everything before this offset is decided.
    At(usize),
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

impl Answer {
    pub(super) fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let number = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let (tag, first, second, reason) = match self {
            Answer::Ready => (0, 0, 0, ""),
            Answer::Wrong(reason) => {
                let end = (0..=reason.len().min(MAX_REASON_BYTES))
                    .rfind(|&at| reason.is_char_boundary(at))
                    .unwrap_or(0);
                (1, end, 0, &reason[..end])
            }
            Answer::At(at) => (2, *at, 0, ""),
            Answer::Match { start, end } => (3, *start, *end, ""),
            Answer::GaveUp(at) => (4, *at, 0, ""),
            Answer::Done => (5, 0, 0, ""),
        };
        let mut record = [tag; RECORD_BYTES];
        record[1..5].copy_from_slice(&number(first).to_le_bytes());
        record[5..].copy_from_slice(&number(second).to_le_bytes());
        output.write_all(&record)?;
        output.write_all(reason.as_bytes())
    }
}

/// Parses responses from bytes that arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct Answers {
    bytes: Vec<u8>,
    read: usize,
}

impl Answers {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read);
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }
}

impl Iterator for Answers {
    type Item = Answer;

    fn next(&mut self) -> Option<Answer> {
        let rest = self.bytes.get(self.read..)?;
        let record: &[u8; RECORD_BYTES] = rest.first_chunk()?;
        let number = |at: usize| {
            u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
        };
        let (first, second) = (number(1) as usize, number(5) as usize);
        let mut length = RECORD_BYTES;
        let answer = match record[0] {
            0 => Answer::Ready,
            1 => {
                let reason = rest.get(RECORD_BYTES..)?.get(..first.min(MAX_REASON_BYTES))?;
                length += reason.len();
                Answer::Wrong(String::from_utf8_lossy(reason).into_owned())
            }
            2 => Answer::At(first),
            3 => Answer::Match { start: first, end: second },
            4 => Answer::GaveUp(first),
            _ => Answer::Done,
        };
        self.read += length;
        Some(answer)
    }
}
