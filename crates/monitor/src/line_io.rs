//! Lines on a socket, bounded in length.

use std::io::{self, BufRead, Read, Write};

use serde::Serialize;

/// Limit of a line. The state of a server is shorter.
pub(crate) const MAX_LINE_BYTES: u64 = 8 << 20;

/// Reads a line without its newline. `None` at the end of the input. Fails for a line that is too long.
pub(crate) fn read_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = input.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() as u64 > MAX_LINE_BYTES {
        return Err(io::Error::other("the line is too long"));
    }
    Ok(Some(line))
}

/// Writes a value as a line.
pub(crate) fn write_line(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    output.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded() {
        let mut input = io::Cursor::new(b"one\n\nlast".to_vec());
        let mut next = || read_line(&mut input).unwrap();
        assert_eq!(next().unwrap(), b"one");
        assert_eq!(next().unwrap(), b"");
        assert_eq!(next().unwrap(), b"last");
        assert_eq!(next(), None);
        let mut endless = io::BufReader::new(io::repeat(b'x'));
        assert!(read_line(&mut endless).is_err());
    }
}
