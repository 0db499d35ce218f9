//! The errors of a text that an earlier version of it did not have.

use std::collections::HashMap;

use crate::diagnostic::Diagnostic;

/// The errors of `after` that `before` does not explain, in the order of their lines.
///
/// An error is known if the text before had one with the same code and message on an equal line, or, as an edit changes
/// lines, on any line. Each error before explains one error after. Line numbers in messages are not compared, because
/// lines move.
pub fn new_errors<'d>(
    before: (&str, &[Diagnostic]),
    after: (&str, &'d [Diagnostic]),
) -> Vec<&'d Diagnostic> {
    let (lines_before, lines_after) = (lines(before.0), lines(after.0));
    let mut known: HashMap<(Kind<'_>, &str), usize> = HashMap::new();
    let mut unexplained: HashMap<Kind<'_>, usize> = HashMap::new();
    for error in before.1 {
        let kind = Kind::of(error);
        *known.entry((kind.clone(), line_of(&lines_before, error))).or_default() += 1;
        *unexplained.entry(kind).or_default() += 1;
    }
    let mut left = Vec::new();
    for error in after.1 {
        let kind = Kind::of(error);
        match known.get_mut(&(kind.clone(), line_of(&lines_after, error))) {
            Some(count) if *count > 0 => {
                *count -= 1;
                if let Some(count) = unexplained.get_mut(&kind) {
                    *count -= 1;
                }
            }
            _ => left.push((kind, error)),
        }
    }
    let mut new = Vec::new();
    for (kind, error) in left {
        match unexplained.get_mut(&kind) {
            Some(count) if *count > 0 => *count -= 1,
            _ => new.push(error),
        }
    }
    new.sort_by_key(|error| error.line);
    new
}

/// What an error says, without line numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kind<'d> {
    code: Option<&'d str>,
    message: String,
}

impl Kind<'_> {
    fn of(error: &Diagnostic) -> Kind<'_> {
        let mut message = String::with_capacity(error.message.len());
        let mut is_position = false;
        for c in error.message.chars() {
            if c.is_ascii_digit() {
                is_position |= message.ends_with(':')
                    || ["line ", "lines ", "column "].iter().any(|word| message.ends_with(word));
            } else {
                is_position = false;
            }
            if !is_position {
                message.push(c);
            }
        }
        Kind { code: error.code.as_deref(), message }
    }
}

/// The lines as the protocol counts them.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        lines.extend(line.strip_suffix('\r').unwrap_or(line).split('\r'));
    }
    lines
}

fn line_of<'t>(lines: &[&'t str], error: &Diagnostic) -> &'t str {
    lines.get(error.line as usize).map_or("", |line| line.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(list: &[(u32, &str)]) -> Vec<Diagnostic> {
        let one = |(line, message): &(u32, &str)| Diagnostic {
            line: *line,
            code: Some("E".to_owned()),
            message: (*message).to_owned(),
        };
        list.iter().map(one).collect()
    }

    fn new(before: (&str, &[(u32, &str)]), after: (&str, &[(u32, &str)])) -> Vec<(u32, String)> {
        let (was, now) = (errors(before.1), errors(after.1));
        let new = new_errors((before.0, &was), (after.0, &now));
        new.iter().map(|error| (error.line, error.message.clone())).collect()
    }

    #[test]
    fn moved_errors_are_not_new() {
        let was = ("a\nb\n", &[(1, "unknown `b` from line 7")][..]);
        assert_eq!(new(was, ("x\n\na\n  b\n", &[(3, "unknown `b` from line 9")])), []);
        let both = &[(0, "unknown `a` from line 1"), (3, "unknown `b` from line 9")];
        let expected = [(0, "unknown `a` from line 1".to_owned())];
        assert_eq!(new(was, ("x\n\na\n  b\n", both)), expected);
    }

    #[test]
    fn an_error_on_a_changed_line_is_not_new() {
        let was = ("f(b)\n", &[(0, "unknown `b`")][..]);
        assert_eq!(new(was, ("g(b)\n", &[(0, "unknown `b`")])), []);
        let twice = &[(0, "unknown `b`"), (1, "unknown `b`")];
        assert_eq!(new(was, ("f(b)\nh(b)\n", twice)), [(1, "unknown `b`".to_owned())]);
        assert_eq!(new(was, ("h(b)\nf(b)\n", twice)), [(0, "unknown `b`".to_owned())]);
    }

    #[test]
    fn numbers_that_are_not_lines_are_compared() {
        let was = ("x = item1\n", &[(0, "unknown `item1`")][..]);
        let now = ("x = item2\n", &[(0, "unknown `item2`")][..]);
        assert_eq!(new(was, now), [(0, "unknown `item2`".to_owned())]);
        let was = ("f(1)\n", &[(0, "expected 0 arguments, got 1")][..]);
        let now = ("f(1, 2)\n", &[(0, "expected 0 arguments, got 2")][..]);
        assert_eq!(new(was, now).len(), 1);
        let was = ("y\n", &[(0, "see a.h:12:7")][..]);
        assert_eq!(new(was, ("y\n", &[(0, "see a.h:103:7")])), []);
    }

    #[test]
    fn lines_beyond_the_text_are_harmless() {
        assert_eq!(new(("", &[]), ("a", &[(99, "x")])), [(99, "x".to_owned())]);
    }
}
