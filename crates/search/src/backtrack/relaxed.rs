//! A pattern for the linear engine that matches wherever a pattern with look-around matches, and in further places.
//!
//! A look-behind at the beginning and a look-ahead at the end become part of the match. What other look-arounds and
//! assertions require is left out, and a backreference may be any text. A construct that is not certainly covered gives
//! no such pattern, and then every line is searched by the backtracking engine.

use std::fmt::Write;

use fancy_regex::{Expr, LookAround};

/// A longer pattern would save little.
pub(super) const MAX_RELAXED_BYTES: usize = 16 << 10;

/// `None` if there is none.
pub(super) fn relaxed(pattern: &str) -> Option<String> {
    if changes_unicode_mode(pattern) {
        return None;
    }
    let tree = Expr::parse_tree(pattern).ok()?;
    let mut relaxed = String::new();
    add(&tree.expr, Ends { is_first: true, is_last: true }, &mut relaxed)?;
    (relaxed.len() <= MAX_RELAXED_BYTES).then_some(relaxed)
}

/// Whether a group may change the meaning of classes such as `\W`. Their texts do not say so.
fn changes_unicode_mode(pattern: &str) -> bool {
    let is_flag = |c: &char| c.is_ascii_alphabetic() || *c == '-';
    pattern.split("(?").skip(1).any(|group| group.chars().take_while(is_flag).any(|c| c == 'u'))
}

/// Whether nothing is matched before a part of the pattern, and after it.
#[derive(Clone, Copy)]
struct Ends {
    is_first: bool,
    is_last: bool,
}

const WITHIN: Ends = Ends { is_first: false, is_last: false };

fn add(expr: &Expr, ends: Ends, relaxed: &mut String) -> Option<()> {
    match expr {
        Expr::LookAround(inner, LookAround::LookBehind) if ends.is_first => {
            add(inner, Ends { is_first: true, is_last: false }, relaxed)?;
        }
        Expr::LookAround(inner, LookAround::LookAhead) if ends.is_last => {
            add(inner, Ends { is_first: false, is_last: true }, relaxed)?;
        }
        Expr::Empty
        | Expr::Assertion(_)
        | Expr::LookAround(..)
        | Expr::KeepOut
        | Expr::ContinueFromPreviousMatchEnd => {}
        Expr::Any { .. } => relaxed.push_str("(?s:.)"),
        Expr::Backref { .. } => relaxed.push_str("(?s:.)*"),
        Expr::Literal { val, casei } => add_group(&regex_syntax::escape(val), *casei, relaxed)?,
        Expr::Delegate { inner, casei } => add_group(inner, *casei, relaxed)?,
        Expr::Concat(parts) => {
            let start = relaxed.len();
            for (at, part) in parts.iter().enumerate() {
                let is_first = ends.is_first && relaxed.len() == start;
                let is_last = ends.is_last && at + 1 == parts.len();
                add(part, Ends { is_first, is_last }, relaxed)?;
            }
        }
        Expr::Alt(parts) => {
            relaxed.push_str("(?:");
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    relaxed.push('|');
                }
                add(part, ends, relaxed)?;
            }
            relaxed.push(')');
        }
        Expr::Group(inner) => add(inner, ends, relaxed)?,
        Expr::AtomicGroup(inner) => add(inner, ends, relaxed)?,
        Expr::Repeat { child, lo, hi, .. } => {
            relaxed.push_str("(?:");
            add(child, WITHIN, relaxed)?;
            match *hi {
                usize::MAX => write!(relaxed, "){{{lo},}}").ok()?,
                hi => write!(relaxed, "){{{lo},{hi}}}").ok()?,
            }
        }
        _ => return None,
    }
    (relaxed.len() <= MAX_RELAXED_BYTES).then_some(())
}

fn add_group(inner: &str, ignore_case: bool, relaxed: &mut String) -> Option<()> {
    let case = if ignore_case { "i" } else { "" };
    write!(relaxed, "(?{case}:{inner})").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pattern_requires_is_kept_without_its_surroundings() {
        let is = |pattern: &str, expected: Option<&str>| {
            assert_eq!(relaxed(pattern).as_deref(), expected, "{pattern}");
        };
        is("(?<=fn)x(?=;)", Some("(?:f)(?:n)(?:x)(?:;)"));
        is("a(?<=b)(?=c)d", Some("(?:a)(?:d)"));
        is("(?<=a)(?<=b)c", Some("(?:a)(?:c)"));
        is("(?:(?<=a)b)+", Some("(?:(?:b)){1,}"));
        is("(?:(?<=a)|b)(?<!d)c", Some("(?:(?:a)|(?:b))(?:c)"));
        is(r"(?!x)\bab?+$", Some("(?:a)(?:(?:b)){0,1}"));
        is(r"(?i)(a|\.)\1", Some(r"(?:(?i:a)|(?:\.))(?s:.)*"));
        is(r"(?>\w{2,})(?!.)", Some(r"(?:(?:\w)){2,}"));
        is("(?<!a)", Some(""));
        is(r"(?<n>a)(?(<n>)b|c)", None);
        is(r"(?-u:\W)(?=a)", None);
        is("(?<=a", None);
    }
}
