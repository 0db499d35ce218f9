//! File contents in a case: plain, escaped or in hex.

/// How a block's body encodes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentEncoding {
    /// The lines unchanged, each ending with `\n`.
    Plain,
    /// `\n`, `\r`, `\t`, `\0`, `\\`, `\xNN`. The newlines of the page are ignored.
    Escaped,
    /// Pairs of hex digits. Whitespace is ignored.
    Hex,
}

impl ContentEncoding {
    pub(crate) fn decode(self, body: &str) -> Result<Vec<u8>, String> {
        match self {
            ContentEncoding::Plain => Ok(body.as_bytes().to_vec()),
            ContentEncoding::Escaped => unescape(&body.replace('\n', "")),
            ContentEncoding::Hex => unhex(body),
        }
    }

    pub(crate) fn encode(self, bytes: &[u8]) -> String {
        match self {
            ContentEncoding::Plain => String::from_utf8_lossy(bytes).into_owned(),
            ContentEncoding::Escaped => escape(bytes),
            ContentEncoding::Hex => {
                let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                pairs.join(" ") + "\n"
            }
        }
    }
}

/// Decodes text with escapes. Fails at an unknown escape.
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

/// Encodes bytes as text with escapes, with one line of the page for each line.
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
    fn decoding_reverses_encoding() {
        let bytes: Vec<u8> = (0..=255).chain(*b"\r\n\tx\\").collect();
        for encoding in [ContentEncoding::Escaped, ContentEncoding::Hex] {
            assert_eq!(encoding.decode(&encoding.encode(&bytes)).unwrap(), bytes, "{encoding:?}");
        }
    }
}
