//! File names in the headers of unified diffs: quoted, with dates, with prefixes.

/// Quotation marks in shells and headers.
pub(super) const QUOTES: [char; 2] = ['\'', '"'];

/// A name from a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) bytes: Vec<u8>,
    /// A date follows, as `diff` writes it: the diff compares two files and was not made by git.
    pub(super) has_date: bool,
}

impl Name {
    /// The name after `---` or `+++`.
    pub(super) fn after_sign(text: &str) -> Name {
        if let Some((bytes, rest)) = unquote(text) {
            return Name { bytes, has_date: is_date(rest) };
        }
        match text.split_once('\t') {
            Some((name, rest)) => Name { bytes: name.into(), has_date: is_date(rest) },
            None => Name { bytes: text.trim_end().into(), has_date: false },
        }
    }

    /// The name after `rename from` and similar headers.
    pub(super) fn plain(text: &str) -> Vec<u8> {
        unquote(text).map_or_else(|| text.into(), |(bytes, _)| bytes)
    }

    fn is_null(&self) -> bool {
        self.bytes == b"/dev/null"
    }
}

/// The names of both sides without their prefixes. `None` for `/dev/null`.
pub(super) fn pair(old: &Name, new: &Name) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    match (old.is_null(), new.is_null()) {
        (true, true) => (None, None),
        (true, false) => (None, Some(without_own_prefix(&new.bytes))),
        (false, true) => (Some(without_own_prefix(&old.bytes)), None),
        (false, false) => {
            let (old, new) = without_prefixes(old, new);
            (Some(old), Some(new))
        }
    }
}

fn without_prefixes(old: &Name, new: &Name) -> (Vec<u8>, Vec<u8>) {
    let dated = old.has_date || new.has_date;
    let (Some((old_top, old_rest)), Some((new_top, new_rest))) =
        (split_top(&old.bytes), split_top(&new.bytes))
    else {
        return with_prefixes(old, new, dated);
    };
    let same = old_rest == new_rest;
    let strip = match (old_top, new_top) {
        (b"a", b"b") => true,
        // Other single letters: git's mnemonic prefixes for the index, the work tree and so on.
        ([one], [other]) => one != other && same,
        // Two compared trees: `diff -ru old new`.
        _ => dated && same && old_top != new_top,
    };
    if strip { (old_rest.to_vec(), new_rest.to_vec()) } else { with_prefixes(old, new, dated) }
}

/// Two files compared by `diff` are one file to change: the one with the shorter name, since the other is
/// `x.orig` or `x.new`. Without dates the names are returned unchanged.
fn with_prefixes(old: &Name, new: &Name, dated: bool) -> (Vec<u8>, Vec<u8>) {
    let (old, new) = (old.bytes.clone(), new.bytes.clone());
    if !dated || old == new {
        return (old, new);
    }
    let shorter = if old.len() < new.len() { old } else { new };
    (shorter.clone(), shorter)
}

/// Strips `a/` or `b/` where the other side has no name to compare with.
fn without_own_prefix(name: &[u8]) -> Vec<u8> {
    match split_top(name) {
        Some((b"a" | b"b", rest)) => rest.to_vec(),
        _ => name.to_vec(),
    }
}

fn split_top(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let slash = memchr::memchr(b'/', name)?;
    let rest = &name[slash + 1..];
    (slash > 0 && !rest.is_empty()).then_some((&name[..slash], rest))
}

/// The name in `diff --git a/x b/x`, if both sides have the same. `None` if they differ or spaces make it
/// ambiguous. Other header lines then have the names.
pub(super) fn of_git_line(text: &str) -> Option<Vec<u8>> {
    let name = |bytes: Vec<u8>| Name { bytes, has_date: false };
    let same = |old: Vec<u8>, new: Vec<u8>| {
        let (old, new) = without_prefixes(&name(old), &name(new));
        (old == new).then_some(old)
    };
    if let Some((old, rest)) = unquote(text) {
        let rest = rest.strip_prefix(' ')?;
        return same(old, Name::plain(rest));
    }
    if text.ends_with('"') {
        let (old, _) = text.split_once(" \"")?;
        return same(old.into(), Name::plain(&text[old.len() + 1..]));
    }
    // Both have the same length, so the space between them is in the middle.
    let (old, new) = text.split_at_checked(text.len() / 2)?;
    same(old.into(), new.strip_prefix(' ')?.into())
}

/// Parses a name in double quotes with C escapes. Also returns the rest.
fn unquote(text: &str) -> Option<(Vec<u8>, &str)> {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'"') {
        return None;
    }
    let (mut name, mut at) = (Vec::new(), 1);
    loop {
        match bytes.get(at)? {
            b'"' => return Some((name, text.get(at + 1..)?)),
            b'\\' => {
                let (byte, length) = escaped(&bytes[at + 1..])?;
                name.push(byte);
                at += 1 + length;
            }
            &byte => {
                name.push(byte);
                at += 1;
            }
        }
    }
}

/// The byte of an escape sequence, and its length.
fn escaped(rest: &[u8]) -> Option<(u8, usize)> {
    let byte = match rest.first()? {
        b'a' => 7,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 11,
        b'f' => 12,
        b'r' => b'\r',
        &quoted @ (b'"' | b'\\') => quoted,
        b'0'..=b'3' => {
            let digits = std::str::from_utf8(rest.get(..3)?).ok()?;
            return Some((u8::from_str_radix(digits, 8).ok()?, 3));
        }
        _ => return None,
    };
    Some((byte, 1))
}

/// Whether the text after a name is a date. Git appends a bare tab to names with spaces.
fn is_date(rest: &str) -> bool {
    rest.trim().starts_with(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn pairs(old: &str, new: &str, expected: (Option<&str>, Option<&str>)) {
        let (old, new) = pair(&Name::after_sign(old), &Name::after_sign(new));
        let shown = |name: Option<Vec<u8>>| name.map(|name| String::from_utf8(name).unwrap());
        let (old, new) = (shown(old), shown(new));
        assert_eq!((old.as_deref(), new.as_deref()), expected);
    }

    #[test]
    fn prefixes_are_stripped_and_directories_kept() {
        pairs("a/x", "b/x", (Some("x"), Some("x")));
        pairs("a/x", "b/y", (Some("x"), Some("y")));
        pairs("x", "x", (Some("x"), Some("x")));
        pairs("a/x", "a/x", (Some("a/x"), Some("a/x")));
        pairs("src/x", "lib/x", (Some("src/x"), Some("lib/x")));
        pairs("i/x", "w/x", (Some("x"), Some("x")));
        pairs("/dev/null", "b/x", (None, Some("x")));
        pairs("a/x", "/dev/null", (Some("x"), None));
        pairs("/etc/passwd", "/etc/passwd", (Some("/etc/passwd"), Some("/etc/passwd")));
    }

    #[test]
    fn trees_and_files_compared_by_diff_have_one_name() {
        let date = "\t2024-01-01 10:00:00.000000000 +0100";
        pairs(&format!("old/d/x{date}"), &format!("new/d/x{date}"), (Some("d/x"), Some("d/x")));
        pairs(&format!("x.c.orig{date}"), &format!("x.c{date}"), (Some("x.c"), Some("x.c")));
        pairs(&format!("d/x{date}"), &format!("d/x{date}"), (Some("d/x"), Some("d/x")));
    }

    #[test]
    fn quoted_names_are_bytes() {
        assert_eq!(
            Name::after_sign(r#""a/caf\303\251 \"x\".txt""#).bytes,
            "a/café \"x\".txt".as_bytes()
        );
        assert_eq!(Name::plain(r#""\377\n""#), b"\xff\n");
        assert_eq!(Name::after_sign("a/with blank\t").bytes, b"a/with blank");
        assert_eq!(Name::plain(r#""broken\9""#), br#""broken\9""#);
    }

    #[test]
    fn the_git_line_gives_one_name() {
        let name = |line| of_git_line(line).map(|name| String::from_utf8(name).unwrap());
        assert_eq!(name("a/x y b/x y").as_deref(), Some("x y"));
        assert_eq!(name("x x").as_deref(), Some("x"));
        assert_eq!(name(r#""a/\303\251" "b/\303\251""#).as_deref(), Some("é"));
        assert_eq!(name(r#"a/x "b/x""#).as_deref(), Some("x"));
        assert_eq!(name("a/x b/y"), None);
        assert_eq!(name("a/é b/é").as_deref(), Some("é"));
        assert_eq!(name("é"), None);
    }
}
