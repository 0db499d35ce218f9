//! Shows bytes as safe text: invisible and control characters become escapes, and nothing is dropped.

use std::fmt::Write as _;

use crate::invisible::{hidden_in, invisible_name};

/// Shows bytes as text. Valid UTF-8 is unchanged, including tabs. Control characters and bytes that are not
/// UTF-8 become `\xNN`, so that no escape sequence reaches a terminal and no byte becomes a replacement
/// character.
pub fn visible(bytes: &[u8]) -> String {
    // Most text needs no escapes, and this is found out much faster than by looking at each character.
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) if !may_have_hidden_controls(bytes) => text.to_owned(),
        _ => with_escapes(bytes),
    }
}

fn with_escapes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        if valid.chars().any(is_hidden_control) {
            for c in valid.chars() {
                push_visible(&mut shown, c);
            }
        } else {
            shown.push_str(valid);
        }
        for byte in chunk.invalid() {
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// Converts the escapes `\xNN` of [`visible`] back to bytes. `None` if there are none.
pub fn from_visible(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut rest, mut found) = (text, false);
    while let Some(at) = rest.find("\\x") {
        let digits = rest.get(at + 2..at + 4).filter(|digits| {
            digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        });
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.extend(rest[..at].bytes());
                bytes.push(byte);
                rest = &rest[at + 4..];
                found = true;
            }
            None => {
                bytes.extend(rest[..at + 2].bytes());
                rest = &rest[at + 2..];
            }
        }
    }
    bytes.extend(rest.bytes());
    found.then_some(bytes)
}

/// Shows a name or a message on one line: line ends, tabs and every invisible character become escapes too.
pub fn visible_name(bytes: &[u8]) -> String {
    let text = visible(bytes);
    if !text.chars().any(|c| matches!(c, '\n' | '\t') || invisible_name(c).is_some()) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            c if invisible_name(c).is_some() => push_escape(&mut shown, c),
            c => shown.push(c),
        }
    }
    shown
}

/// Shows text for a person's decision: lines and tabs are kept, everything else is as in [`visible_name`].
pub fn visible_lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for part in text.split_inclusive(['\n', '\t']) {
        let end = if part.ends_with(['\n', '\t']) { part.len() - 1 } else { part.len() };
        shown += &visible_name(&part.as_bytes()[..end]);
        shown += &part[end..];
    }
    shown
}

/// Shows content to a person: like [`visible_lines`], but emoji sequences and joiners are kept where they are
/// ordinary.
pub fn visible_content(text: &str) -> String {
    let text = visible(text.as_bytes());
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut from = 0;
        for (at, c) in hidden_in(line) {
            shown += &line[from..at];
            push_escape(&mut shown, c);
            from = at + c.len_utf8();
        }
        shown += &line[from..];
    }
    shown
}

/// Shows text with distinguishable whitespace, for errors about text that nearly matches: a tab is `→`, a
/// trailing space `·`, and other invisible characters are shown by their code point.
pub fn show_invisible(line: &[u8]) -> String {
    let text = visible(line);
    let end_of_ink = text.trim_end_matches(' ').len();
    let mut shown = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '\t' => shown.push('→'),
            ' ' if at >= end_of_ink => shown.push('·'),
            c if invisible_name(c).is_some() => {
                let _ = write!(shown, "<U+{:04X}>", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    shown
}

fn push_visible(shown: &mut String, c: char) {
    match c {
        '\r' => shown.push_str("\\r"),
        c if is_hidden_control(c) => {
            let _ = write!(shown, "\\x{:02x}", u32::from(c));
        }
        c => shown.push(c),
    }
}

/// C0 without tab and line feed, DEL, and C1: characters that a terminal may act on.
fn is_hidden_control(c: char) -> bool {
    c.is_control() && c != '\t' && c != '\n'
}

/// Whether UTF-8 has a byte of a hidden control character. C1 begins with `0xc2`, as do some other characters.
fn may_have_hidden_controls(utf8: &[u8]) -> bool {
    let is_of_control =
        |byte| byte < b' ' && byte != b'\t' && byte != b'\n' || byte == 0x7f || byte == 0xc2;
    // Without an early end, so that compilers vectorize the loop.
    utf8.iter().fold(false, |any, &byte| any | is_of_control(byte))
}

fn push_escape(shown: &mut String, c: char) {
    let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn controls_and_invalid_bytes_are_escaped_and_text_is_kept() {
        assert_eq!(visible(b"\x1b[2Jcaf\xe9\tna\xc3\xafve\r"), "\\x1b[2Jcaf\\xe9\tnaïve\\r");
        assert_eq!(visible("\u{9b}1m".as_bytes()), "\\x9b1m");
    }

    #[test]
    fn exactly_the_controls_are_escaped() {
        for c in '\0'..=char::MAX {
            let text = format!("a{c}");
            let is_shown = visible(text.as_bytes()) == text;
            assert_eq!(is_shown, !is_hidden_control(c), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn escaped_bytes_are_converted_back() {
        assert_eq!(
            from_visible("caf\\xe9 \\x1b \\xzz \\xFF é").unwrap(),
            b"caf\xe9 \x1b \\xzz \\xFF \xc3\xa9"
        );
        assert_eq!(from_visible("plain \\n"), None);
        assert_eq!(from_visible("\\x"), None);
        assert_eq!(from_visible("\\xé9"), None);
    }

    #[test]
    fn a_name_is_shown_on_one_line_with_escapes() {
        assert_eq!(visible_name("a\nb\u{202e}c\u{1b}".as_bytes()), "a\\nb\\u{202e}c\\x1b");
    }

    #[test]
    fn tags_and_selectors_are_escaped_in_names_and_prompts() {
        assert_eq!(visible_name("a\u{e0041}❤\u{fe0f}".as_bytes()), "a\\u{e0041}❤\\u{fe0f}");
        assert_eq!(visible_lines("rm\u{a0}-rf\tx\n\u{200b}y"), "rm\\u{a0}-rf\tx\n\\u{200b}y");
    }

    #[test]
    fn content_keeps_emoji_and_escapes_hidden_characters() {
        assert_eq!(visible_content("👩‍💻 ❤️\n"), "👩‍💻 ❤️\n");
        assert_eq!(visible_content("a\u{202e}b\x1b\n\u{e0041}"), "a\\u{202e}b\\x1b\n\\u{e0041}");
    }

    #[test]
    fn exactly_the_invisible_characters_are_escaped() {
        for c in ('\0'..=char::MAX).filter(|&c| !matches!(c, '\n' | '\t')) {
            let text = c.to_string();
            let hides = c.is_control() || invisible_name(c).is_some();
            for shown in [visible_name(text.as_bytes()), visible_lines(&text)] {
                assert_eq!(shown != text, hides, "U+{:04X}", u32::from(c));
                assert!(!hides || shown.is_ascii(), "U+{:04X}", u32::from(c));
            }
        }
    }

    proptest! {
        #[test]
        fn shown_content_has_no_hidden_characters(text in "(\\PC|[\u{200b}-\u{200f}\u{202a}-\u{202e}\u{2066}\u{fe0f}\u{e0041}\n]|👩|م){0,40}") {
            let shown = visible_content(&text);
            prop_assert!(shown.lines().all(|line| hidden_in(line).next().is_none()), "{shown:?}");
            prop_assert_eq!(shown.lines().count(), text.lines().count());
        }
    }

    #[test]
    fn whitespace_is_distinguishable() {
        assert_eq!(show_invisible("\tx\u{a0}y  ".as_bytes()), "→x<U+00A0>y··");
    }
}
