//! sed, if its script only picks and replaces text: `w`, `e`, `r` and `-i` do more.

use crate::command::Word;

/// The files that sed reads.
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

/// Whether every command of a script is one of `p d q Q = s y n N h H g G x l D P`, and no `s` has the flags
/// `w` or `e`.
fn is_plain(script: &str) -> bool {
    let mut rest = Letters(script.as_bytes());
    loop {
        rest.skip(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'{' | b'}'));
        if rest.0.is_empty() {
            return true;
        }
        if !rest.addresses() {
            return false;
        }
        let fits = match rest.next() {
            Some(
                b'p' | b'd' | b'=' | b'n' | b'N' | b'h' | b'H' | b'g' | b'G' | b'x' | b'D' | b'P',
            ) => true,
            Some(b'q' | b'Q' | b'l') => {
                rest.skip(|byte| byte == b' ' || byte.is_ascii_digit());
                true
            }
            Some(b's') => {
                rest.delimited(2) && {
                    rest.skip(|byte| {
                        matches!(byte, b'g' | b'p' | b'i' | b'I' | b'M' | b'm' | b'0'..=b'9')
                    });
                    true
                }
            }
            Some(b'y') => rest.delimited(2),
            Some(b'{') => continue,
            _ => false,
        };
        rest.skip(|byte| matches!(byte, b' ' | b'\t'));
        if !fits || !matches!(rest.0.first(), None | Some(b';' | b'\n' | b'}')) {
            return false;
        }
    }
}

struct Letters<'a>(&'a [u8]);

impl Letters<'_> {
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

    /// None, one or two addresses, and `!`.
    fn addresses(&mut self) -> bool {
        loop {
            match self.0.first() {
                Some(b'0'..=b'9' | b'$' | b'+' | b'~') => {
                    self.skip(|byte| byte.is_ascii_digit() || matches!(byte, b'$' | b'+' | b'~'));
                }
                Some(b'/') => {
                    if !self.delimited(1) {
                        return false;
                    }
                    self.skip(|byte| matches!(byte, b'I' | b'M'));
                }
                Some(b',' | b'!' | b' ') => {
                    self.next();
                }
                _ => return true,
            }
        }
    }

    /// `/…/`, or `/…/…/` for two parts.
    fn delimited(&mut self, parts: usize) -> bool {
        let Some(delimiter) = self.next().filter(|byte| !matches!(byte, b'\n' | b'\\')) else {
            return false;
        };
        for _ in 0..parts {
            loop {
                match self.next() {
                    Some(byte) if byte == delimiter => break,
                    Some(b'\\') => {
                        self.next();
                    }
                    Some(b'\n') => return false,
                    Some(_) => {}
                    None => return false,
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn scripts_that_only_pick_and_replace_are_plain() {
        for script in [
            "1,10p", "$p", "/a/,/b/p", "/x/d", "s/a/b/", "s/a/b/gp", "s|a|b|g", "10q", "5!d",
            "1~2p", "p;p", "/a/{p}",
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
        ] {
            assert!(!is_plain(script), "{script}");
        }
    }
}
