//! A parser for git's configuration format that follows `config.c` of git.

use std::fmt;

/// Larger than any configuration in use; a repository with 50,000 branches has about 5 MB.
const MAX_BYTES: usize = 8 << 20;

/// The limit of the total length of all keys. Every variable has a copy of its section's name, so the total
/// could otherwise grow with the square of the file's size.
const MAX_KEY_BYTES: usize = 16 << 20;

/// One variable of a git configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The section in lower case; empty for a variable before the first header.
    pub section: String,
    /// Everything between the section and the name, from `[section "sub"]` or `[section.sub]`.
    pub subsection: Option<Vec<u8>>,
    /// The name in lower case.
    pub name: String,
    /// The value without quotes, escapes and comments; `None` if there is no `=`.
    pub value: Option<Vec<u8>>,
    /// The line of the name, from 1.
    pub line: usize,
}

/// Why a configuration cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The line, from 1.
    pub line: usize,
    /// The reason.
    pub what: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for ConfigError {}

impl Variable {
    /// The key and the line, for display.
    pub(super) fn shown(&self) -> String {
        let Variable { section, name, line, .. } = self;
        let subsection = self.subsection.as_ref();
        let subsection = subsection.map(|text| format!(".{}", text.escape_ascii()));
        let subsection = subsection.unwrap_or_default();
        let dot = if section.is_empty() && subsection.is_empty() { "" } else { "." };
        format!("{section}{subsection}{dot}{} (line {line})", name.escape_debug())
    }
}

/// Parses a configuration.
///
/// # Errors
///
/// Fails if git cannot parse it either, or if it is too large.
pub fn parse(bytes: &[u8]) -> Result<Vec<Variable>, ConfigError> {
    let mut input = Input { rest: bytes, line: 1, ended: false };
    if bytes.len() > MAX_BYTES {
        return Err(input.error("the file is too large"));
    }
    let mut variables = Vec::new();
    let mut key_bytes = 0;
    // The section part of the key, with a trailing dot.
    let mut stem = Vec::new();
    input.skip_byte_order_mark()?;
    loop {
        let line = input.line;
        match input.next() {
            b'\n' if input.ended => return Ok(variables),
            b'#' | b';' => input.skip_line(),
            b'[' => stem = input.header()?,
            byte if is_space(byte) => {}
            byte if byte.is_ascii_alphabetic() => {
                let (name, value) = input.variable(byte)?;
                key_bytes += stem.len() + name.len();
                if key_bytes > MAX_KEY_BYTES {
                    return Err(input.error("the names of its variables are too long"));
                }
                variables.push(variable(&stem, &name, value, line));
            }
            _ => return Err(input.error("a line that is not a header, a variable or a comment")),
        }
    }
}

/// Builds a variable as git interprets it: the key and the value end at the first NUL, and the key is
/// split at its first and last dot.
fn variable(stem: &[u8], name: &[u8], value: Option<Vec<u8>>, line: usize) -> Variable {
    let key = [stem, name].concat();
    let key = until_nul(&key);
    let value = value.map(|value| until_nul(&value).to_vec());
    let first = key.iter().position(|byte| *byte == b'.');
    let last = key.iter().rposition(|byte| *byte == b'.');
    let (section, subsection, name) = match first.zip(last) {
        None => (&b""[..], None, key),
        Some((first, last)) => {
            let subsection = (first < last).then(|| key[first + 1..last].to_vec());
            (&key[..first], subsection, &key[last + 1..])
        }
    };
    // Both are ASCII, except a name that is the beginning of a subsection with a NUL.
    let lower = |text: &[u8]| String::from_utf8_lossy(text).to_ascii_lowercase();
    Variable { section: lower(section), subsection, name: lower(name), value, line }
}

fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Git's whitespace, which excludes the vertical tab and the form feed.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

/// The bytes of a file, with CRLF converted to LF and an LF added at the end.
struct Input<'a> {
    rest: &'a [u8],
    line: usize,
    ended: bool,
}

impl Input<'_> {
    fn next(&mut self) -> u8 {
        let (byte, length) = match self.rest {
            [] => {
                self.ended = true;
                (b'\n', 0)
            }
            [b'\r', b'\n', ..] => (b'\n', 2),
            [byte, ..] => (*byte, 1),
        };
        self.rest = &self.rest[length..];
        self.line += usize::from(byte == b'\n' && !self.ended);
        byte
    }

    fn error(&self, what: &'static str) -> ConfigError {
        ConfigError { line: self.line, what }
    }

    fn skip_byte_order_mark(&mut self) -> Result<(), ConfigError> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        match self.rest.strip_prefix(MARK) {
            Some(rest) => self.rest = rest,
            None if self.rest.first() == MARK.first() => {
                return Err(self.error("part of a byte order mark"));
            }
            None => {}
        }
        Ok(())
    }

    fn skip_line(&mut self) {
        while self.next() != b'\n' {}
        // At the end of the file the caller's next read reports it again.
    }

    /// Parses the rest of `[section]`, `[section.sub]` or `[section "sub"]`. Returns it with a trailing dot.
    fn header(&mut self) -> Result<Vec<u8>, ConfigError> {
        let mut stem = Vec::new();
        loop {
            match self.next() {
                b'\n' if self.ended => return Err(self.error("an unterminated header")),
                b']' => break,
                byte if is_space(byte) => {
                    self.quoted_subsection(byte, &mut stem)?;
                    break;
                }
                byte if is_key(byte) || byte == b'.' => stem.push(byte.to_ascii_lowercase()),
                _ => {
                    return Err(self.error(
                        "a section name with characters other than letters, digits, `-` and `.`",
                    ));
                }
            }
        }
        if stem.is_empty() {
            return Err(self.error("a header without a name"));
        }
        stem.push(b'.');
        Ok(stem)
    }

    fn quoted_subsection(&mut self, space: u8, stem: &mut Vec<u8>) -> Result<(), ConfigError> {
        let unfinished = "a header that continues on the next line";
        let mut byte = space;
        while is_space(byte) {
            if byte == b'\n' {
                return Err(self.error(unfinished));
            }
            byte = self.next();
        }
        if byte != b'"' {
            return Err(self.error("a header with a subsection that is not quoted"));
        }
        stem.push(b'.');
        loop {
            let byte = match self.next() {
                b'"' => break,
                b'\\' => self.next(),
                byte => byte,
            };
            // A backslash does not escape a newline here.
            if byte == b'\n' {
                return Err(self.error(unfinished));
            }
            stem.push(byte);
        }
        match self.next() {
            b']' => Ok(()),
            _ => Err(self.error("a subsection without a closing bracket")),
        }
    }

    /// Parses the rest of `name` or `name = value`.
    fn variable(&mut self, first: u8) -> Result<(Vec<u8>, Option<Vec<u8>>), ConfigError> {
        let mut name = vec![first.to_ascii_lowercase()];
        let mut byte = self.next();
        while is_key(byte) {
            name.push(byte.to_ascii_lowercase());
            byte = self.next();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.next();
        }
        match byte {
            b'\n' => Ok((name, None)),
            b'=' => Ok((name, Some(self.value()?))),
            _ => {
                Err(self
                    .error("a variable name that is not followed by `=` or the end of the line"))
            }
        }
    }

    fn value(&mut self) -> Result<Vec<u8>, ConfigError> {
        let mut value: Vec<u8> = Vec::new();
        // The start of whitespace that is dropped if it turns out to be trailing; 0 for none.
        let mut trimmed = 0;
        let mut quoted = false;
        loop {
            match self.next() {
                b'\n' if quoted => return Err(self.error("an unterminated quote")),
                b'\n' => break,
                byte if is_space(byte) && !quoted => {
                    if trimmed == 0 {
                        trimmed = value.len();
                    }
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                b'#' | b';' if !quoted => {
                    self.skip_line();
                    break;
                }
                b'\\' => match self.next() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return Err(self.error("an unknown escape")),
                },
                b'"' => quoted = !quoted,
                byte => value.push(byte),
            }
            trimmed = 0;
        }
        if trimmed > 0 {
            value.truncate(trimmed);
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &[u8]) -> String {
        let line = |one: Variable| match &one.value {
            Some(value) => format!("{} = {}\n", one.shown(), value.escape_ascii()),
            None => format!("{}\n", one.shown()),
        };
        parse(text).unwrap().into_iter().map(line).collect()
    }

    #[test]
    fn a_variable_may_follow_its_header_on_the_same_line() {
        let text = b"[remote \"origin\"]uploadpack=touch X;git-upload-pack #]";
        assert_eq!(shown(text), "remote.origin.uploadpack (line 1) = touch X\n");
        let text = b"[submodule \"x\"]update=!cmd #]\n[a]b[c]d";
        assert!(parse(text).is_err());
    }

    #[test]
    fn removes_quotes_and_comments_from_values() {
        assert_eq!(shown(b"[a]\nurl = ext\":\":sh -c id"), "a.url (line 2) = ext::sh -c id\n");
        assert_eq!(shown(b"[a]\nb = x \\\n y ; z\nc"), "a.b (line 2) = x  y\na.c (line 4)\n");
        assert_eq!(shown(b"[a]\nb = \" x \" \r\n"), "a.b (line 2) =  x \n");
    }

    #[test]
    fn a_nul_ends_the_key_as_in_git() {
        assert_eq!(shown(b"[core \"fsmonitor\0\"]x = y\0z"), "core.fsmonitor (line 1) = y\n");
    }

    #[test]
    fn rejects_configurations_with_too_long_keys() {
        let text = format!("[{}]\n{}", "a".repeat(1 << 20), "b\n".repeat(1 << 20));
        assert_eq!(
            parse(text.as_bytes()).unwrap_err().what,
            "the names of its variables are too long"
        );
    }
}
