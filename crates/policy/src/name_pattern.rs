//! Patterns of one name: `*` for any letters, `?` for one.

/// Whether a name fits a pattern, as bytes. Only the last `*` is ever tried again, so that the time is
/// the product of the two lengths at most.
pub fn name_fits(pattern: &str, name: &str) -> bool {
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
    fn stars_and_question_marks_stand_for_letters() {
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
            assert_eq!(name_fits(pattern, name), expected, "{pattern} {name}");
        }
        assert!(!name_fits("*a*a*a*a*a*a*a*a*b", &"a".repeat(2_000)), "and in no long time");
    }
}
