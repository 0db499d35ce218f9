//! The errors of a text that an earlier version of it did not have.

use std::collections::HashMap;

use crate::diagnostic::Diagnostic;

/// The errors of `after` that `before` does not explain, in the order of their lines.
///
/// An error is known if the text before had one with the same code and message on an equal line, or, as an edit changes
/// lines, on any line. Each error before explains one error after. Numbers in messages are not compared: they are often
/// lines, which move.
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

/// What an error says, without numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kind<'d> {
    code: Option<&'d str>,
    message: String,
}

impl Kind<'_> {
    fn of(error: &Diagnostic) -> Kind<'_> {
        let mut message = String::with_capacity(error.message.len());
        for c in error.message.chars() {
            match c {
                '0'..='9' if message.ends_with('0') => {}
                '0'..='9' => message.push('0'),
                c => message.push(c),
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
    fn lines_beyond_the_text_are_harmless() {
        assert_eq!(new(("", &[]), ("a", &[(99, "x")])), [(99, "x".to_owned())]);
    }
}
