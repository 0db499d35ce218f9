//! The framing of messages: a header with the length, an empty line, the body.

use std::fmt;

/// The longest header. Real ones have two lines.
pub const MAX_HEADER_BYTES: usize = 4 << 10;

/// The longest body. A server that needs more reports tens of thousands of problems.
pub const MAX_BODY_BYTES: usize = 16 << 20;

const HEADER_END: &[u8] = b"\r\n\r\n";

/// Why bytes are not messages. The rest of the stream is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The header has no end within [`MAX_HEADER_BYTES`].
    LongHeader,
    /// The header has no length, two different ones, or one that is not a number.
    NoLength,
    /// The body has more than [`MAX_BODY_BYTES`].
    LongBody,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FrameError::LongHeader => "the header of a message is too long",
            FrameError::NoLength => "a message has no valid length",
            FrameError::LongBody => "a message is too long",
        })
    }
}

impl std::error::Error for FrameError {}

/// Splits a stream of bytes into the bodies of messages.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    received: Vec<u8>,
    /// The bytes of `received` that were returned.
    done: usize,
    /// The length of the body that follows, if its header was read.
    body: Option<usize>,
    failed: Option<FrameError>,
}

impl FrameDecoder {
    /// Adds bytes of the stream. Call [`FrameDecoder::next_body`] until it returns `None` before the next bytes: that
    /// bounds the memory.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        self.received.drain(..self.done);
        self.done = 0;
        self.received.extend_from_slice(bytes);
    }

    /// The body of the next message, if it is complete. After an error every call returns that error.
    pub fn next_body(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let next = self.try_next();
        if let Err(error) = next {
            self.failed = Some(error);
            self.received = Vec::new();
            self.done = 0;
        }
        next
    }

    fn try_next(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let left = self.received.get(self.done..).unwrap_or_default();
        let (length, left) = match self.body {
            Some(length) => (length, left),
            None => {
                let searched = left.get(..MAX_HEADER_BYTES).unwrap_or(left);
                let end = searched.windows(HEADER_END.len()).position(|part| part == HEADER_END);
                let Some(end) = end else {
                    let is_long = left.len() >= MAX_HEADER_BYTES;
                    return if is_long { Err(FrameError::LongHeader) } else { Ok(None) };
                };
                let length = body_length(searched.get(..end).unwrap_or_default())?;
                self.body = Some(length);
                self.done += end + HEADER_END.len();
                (length, self.received.get(self.done..).unwrap_or_default())
            }
        };
        let Some(body) = left.get(..length) else { return Ok(None) };
        let body = body.to_vec();
        self.done += length;
        self.body = None;
        Ok(Some(body))
    }
}

/// The length in a header.
fn body_length(header: &[u8]) -> Result<usize, FrameError> {
    let mut length = None;
    for line in header.split(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(line).map_err(|_| FrameError::NoLength)?;
        let Some((name, value)) = line.split_once(':') else { return Err(FrameError::NoLength) };
        if !name.trim().eq_ignore_ascii_case("content-length") {
            continue;
        }
        let value = value.trim();
        let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        let value = if is_number { value.parse().unwrap_or(usize::MAX) } else { usize::MAX };
        if !is_number || length.is_some_and(|known| known != value) {
            return Err(FrameError::NoLength);
        }
        length = Some(value);
    }
    match length {
        None => Err(FrameError::NoLength),
        Some(length) if length > MAX_BODY_BYTES => Err(FrameError::LongBody),
        Some(length) => Ok(length),
    }
}

/// A message with its header.
pub fn frame(body: &[u8]) -> Vec<u8> {
    let mut framed = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    framed.extend_from_slice(body);
    framed
}
