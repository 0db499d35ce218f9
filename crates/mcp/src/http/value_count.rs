//! Counts the values of a message before it is parsed: a parsed value takes far more memory than its text.

/// More than any call has. A file or a patch is one value.
const MAX_VALUES: usize = 100_000;

/// Whether a JSON text has too many values to parse it. The text need not be valid.
pub(super) fn has_many_values(text: &[u8]) -> bool {
    let (mut values, mut rest) = (0, text);
    loop {
        let string = memchr::memchr(b'"', rest).unwrap_or(rest.len());
        // A separator or an opening bracket precedes each value but the first.
        values += rest[..string].iter().filter(|byte| b",:[{".contains(byte)).count();
        if values > MAX_VALUES {
            return true;
        }
        match rest.get(string + 1..) {
            Some(inside) => rest = after_string(inside),
            None => return false,
        }
    }
}

/// The text after the end of a string.
fn after_string(mut inside: &[u8]) -> &[u8] {
    loop {
        match memchr::memchr2(b'"', b'\\', inside) {
            None => return &[],
            Some(at) if inside[at] == b'"' => return &inside[at + 1..],
            Some(escape) => inside = inside.get(escape + 2..).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        let list = |count: usize| format!("[{}0]", "0,".repeat(count));
        assert!(!has_many_values(list(MAX_VALUES - 2).as_bytes()));
        assert!(has_many_values(list(MAX_VALUES).as_bytes()));
        assert!(has_many_values("[".repeat(MAX_VALUES + 1).as_bytes()));
        let text = format!(r#"{{"content": "{}"}}"#, r#",:[{\\\""#.repeat(MAX_VALUES));
        assert!(!has_many_values(text.as_bytes()));
        let after = format!(r#"{{"a": "\\", "b": {}}}"#, list(MAX_VALUES));
        assert!(has_many_values(after.as_bytes()));
        for broken in ["", "\"", "\"\\", "\"\\\"", "a\"b"] {
            assert!(!has_many_values(broken.as_bytes()), "{broken}");
        }
    }
}
