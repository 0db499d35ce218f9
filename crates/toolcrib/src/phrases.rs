//! Phrases that several replies share.

use std::fmt::Display;
use std::time::Duration;

use toolcrib_fs::now_ms;

/// `1 line`, `2 lines`, `1 match`, `2 processes`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {}", plural(noun)),
    }
}

/// `1 process runs`, `2 processes run`. The pair has the verb for one and for several.
pub(crate) fn counted_with_verb(number: u64, noun: &str, (one, several): (&str, &str)) -> String {
    format!("{} {}", counted(number, noun), if number == 1 { one } else { several })
}

/// The pronoun for one thing or for several.
pub(crate) fn it_or_them(number: u64) -> &'static str {
    if number == 1 { "it" } else { "them" }
}

/// `line 3`, `lines 3-7`.
pub(crate) fn range_text<N: Display + PartialEq>(noun: &str, first: N, last: N) -> String {
    if first == last {
        format!("{noun} {first}")
    } else {
        format!("{} {first}-{last}", plural(noun))
    }
}

/// The note after a page of results. If their number is not known, `total` is `None`.
pub(crate) fn more_note(range: &str, next: u64, total: Option<u64>) -> String {
    match total {
        Some(total) => format!("[{range} of {total}; for more, offset: {next}]\n"),
        None => format!("[{range}; more follow, offset: {next}]\n"),
    }
}

fn plural(noun: &str) -> String {
    let before_y = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    match before_y {
        Some(stem) => format!("{stem}ies"),
        None if ["s", "x", "z", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => {
            format!("{noun}es")
        }
        None => format!("{noun}s"),
    }
}

/// `0.4 s`, `31 s`, `5 min`, `3 h`.
pub(crate) fn duration_text(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{:.1} s", duration.as_secs_f64()),
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// The first items, and the number of others: `a, b and 3 more`.
pub(crate) fn first_of<T>(all: &[T], most: usize, name: impl Fn(&T) -> String) -> String {
    let names: Vec<String> = all.iter().take(most).map(name).collect();
    match all.len().saturating_sub(most) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// First line of a script, truncated to `chars` characters.
pub(crate) fn one_line(script: &str, chars: usize) -> String {
    let mut lines = script.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let more = if lines.next().is_some() { " …" } else { "" };
    let cut: String = first.chars().take(chars).collect();
    let more = if cut.len() < first.len() { "…" } else { more };
    format!("{cut}{more}")
}

/// The age of a time, in words: `5 min ago`.
pub fn age(time_ms: u64) -> String {
    let seconds = now_ms().saturating_sub(time_ms) / 1_000;
    match seconds {
        0..5 => "just now".to_owned(),
        5..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} ago", counted(seconds / 86_400, "day")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_are_pluralized() {
        for (number, noun, expected) in [
            (1, "process", "1 process"),
            (2, "process", "2 processes"),
            (0, "file", "0 files"),
            (2, "match", "2 matches"),
            (2, "directory", "2 directories"),
            (2, "key", "2 keys"),
        ] {
            assert_eq!(counted(number, noun), expected);
        }
        assert_eq!(range_text("match", 3, 3), "match 3");
        assert_eq!(range_text("match", 3, 7), "matches 3-7");
        assert_eq!(counted_with_verb(1, "process", ("runs", "run")), "1 process runs");
        assert_eq!(counted_with_verb(2, "process", ("runs", "run")), "2 processes run");
    }

    #[test]
    fn durations_have_a_fitting_unit() {
        for (millis, expected) in [
            (0, "0.0 s"),
            (420, "0.4 s"),
            (31_900, "31 s"),
            (300_000, "5 min"),
            (10_800_000, "3 h"),
        ] {
            assert_eq!(duration_text(Duration::from_millis(millis)), expected);
        }
    }
}
