//! Strict JSON: bounded depth, no duplicate names.
//!
//! `serde_json` bounds the depth. For a duplicate name it keeps the last value, while a program that inspects a
//! call may have seen the first. So a duplicate name is an error.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use toolcrib_text::truncate_line;

use crate::error::Error;

/// Characters shown of a name in an error.
const MAX_SHOWN_CHARS: usize = 40;

/// Parses one JSON value from untrusted bytes.
///
/// # Errors
///
/// Fails with kind [`Invalid`](crate::ErrorKind::Invalid) if the bytes are not one JSON value, if an object has
/// a duplicate name, or if the nesting is too deep.
pub fn parse_json(bytes: &[u8]) -> Result<Value, Error> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    Strict
        .deserialize(&mut json)
        .and_then(|value| json.end().map(|()| value))
        .map_err(|error| Error::invalid(format!("not valid JSON: {error}")))
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Strict)? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if fields.contains_key(&key) {
                let key = truncate_line(&key, MAX_SHOWN_CHARS);
                return Err(A::Error::custom(format!("the key {key:?} occurs twice")));
            }
            fields.insert(key, map.next_value_seed(Strict)?);
        }
        Ok(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_parsed_unchanged() {
        let text = r#"{"a": [1, -2, 3.5, true, null, "é\u0000"], "b": {}}"#;
        assert_eq!(
            parse_json(text.as_bytes()).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
    }

    #[test]
    fn invalid_json_and_duplicate_names_are_rejected() {
        let deep = "[".repeat(100_000);
        let cases = [
            (r#"{"a": 1, "a": 2}"#, "\"a\" occurs twice"),
            ("{} {}", "trailing characters"),
            ("{\"a\": \"\u{7}", "control character"),
            ("1e999", "out of range"),
            (&deep, "recursion limit"),
            ("", "EOF"),
        ];
        for (text, expected) in cases {
            let error = parse_json(text.as_bytes()).unwrap_err();
            assert!(error.message().contains(expected), "{error}");
        }
        assert!(parse_json(b"\"\xff\"").is_err());
    }
}
