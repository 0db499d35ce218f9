//! Words that several replies use.

/// `1 line`, `2 lines`, `1 match`, `2 matches`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number if noun.ends_with("ch") => format!("{number} {noun}es"),
        number if noun.ends_with('y') => format!("{number} {}ies", noun.trim_end_matches('y')),
        number => format!("{number} {noun}s"),
    }
}

/// The first of some names, and how many more there are: `a, b and 3 more`.
pub(crate) fn first_of<T>(all: &[T], most: usize, name: impl Fn(&T) -> String) -> String {
    let names: Vec<String> = all.iter().take(most).map(name).collect();
    match all.len().saturating_sub(most) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// A script on one line of at most so many characters.
pub(crate) fn one_line(script: &str, chars: usize) -> String {
    let mut lines = script.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let more = if lines.next().is_some() { " …" } else { "" };
    let cut: String = first.chars().take(chars).collect();
    let more = if cut.len() < first.len() { "…" } else { more };
    format!("{cut}{more}")
}
