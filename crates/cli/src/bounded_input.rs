//! Reads untrusted input in bounded pieces.

use std::io::{self, BufRead, Read};

use toolcrib::{Error, ErrorKind};

/// The longest accepted call. A whole file fits into it. A longer call is a mistake or an attack, and would be held
/// in memory several times.
pub(crate) const MAX_CALL_BYTES: usize = 32 << 20;

/// A line of input.
pub(crate) enum Line {
    /// Its bytes, without the newline.
    Whole(Vec<u8>),
    /// The length of a line that was too long. Its bytes were discarded. `mentions_bytes` is whether `"bytes"` occurs in
    /// it, so that a payload may follow.
    TooLong { length: u64, mentions_bytes: bool },
}

impl Line {
    /// The memory that it holds.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Line::Whole(bytes) => bytes.len(),
            Line::TooLong { .. } => 0,
        }
    }
}

/// Reads the next line. The last line needs no newline. `None` at the end of the input. Holds at most
/// [`MAX_CALL_BYTES`] of a line that is too long.
pub(crate) fn read_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let read = input.by_ref().take(MAX_CALL_BYTES as u64 + 1).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(Line::Whole(line)));
    }
    if line.len() <= MAX_CALL_BYTES {
        return Ok(Some(Line::Whole(line)));
    }
    let mut mentions_bytes = mentions_payload(&line);
    line.drain(..line.len().saturating_sub(PAYLOAD_FIELD.len() - 1));
    line.shrink_to_fit();
    let skipped = skip_line(input, line, &mut mentions_bytes)?;
    Ok(Some(Line::TooLong { length: read as u64 + skipped, mentions_bytes }))
}

/// Reads the whole input. Fails if it is longer than a call may be.
pub(crate) fn read_all(input: impl Read) -> io::Result<Result<Vec<u8>, Error>> {
    let mut bytes = Vec::new();
    input.take(MAX_CALL_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(if bytes.len() > MAX_CALL_BYTES { Err(too_long(None)) } else { Ok(bytes) })
}

/// The error for a call that is too long. `bytes` is its length, if known.
pub(crate) fn too_long(bytes: Option<u64>) -> Error {
    let message = match bytes {
        Some(bytes) => format!("the call has {bytes} bytes; the limit is {MAX_CALL_BYTES}"),
        None => format!("the call has more than {MAX_CALL_BYTES} bytes"),
    };
    Error::new(ErrorKind::Limit, message)
        .hint("Nothing was done. Make the change in smaller parts, for example with Edit.")
}

/// The name of the field that announces a payload after the line.
const PAYLOAD_FIELD: &[u8] = b"\"bytes\"";

/// Whether a line may announce a payload.
pub(crate) fn mentions_payload(line: &[u8]) -> bool {
    line.windows(PAYLOAD_FIELD.len()).any(|part| part == PAYLOAD_FIELD)
}

/// Skips the rest of the line, and looks for the name of a field in it. `end` is the end of the part before. Returns the
/// number of skipped bytes.
fn skip_line(
    input: &mut impl BufRead,
    mut end: Vec<u8>,
    mentions_bytes: &mut bool,
) -> io::Result<u64> {
    let mut skipped = 0;
    loop {
        let buffer = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        let (used, ended) = match buffer.iter().position(|&byte| byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        end.extend_from_slice(buffer.get(..used).unwrap_or_default());
        *mentions_bytes |= mentions_payload(&end);
        end.drain(..end.len().saturating_sub(PAYLOAD_FIELD.len() - 1));
        input.consume(used);
        skipped += used as u64;
        if ended {
            return Ok(skipped);
        }
    }
}
