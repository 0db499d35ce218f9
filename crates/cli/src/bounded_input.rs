//! Input that nobody vouches for, in bounded pieces.

use std::io::{self, BufRead, Read};

use toolcrib::{Error, ErrorKind};

/// The longest call that is taken. A file that is written whole fits; what is larger is a mistake or
/// worse, and would be held in memory several times over.
pub(crate) const MAX_CALL_BYTES: usize = 32 << 20;

/// A line of input.
pub(crate) enum Line {
    /// Its bytes, without the newline.
    Whole(Vec<u8>),
    /// More bytes than are taken; they are gone.
    TooLong(u64),
}

impl Line {
    /// How much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Line::Whole(bytes) => bytes.len(),
            Line::TooLong(_) => 0,
        }
    }
}

/// Reads the next line, the last one also without its newline; nothing at the end of the input. Of a
/// line that is too long no more is held than of one that is not.
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
    drop(line);
    Ok(Some(Line::TooLong(read as u64 + skip_line(input)?)))
}

/// Reads all of the input, if that is no more than a call may have.
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
        .hint("Nothing was done. Make the change in smaller parts,for example with Edit.")
}

/// Reads on to the end of the line; answers how many bytes that were.
fn skip_line(input: &mut impl BufRead) -> io::Result<u64> {
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
        input.consume(used);
        skipped += used as u64;
        if ended {
            return Ok(skipped);
        }
    }
}
