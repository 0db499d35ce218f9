//! Names to leave out of a list.

/// Patterns of names, with `*` for any letters.
#[derive(Debug, Default)]
pub(super) struct Patterns(Vec<String>);

impl Patterns {
    pub(super) fn parse(patterns: &[String]) -> Patterns {
        let name = |pattern: &String| {
            pattern
                .trim_start_matches("**/")
                .trim_end_matches("/**")
                .trim_end_matches('/')
                .to_owned()
        };
        Patterns(patterns.iter().map(name).collect())
    }

    pub(super) fn match_name(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| fits(pattern.as_bytes(), name.as_bytes()))
    }
}

/// Whether a name fits a pattern. Remembers the last `*` only, so that it is done in a time that is the
/// product of the two at most.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
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
        let patterns = Patterns::parse(&["*.o".into(), "dist/".into(), "**/a?c".into()]);
        for name in ["x.o", ".o", "dist", "abc"] {
            assert!(patterns.match_name(name), "{name}");
        }
        for name in ["x.oo", "dists", "ac", "abcd"] {
            assert!(!patterns.match_name(name), "{name}");
        }
        assert!(!fits(b"*a*a*a*a*a*a*a*a*b", "a".repeat(200).as_bytes()));
    }
}
