//! JSON that is safe to print.

use std::fmt::Write as _;

use serde::Serialize;

/// The JSON of a value. Characters other than letters, digits and printable ASCII are written as `\uXXXX`, so that no
/// terminal acts on them and none changes the order of others. A parser reads the same value.
pub fn escaped_json(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    if text.chars().all(is_plain) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if is_plain(c) {
            escaped.push(c);
        } else {
            // Outside strings, JSON has only ASCII.
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        }
    }
    escaped
}

fn is_plain(c: char) -> bool {
    matches!(c, ' '..='~') || (!c.is_ascii() && c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terminals_get_no_control_or_direction_characters() {
        let text = "a\u{1b}[2J\u{7f}\u{9b}1m\u{202e}\u{2066}\u{e0041}é漢\n";
        assert_eq!(
            escaped_json(&text),
            "\"a\\u001b[2J\\u007f\\u009b1m\\u202e\\u2066\\udb40\\udc41é漢\\n\""
        );
    }

    proptest! {
        #[test]
        fn a_parser_reads_the_same_value(text in "\\PC{0,40}|(.|\u{202e}|\u{9b}|\u{e0041}){0,40}") {
            let escaped = escaped_json(&text);
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
            prop_assert!(escaped.chars().all(is_plain));
        }
    }
}
