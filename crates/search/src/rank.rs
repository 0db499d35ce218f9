//! Ranks files by how likely they are the wanted one.

use std::cmp::Ordering;
use std::ops::Range;

/// The ranking criteria of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// Whether it contains a definition of the searched name.
    pub definition: bool,
    /// Number of matches.
    pub count: u64,
    /// The age of its last change, on a logarithmic scale.
    pub age: u32,
    /// Length of its path.
    pub path_length: usize,
}

/// Ages below this are equal.
const NEW_SECONDS: i64 = 60 * 60;

impl Rank {
    /// The age in steps: 0 below one hour, 1 from one hour, 2 from two hours, 3 from four hours, and so on.
    pub fn age(modified_seconds: i64, now_seconds: i64) -> u32 {
        let age = now_seconds.saturating_sub(modified_seconds).max(0) / NEW_SECONDS;
        64 - age.unsigned_abs().leading_zeros()
    }

    /// Definitions before uses, many matches before few, new before old, short paths before long ones.
    pub fn compare(&self, other: &Rank) -> Ordering {
        (other.definition.cmp(&self.definition))
            .then(other.count.cmp(&self.count))
            .then(self.age.cmp(&other.age))
            .then(self.path_length.cmp(&other.path_length))
    }
}

/// Keywords that precede the name that they define, in common languages.
const DEFINITION_KEYWORDS: &[&[u8]] = &[
    b"fn",
    b"def",
    b"class",
    b"struct",
    b"enum",
    b"union",
    b"trait",
    b"interface",
    b"type",
    b"func",
    b"function",
    b"const",
    b"static",
    b"let",
    b"var",
    b"val",
    b"macro_rules!",
    b"#define",
    b"define",
    b"mod",
    b"module",
    b"namespace",
    b"package",
    b"typedef",
    b"record",
    b"object",
    b"protocol",
    b"sub",
    b"proc",
    b"fun",
    b"defmodule",
    b"defp",
    b"impl",
];

/// Whether a match looks like a definition: a keyword is right before it or in it. In C, a type name in use
/// has the same keyword, so `struct x` is a definition only if a body or the end of the line follows.
pub(crate) fn is_definition(text: &[u8], lines: &Range<usize>, place: &Range<usize>) -> bool {
    // Lines of code are not longer, and the check takes time.
    const MAX_LINE: usize = 400;
    if lines.len() > MAX_LINE || place.start < lines.start || place.end > lines.end {
        return false;
    }
    let before = text[lines.start..place.start].trim_ascii();
    let word = before.rsplit(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    let found = &text[place.clone()];
    let first = found.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    let leads = DEFINITION_KEYWORDS.contains(&word)
        || (first.len() < found.len() && DEFINITION_KEYWORDS.contains(&first));
    let aggregate = [&b"struct"[..], b"enum", b"union", b"class"];
    if !leads {
        return false;
    }
    let names_a_type = aggregate.contains(&word) || aggregate.contains(&first);
    let after = text[place.end..lines.end].trim_ascii_end();
    !names_a_type
        || after.is_empty()
        || matches!(after.last(), Some(b'{' | b':' | b'(' | b';' | b'}')) && !after.contains(&b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_distinguished_from_uses() {
        let is = |line: &str, found: &str| {
            let at = line.find(found).unwrap();
            is_definition(line.as_bytes(), &(0..line.len()), &(at..at + found.len()))
        };
        assert!(is("pub fn parse(x: u8) {", "parse"));
        assert!(is("    def parse(self):", "parse") && is("class Parser(Base):", "Parser"));
        assert!(is("#define PM_RESUME 1", "PM_RESUME") && is("struct device {", "struct device"));
        assert!(
            !is("    let x = parse(y);", "parse") && !is("static struct device *dev;", "device")
        );
        assert!(!is("// how to parse", "parse"));
    }

    #[test]
    fn files_are_ordered_by_their_criteria() {
        let rank =
            |definition, count, age, path_length| Rank { definition, count, age, path_length };
        let mut ranks =
            [rank(false, 9, 0, 1), rank(true, 1, 5, 9), rank(false, 9, 0, 0), rank(false, 9, 1, 0)];
        ranks.sort_by(Rank::compare);
        let expected =
            [rank(true, 1, 5, 9), rank(false, 9, 0, 0), rank(false, 9, 0, 1), rank(false, 9, 1, 0)];
        assert_eq!(ranks, expected);
        assert_eq!((Rank::age(100, 100), Rank::age(0, 3_600), Rank::age(0, 7_200)), (0, 1, 2));
    }
}
