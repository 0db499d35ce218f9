//! Patterns with `*`, which stands for any characters.

/// Whether a text matches a pattern.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text) in [
            ("a", "a"),
            ("*", ""),
            ("*", "anything"),
            ("a*", "a"),
            ("a*c", "abc"),
            ("a*b*c", "aXbYc"),
            ("*b*", "abc"),
            ("a**c", "ac"),
            ("system:serviceaccount:agents:*", "system:serviceaccount:agents:runner"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("a", ""),
            ("a", "ab"),
            ("a", "A"),
            ("a*a", "a"),
            ("ab*bc", "abc"),
            ("a*b*b", "ab"),
            ("system:serviceaccount:agents:*", "system:serviceaccount:agents2:runner"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
