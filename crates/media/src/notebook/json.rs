//! JSON parts as slices of the source text.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A key and its value, both as JSON text.
pub(super) type Member<'a> = (&'a str, &'a str);

/// The members of an object, in order, including duplicate keys.
pub(super) fn members(object: &str) -> Result<Vec<Member<'_>>, serde_json::Error> {
    serde_json::from_str::<Members<'_>>(object).map(|members| members.0)
}

/// The items of a list. `None` if it is not a list.
pub(super) fn items(list: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(list).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// The value of a key. If it occurs twice the last one counts, as in Python and JavaScript.
pub(super) fn last<'a>(members: &[Member<'a>], key: &str) -> Option<&'a str> {
    let named = |(raw, _): &&Member<'a>| string(raw).is_some_and(|name| name == key);
    members.iter().rev().find(named).map(|(_, value)| *value)
}

/// The value of a string. `None` if it is not a string. A lone surrogate, which Python writes without an
/// error, becomes U+FFFD.
pub(super) fn string(raw: &str) -> Option<String> {
    if !raw.starts_with('"') {
        return None;
    }
    serde_json::from_str::<Lossy>(raw).ok().map(|text| text.0)
}

/// The value of a text that is a string or a list of lines.
pub(super) fn multiline(raw: &str) -> Option<String> {
    string(raw).or_else(|| Some(items(raw)?.into_iter().filter_map(string).collect()))
}

/// Quotes a string as JSON. With `ascii`, non-ASCII characters are escaped.
pub(super) fn quote(text: &str, ascii: bool) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            c if c < ' ' || (ascii && c >= '\u{7f}') => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    quoted.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a document escapes non-ASCII characters.
pub(super) fn escapes_non_ascii(text: &str) -> bool {
    if !text.is_ascii() {
        return false;
    }
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let escape = &rest[at + 1..];
        let code = escape.strip_prefix('u').and_then(|digits| digits.get(..4));
        if code.and_then(|digits| u32::from_str_radix(digits, 16).ok()).is_some_and(|c| c >= 0x80) {
            return true;
        }
        // The escaped character may be a backslash.
        rest = escape.get(1..).unwrap_or_default();
    }
    false
}

/// The offset of a slice in its text.
pub(super) fn offset(text: &str, part: &str) -> usize {
    part.as_ptr().addr() - text.as_ptr().addr()
}

struct Members<'a>(Vec<Member<'a>>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    members.push((key.get(), value.get()));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Each)
    }
}

struct Lossy(String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Lossy;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
            }
        }

        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_slices_of_the_text() {
        let text = r#" {"a" : [1, {"x": 2}], "\u0062":"c" }"#;
        let members = members(text).unwrap();
        assert_eq!(members, [("\"a\"", "[1, {\"x\": 2}]"), ("\"\\u0062\"", "\"c\"")]);
        assert_eq!(offset(text, members[1].1), text.find("\"c\"").unwrap());
        assert_eq!(last(&members, "b"), Some("\"c\""));
        assert_eq!(items(members[0].1).unwrap(), ["1", "{\"x\": 2}"]);
    }

    #[test]
    fn a_lone_surrogate_is_read_and_a_number_is_not_a_string() {
        assert_eq!(string(r#""a\ud83d b""#).unwrap(), "a\u{fffd}\u{fffd}\u{fffd} b");
        assert_eq!(string("[65]"), None);
        assert_eq!(multiline(r#"["a\n", 1, "b"]"#).unwrap(), "a\nb");
    }

    #[test]
    fn strings_are_written_as_by_python() {
        let text = "\"\\\n\r\t\u{8}\u{c}\u{1}\u{7f}é😀/";
        assert_eq!(quote(text, false), "\"\\\"\\\\\\n\\r\\t\\b\\f\\u0001\u{7f}é😀/\"");
        assert_eq!(
            quote(text, true),
            "\"\\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u007f\\u00e9\\ud83d\\ude00/\""
        );
    }

    #[test]
    fn an_escaped_backslash_is_not_an_escaped_letter() {
        assert!(escapes_non_ascii(r#"{"a": "\u00e9"}"#));
        assert!(!escapes_non_ascii(r#"{"a": "\\u00e9 \u001b"}"#));
        assert!(!escapes_non_ascii("{\"a\": \"\\u00e9 é\"}"));
    }
}
