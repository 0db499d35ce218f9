//! Recognizes `\\n` that was probably meant as a newline: escaped once too often, it is a backslash and an n.

use std::fmt::Display;

/// Whether a text is one line with `\\n` outside quotes, and the file had no such line before. Inside quotes it is an
/// escape of the file's language, as in JSON.
pub(super) fn has_escaped_newlines(text: &str, was: &[u8]) -> bool {
    !text.contains('\n')
        && has_unquoted(text.as_bytes())
        && !was.split(|&byte| byte == b'\n').any(has_unquoted)
}

/// The note about them.
pub(super) fn escaped_newlines_note(what: impl Display) -> String {
    format!("Note: {what} has no newline, but \\n as two characters. It was written literally.")
}

fn has_unquoted(line: &[u8]) -> bool {
    let (mut quote, mut before, mut bytes) = (None, None, line.iter().copied());
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (None, b'\\') => {
                if bytes.next() == Some(b'n') {
                    return true;
                }
            }
            (Some(_), b'\\') => {
                bytes.next();
            }
            (Some(open), byte) if open == byte => quote = None,
            (Some(_), _) => {}
            // An apostrophe follows a letter.
            (None, b'\'') if before.is_some_and(|before: u8| before.is_ascii_alphanumeric()) => {}
            (None, b'"' | b'\'' | b'`') => quote = Some(byte),
            (None, _) => {}
        }
        before = Some(byte);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unquoted_escapes_are_suspicious() {
        for text in ["return s\\nprint(1)", "one\\ntwo\\n", "don't\\nstop", "x = 'a'\\ny = 'b'"] {
            assert!(has_escaped_newlines(text, b"x = 1\n"), "{text}");
        }
        for text in [
            "print(\"a\\n\")",
            r#"{"source": ["print(1)\n", "x \"y\"\n"]}"#,
            "real\nnewline and \\n",
            "no escape",
            "C:\\\\new",
        ] {
            assert!(!has_escaped_newlines(text, b""), "{text}");
        }
        assert!(!has_escaped_newlines("\\newline", b"\\noindent\n"), "the file has such commands");
    }
}
