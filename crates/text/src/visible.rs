//! Bytes as text that is safe to show: nothing invisible acts, nothing is lost without a trace.

use std::fmt::Write as _;

/// Shows bytes as text. Valid UTF-8 stays as it is, tabs included; control characters and bytes that
/// are not UTF-8 become `\xNN`, so that no escape sequence reaches a terminal and no byte becomes a
/// replacement character that hides what it was.
pub fn visible(bytes: &[u8]) -> String {
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

/// Shows a name of a file on one line, in which nothing acts and nothing hides: line ends, and marks
/// that turn the direction of writing or take no room, are shown as escapes too.
pub fn visible_name(bytes: &[u8]) -> String {
    let text = visible(bytes);
    if !text.chars().any(|c| matches!(c, '\n' | '\t') || is_unseen(c)) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            c if is_unseen(c) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Shows text in which also the blanks can be told apart, for errors about text that nearly matches:
/// a tab is `→`, a blank at the end of a line `·`, other odd spaces are named by their code point.
pub fn show_invisible(line: &[u8]) -> String {
    let text = visible(line);
    let end_of_ink = text.trim_end_matches(' ').len();
    let mut shown = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '\t' => shown.push('→'),
            ' ' if at >= end_of_ink => shown.push('·'),
            c if is_odd_blank(c) => {
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

/// C0 without tab and line feed, DEL, and C1: what a terminal may act on.
fn is_hidden_control(c: char) -> bool {
    c.is_control() && c != '\t' && c != '\n'
}

/// Marks that take no room or turn the direction of writing.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Blanks and marks that look like nothing or like an ordinary space.
fn is_odd_blank(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{ad}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{2064}' | '\u{3000}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_broken_bytes_are_shown_and_text_is_kept() {
        assert_eq!(visible(b"\x1b[2Jcaf\xe9\tna\xc3\xafve\r"), "\\x1b[2Jcaf\\xe9\tnaïve\\r");
        assert_eq!(visible("\u{9b}1m".as_bytes()), "\\x9b1m");
    }

    #[test]
    fn a_name_is_one_line_that_says_all() {
        assert_eq!(visible_name("a\nb\u{202e}c\u{1b}".as_bytes()), "a\\nb\\u{202e}c\\x1b");
    }

    #[test]
    fn blanks_can_be_told_apart() {
        assert_eq!(show_invisible("\tx\u{a0}y  ".as_bytes()), "→x<U+00A0>y··");
    }
}
