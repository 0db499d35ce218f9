//! sed, if its script only selects and replaces text.
//!
//! This is an allow-list: a script outside this grammar may do more (`w`, `e`, `r`, `-i`). Versions of sed
//! disagree on whether a delimiter in brackets ends a regular expression, so such a script is rejected.

use crate::command::Word;

/// Delimiters without another meaning.
const DELIMITERS: &[u8] = b"/|,:#@%!~_=";

/// The files that sed reads. `None` if it may do more than read.
pub(super) fn reads(arguments: &[Word]) -> Option<Vec<Word>> {
    let mut scripts = Vec::new();
    let mut files = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.known() {
            Some("-e" | "--expression") => scripts.push(rest.next()?.known()?),
            Some(
                "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-nE" | "-nr" | "-En" | "--quiet"
                | "--silent" | "--regexp-extended",
            ) => {}
            Some("-ne" | "-nEe") => scripts.push(rest.next()?.known()?),
            Some(text) if text.starts_with('-') && text.len() > 1 => return None,
            None if super::can_be_option(word) => return None,
            _ => files.push(word.clone()),
        }
    }
    if scripts.is_empty() {
        if files.is_empty() {
            return None;
        }
        let script = files.remove(0);
        return is_plain(script.known()?).then_some(files);
    }
    scripts.iter().all(|script| is_plain(script)).then_some(files)
}

/// Whether every command of a script is one of `p d q Q = s y n N h H g G x l D P`, and no `s` has the flag
/// `w` or `e`.
fn is_plain(script: &str) -> bool {
    let mut rest = ScriptBytes(script.as_bytes());
    loop {
        rest.skip(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'}'));
        if rest.0.is_empty() {
            return true;
        }
        if rest.command().is_none() {
            return false;
        }
    }
}

struct ScriptBytes<'a>(&'a [u8]);

impl<'a> ScriptBytes<'a> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn skip(&mut self, fits: impl Fn(u8) -> bool) {
        while self.0.first().is_some_and(|byte| fits(*byte)) {
            self.0 = &self.0[1..];
        }
    }

    fn skip_blanks(&mut self) {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
    }

    /// Parses one command with its addresses. `None` if it is not in the grammar.
    fn command(&mut self) -> Option<()> {
        self.address()?;
        match self.next()? {
            // Commands may follow it directly.
            b'{' => return Some(()),
            b'p' | b'd' | b'=' | b'n' | b'N' | b'h' | b'H' | b'g' | b'G' | b'x' | b'D' | b'P' => {}
            b'q' | b'Q' | b'l' => {
                self.skip_blanks();
                self.skip(|byte| byte.is_ascii_digit());
            }
            b's' => {
                let delimiter = self.next().filter(|byte| DELIMITERS.contains(byte))?;
                let pattern = self.until(delimiter)?;
                let is_clear = brackets_are_clear(pattern, delimiter) && !pattern.contains(&b'\n');
                self.until(delimiter).filter(|_| is_clear)?;
                self.skip(|byte| {
                    matches!(byte, b'g' | b'p' | b'i' | b'I' | b'M' | b'm' | b'0'..=b'9')
                });
            }
            b'y' => {
                let delimiter = self.next().filter(|byte| DELIMITERS.contains(byte))?;
                for _ in 0..2 {
                    // Old versions interpret brackets here too.
                    self.until(delimiter).filter(|letters| !letters.contains(&b'['))?;
                }
            }
            _ => return None,
        }
        self.skip_blanks();
        matches!(self.0.first(), None | Some(b';' | b'\n' | b'}')).then_some(())
    }

    /// Parses zero, one or two addresses, and `!`.
    fn address(&mut self) -> Option<()> {
        self.line_or_pattern()?;
        self.skip_blanks();
        if self.0.first() == Some(&b',') {
            self.next();
            self.skip_blanks();
            self.skip(|byte| matches!(byte, b'+' | b'~'));
            self.line_or_pattern()?;
        }
        self.skip(|byte| matches!(byte, b' ' | b'\t' | b'!'));
        Some(())
    }

    /// Parses `5`, `1~2`, `$`, `/…/I`, or nothing.
    fn line_or_pattern(&mut self) -> Option<()> {
        match self.0.first() {
            Some(b'0'..=b'9') => self.skip(|byte| byte.is_ascii_digit() || byte == b'~'),
            Some(b'$') => {
                self.next();
            }
            Some(b'/') => {
                self.next();
                let pattern = self.until(b'/')?;
                if !brackets_are_clear(pattern, b'/') || pattern.contains(&b'\n') {
                    return None;
                }
                self.skip(|byte| matches!(byte, b'I' | b'M'));
            }
            _ => {}
        }
        Some(())
    }

    /// The bytes before the next unescaped delimiter. A newline must be escaped.
    fn until(&mut self, delimiter: u8) -> Option<&'a [u8]> {
        let all = self.0;
        loop {
            let before = self.0.len();
            match self.next()? {
                byte if byte == delimiter => return Some(&all[..all.len() - before]),
                b'\\' => {
                    self.next()?;
                }
                b'\n' => return None,
                _ => {}
            }
        }
    }
}

/// Whether a pattern ends at the same place whether or not sed interprets brackets: every bracket is
/// closed, and none contains a delimiter or backslash.
fn brackets_are_clear(pattern: &[u8], delimiter: u8) -> bool {
    let mut rest = ScriptBytes(pattern);
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => {
                rest.next();
            }
            b'[' => {
                rest.skip_one(b'^');
                // A leading `]` is a member of the set.
                rest.skip_one(b']');
                loop {
                    match rest.next() {
                        None | Some(b'\\') => return false,
                        Some(byte) if byte == delimiter => return false,
                        Some(b']') => break,
                        Some(b'[') if !rest.class() => return false,
                        Some(_) => {}
                    }
                }
            }
            _ => {}
        }
    }
    true
}

impl ScriptBytes<'_> {
    fn skip_one(&mut self, byte: u8) {
        if self.0.first() == Some(&byte) {
            self.next();
        }
    }

    /// Parses the rest of `[:name:]`.
    fn class(&mut self) -> bool {
        let opens = self.next() == Some(b':');
        self.skip(|byte| byte.is_ascii_lowercase());
        opens && self.next() == Some(b':') && self.next() == Some(b']')
    }
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn recognizes_scripts_that_only_select_and_replace() {
        for script in [
            "1,10p",
            "$p",
            "/a/,/b/p",
            "/x/d",
            "s/a/b/",
            "s/a/b/gp",
            "s|a|b|g",
            "10q",
            "5!d",
            "1~2p",
            "p;p",
            "/a/{p}",
            "1,+3p",
            "0,/x/ d",
            "/a/{s/x/y/;p}",
            "$!N;s/[^[:space:]]*\\n//",
            "s/[[:space:]]*$//",
            "s/\\//_/g",
            "s/a/x\\\ny/",
            "s,/[^/]*$,,",
        ] {
            assert!(is_plain(script), "{script}");
        }
        for script in [
            "w x",
            "1w x",
            "s/a/b/w x",
            "s/a/b/e",
            "e",
            "1e touch x",
            "r x",
            "1r/etc/passwd",
            "s/a/b/gw x",
            "/a/w x",
            "p;w x",
            "1,2{w x\n}",
            "s/a/b",
            "a text",
            "1!e ls",
            "y/a/b/w",
            "b x",
            "s/a/b/;e",
            // A slash in brackets ends the pattern only in some versions.
            "s/[/]/;/e;s|/s.x|y|;#.z.",
            "s/[/]/;p;/w ./p",
            "s/[^/]/;p;/w ./p",
            "s/[]/]/;p;/w ./p",
            "s/[[:alpha:]/]/;p;/w ./p",
            "s/[[.].]/]/;p;/w ./p",
            "s/[\\/]/;p;/w ./p",
            "s/[\\]/]/;p;/w ./p",
            "/[/]/;p;/w ./p",
            "s|[|]|;p;|w .|p",
            "y/[/]/;p;/w ./p",
            "sxaxbxw x",
            "s a b w x",
            "\\,a,w x",
            "#n\nw x",
            "l;w x",
            "q5w x",
            "}w x",
            "{}w x",
            "s/a/b/\\\nw x",
        ] {
            assert!(!is_plain(script), "{script}");
        }
    }
}
