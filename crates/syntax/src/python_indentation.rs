//! Errors in the indentation of Python, which the grammar tolerates: it takes an unexpected indentation for a part of the
//! line before, and a header without a body for a complete statement.

/// An error in the indentation, in a row from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndentationError {
    pub(crate) row: usize,
    /// In the words of Python.
    pub(crate) what: &'static str,
}

const UNEXPECTED: &str = "unexpected indent";
const EXPECTED: &str = "expected an indented block";
const UNMATCHED: &str = "unindent does not match any outer indentation level";
const MIXED: &str = "inconsistent use of tabs and spaces in indentation";

/// The indentation of a line, measured with tabs of 8 columns and with tabs of 1 column. As in Python, both measures must
/// agree on which of two lines is deeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Columns {
    wide: usize,
    narrow: usize,
}

/// The first error in the indentation of a text. `None` also if the text has an error of another kind before it, such as a
/// bracket or a string that is not closed.
pub(crate) fn indentation_error(text: &[u8]) -> Option<IndentationError> {
    let mut scan = Scan { text, at: 0, row: 0 };
    // A byte order mark is not a part of the first line.
    if text.starts_with(b"\xef\xbb\xbf") {
        scan.at = 3;
    }
    let mut levels: Vec<Columns> = Vec::new();
    let mut expects_block = false;
    while let Some(columns) = scan.next_line() {
        let row = scan.row;
        let error = |what| Some(IndentationError { row, what });
        let level = levels.last().copied().unwrap_or_default();
        let (wide, narrow) = (columns.wide.cmp(&level.wide), columns.narrow.cmp(&level.narrow));
        if expects_block {
            if wide.is_le() {
                return error(EXPECTED);
            }
            levels.push(columns);
        } else if wide.is_gt() {
            return error(UNEXPECTED);
        }
        if wide != narrow && wide.is_ge() {
            return error(MIXED);
        }
        while levels.last().is_some_and(|level| columns.wide < level.wide) {
            levels.pop();
        }
        let level = levels.last().copied().unwrap_or_default();
        if columns.wide != level.wide {
            return error(UNMATCHED);
        }
        if columns.narrow != level.narrow {
            return error(MIXED);
        }
        expects_block = scan.rest_of_line()? == b':';
    }
    expects_block.then_some(IndentationError { row: scan.row, what: EXPECTED })
}

/// A position in a text.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    row: usize,
}

impl Scan<'_> {
    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Goes to the first token of the next line that has one. Returns its columns.
    fn next_line(&mut self) -> Option<Columns> {
        let mut columns = Columns::default();
        loop {
            match self.byte()? {
                b' ' => columns = Columns { wide: columns.wide + 1, narrow: columns.narrow + 1 },
                b'\t' => {
                    columns =
                        Columns { wide: (columns.wide / 8 + 1) * 8, narrow: columns.narrow + 1 };
                }
                b'\x0c' => columns = Columns::default(),
                b'\r' => {}
                b'\n' => {
                    columns = Columns::default();
                    self.row += 1;
                }
                b'#' => {
                    self.skip_comment();
                    continue;
                }
                _ => return Some(columns),
            }
            self.at += 1;
        }
    }

    /// Goes past a logical line. Returns its last byte that is not white space or a comment. `None` if it does not end.
    fn rest_of_line(&mut self) -> Option<u8> {
        let (mut depth, mut last) = (0_usize, b' ');
        while let Some(byte) = self.byte() {
            match byte {
                b'\n' => {
                    self.row += 1;
                    self.at += 1;
                    if depth == 0 {
                        return Some(last);
                    }
                    continue;
                }
                b'#' => {
                    self.skip_comment();
                    continue;
                }
                b'"' | b'\'' => {
                    self.skip_string(byte)?;
                    last = byte;
                    continue;
                }
                b'\\' => {
                    let is_joined = self.text.get(self.at + 1) == Some(&b'\n');
                    self.row += usize::from(is_joined);
                    self.at += usize::from(is_joined);
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                last = byte;
            }
            self.at += 1;
        }
        (depth == 0).then_some(last)
    }

    fn skip_comment(&mut self) {
        while self.byte().is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
    }

    /// Goes past a string. `None` if it does not end.
    fn skip_string(&mut self, quote: u8) -> Option<()> {
        let is_long = self.text.get(self.at..self.at + 3) == Some(&[quote; 3]);
        self.at += if is_long { 3 } else { 1 };
        loop {
            match self.byte()? {
                b'\\' => {
                    self.row += usize::from(self.text.get(self.at + 1) == Some(&b'\n'));
                    self.at += 2;
                    continue;
                }
                b'\n' if !is_long => return None,
                b'\n' => self.row += 1,
                byte if byte == quote && !is_long => {
                    self.at += 1;
                    return Some(());
                }
                byte if byte == quote
                    && self.text.get(self.at..self.at + 3) == Some(&[quote; 3]) =>
                {
                    self.at += 3;
                    return Some(());
                }
                _ => {}
            }
            self.at += 1;
        }
    }
}
