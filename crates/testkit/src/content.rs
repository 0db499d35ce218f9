//! The bytes of a file in a case: as they stand, with escapes, or in hex.

/// How a block's body stands for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// The lines as they are, each ended by `\n`.
    Plain,
    /// `\n`, `\r`, `\t`, `\0`, `\\`, `\xNN`; the newlines of the page count for nothing.
    Escaped,
    /// Pairs of hex digits, blanks between them as one likes.
    Hex,
}

impl Spelling {
    pub(crate) fn read(self, body: &str) -> Result<Vec<u8>, String> {
        match self {
            Spelling::Plain => Ok(body.as_bytes().to_vec()),
            Spelling::Escaped => unescape(&body.replace('\n', "")),
            Spelling::Hex => unhex(body),
        }
    }

    pub(crate) fn write(self, bytes: &[u8]) -> String {
        match self {
            Spelling::Plain => String::from_utf8_lossy(bytes).into_owned(),
            Spelling::Escaped => escape(bytes),
            Spelling::Hex => {
                let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                pairs.join(" ") + "\n"
            }
        }
    }
}

/// Bytes from text with escapes.
pub fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            bytes.extend(c.to_string().bytes());
            continue;
        }
        match chars.next() {
            Some('n') => bytes.push(b'\n'),
            Some('r') => bytes.push(b'\r'),
            Some('t') => bytes.push(b'\t'),
            Some('0') => bytes.push(0),
            Some('\\') => bytes.push(b'\\'),
            Some('x') => {
                let digits: String = chars.by_ref().take(2).collect();
                let byte = u8::from_str_radix(&digits, 16);
                bytes.push(byte.map_err(|_| format!("\\x{digits} is no byte"))?);
            }
            other => return Err(format!("no escape \\{}", other.unwrap_or(' '))),
        }
    }
    Ok(bytes)
}

/// Text with escapes from bytes, a line of the page for each line.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => text.push_str("\\n\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\0' => text.push_str("\\0"),
                '\\' => text.push_str("\\\\"),
                '\u{feff}' => text.push_str("\\xef\\xbb\\xbf"),
                c if c.is_control() => text.push_str(&format!("\\x{:02x}", u32::from(c))),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn unhex(body: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<char> = body.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| {
        let pair: String = pair.iter().collect();
        u8::from_str_radix(&pair, 16).map_err(|_| format!("{pair} is no byte in hex"))
    };
    digits.chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_each_spelling() {
        let bytes: Vec<u8> = (0..=255).chain(*b"\r\n\tx\\").collect();
        for spelling in [Spelling::Escaped, Spelling::Hex] {
            assert_eq!(spelling.read(&spelling.write(&bytes)).unwrap(), bytes, "{spelling:?}");
        }
    }
}
