//! Patterns for one path component: `*` matches any characters, `?` matches one.

/// Whether a name matches a pattern, compared as bytes. Backtracks only to the last `*`, so the time is
/// at most proportional to the product of both lengths.
pub fn name_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, n) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match_characters() {
        for (pattern, name, expected) in [
            ("*", "x", true),
            ("*", "", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c", false),
            ("*.key", "a.key.txt", false),
            ("ab*ab", "ab", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(name_matches(pattern, name), expected, "{pattern} {name}");
        }
        assert!(
            !name_matches("*a*a*a*a*a*a*a*a*b", &"a".repeat(2_000)),
            "without exponential backtracking"
        );
    }
}
