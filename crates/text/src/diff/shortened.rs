//! Shortened diffs for replies: the positions and beginnings of changes, without every line.

/// A shortened diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortenedDiff {
    /// The diff. In a long run of changed lines, a line in brackets replaces the middle.
    pub text: String,
    /// Number of hunks that are omitted at the end.
    pub hunks: usize,
    /// Number of changed lines in those hunks.
    pub lines: usize,
    /// Whether removed lines are omitted within the shown hunks.
    pub lacks_removed: bool,
}

/// Of a longer run of added or removed lines, only the first and the last are shown.
const MAX_WHOLE_RUN: usize = 6;
const SHOWN_AT_START: usize = 3;
const SHOWN_AT_END: usize = 1;

/// Shortens a unified diff to about `max_lines` changed lines: long runs are cut in the middle, then as many
/// hunks are kept as fit, at least one.
pub fn shortened_diff(diff: &str, max_lines: usize) -> ShortenedDiff {
    let mut short = ShortenedDiff { text: String::new(), hunks: 0, lines: 0, lacks_removed: false };
    // Lines before a hunk, such as file names, are shown if the hunk is.
    let (mut names, mut shown) = (String::new(), 0);
    for part in parts(diff) {
        if !part.starts_with("@@") {
            names += part;
            continue;
        }
        let hunk = Hunk::of(part);
        let fits = shown == 0 || shown + hunk.shown <= max_lines;
        if short.hunks > 0 || !fits {
            short.hunks += 1;
            short.lines += hunk.changed;
            continue;
        }
        short.text += &names;
        names.clear();
        short.text += &hunk.text;
        short.lacks_removed |= hunk.lacks_removed;
        shown += hunk.shown;
    }
    if short.hunks == 0 {
        short.text += &names;
    }
    short
}

/// The hunks of a diff, and the lines between them. A hunk ends where its header says, not where a line looks
/// like a file header.
fn parts(diff: &str) -> impl Iterator<Item = &str> {
    let mut rest = diff;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = match header_counts(rest) {
            Some(counts) => hunk_length(rest, counts),
            None => first_line(rest).len(),
        };
        let (part, behind) = rest.split_at(length);
        rest = behind;
        Some(part)
    })
}

fn first_line(text: &str) -> &str {
    text.split_inclusive('\n').next().unwrap_or_default()
}

/// The line counts of both sides, if the text begins with a hunk header.
fn header_counts(text: &str) -> Option<(usize, usize)> {
    let mut words = first_line(text).split(' ');
    let count = |word: &str| match word.split_once(',') {
        Some((_, count)) => count.trim_end().parse().ok(),
        None => Some(1),
    };
    let is_hunk = words.next() == Some("@@");
    let old = words.next()?.strip_prefix('-').filter(|_| is_hunk)?;
    let new = words.next()?.strip_prefix('+')?;
    Some((count(old)?, count(new)?))
}

fn hunk_length(text: &str, (mut old, mut new): (usize, usize)) -> usize {
    let mut length = first_line(text).len();
    for line in text[length..].split_inclusive('\n') {
        let is_mark = line.starts_with('\\');
        if old == 0 && new == 0 && !is_mark {
            break;
        }
        if !is_mark {
            old = old.saturating_sub(usize::from(!line.starts_with('+')));
            new = new.saturating_sub(usize::from(!line.starts_with('-')));
        }
        length += line.len();
    }
    length
}

/// A hunk whose long runs are cut in the middle.
struct Hunk {
    text: String,
    changed: usize,
    shown: usize,
    lacks_removed: bool,
}

impl Hunk {
    fn of(part: &str) -> Hunk {
        let mut hunk = Hunk { text: String::new(), changed: 0, shown: 0, lacks_removed: false };
        let lines: Vec<&str> = part.split_inclusive('\n').collect();
        // A marker after a line belongs to that line.
        let same_run =
            |one: &&str, next: &&str| one.get(..1) == next.get(..1) || next.starts_with('\\');
        for run in lines.chunk_by(same_run) {
            let sign = run.first().and_then(|line| line.chars().next());
            let word = match sign {
                Some('+') => "added",
                Some('-') => "removed",
                _ => {
                    hunk.text.extend(run.iter().copied());
                    continue;
                }
            };
            hunk.changed += run.len();
            if run.len() <= MAX_WHOLE_RUN {
                hunk.shown += run.len();
                hunk.text.extend(run.iter().copied());
                continue;
            }
            let omitted = run.len() - SHOWN_AT_START - SHOWN_AT_END;
            hunk.shown += SHOWN_AT_START + SHOWN_AT_END;
            hunk.lacks_removed |= sign == Some('-');
            hunk.text.extend(run[..SHOWN_AT_START].iter().copied());
            hunk.text += &format!("[… {omitted} more {word} lines]\n");
            hunk.text.extend(run[run.len() - SHOWN_AT_END..].iter().copied());
        }
        hunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unified_diff;

    fn lines(word: &str, count: usize) -> String {
        (0..count).map(|at| format!("{word} {at}\n")).collect()
    }

    #[test]
    fn a_long_run_is_cut_in_the_middle() {
        let old = lines("a", 4);
        let new = format!("{old}{}", lines("b", 124));
        let diff = unified_diff("n", Some(old.as_bytes()), Some(new.as_bytes()), 99, None);
        let short = shortened_diff(&diff.text, 40);
        assert_eq!(
            short.text,
            "--- a/n\n+++ b/n\n@@ -2,3 +2,127 @@\n a 1\n a 2\n a 3\n+b 0\n+b 1\n+b 2\n[… 120 more added lines]\n+b 123\n"
        );
        assert_eq!((short.hunks, short.lines, short.lacks_removed), (0, 0, false));
    }

    #[test]
    fn hunks_beyond_the_limit_are_counted() {
        let old: String = (0..30).map(|at| format!("x\n{}", lines(&format!("{at}"), 9))).collect();
        let new = old.replace("x\n", "y\n");
        let diff = unified_diff("n", Some(old.as_bytes()), Some(new.as_bytes()), 99, None);
        let short = shortened_diff(&diff.text, 40);
        assert_eq!((short.hunks, short.lines), (10, 20));
        assert_eq!(short.text.matches("@@ -").count(), 20);
    }

    #[test]
    fn a_removed_line_that_looks_like_a_file_header_belongs_to_the_hunk() {
        let old = "a\n-- b\n@@ -1 +1 @@\nc\n";
        let diff = unified_diff("n", Some(old.as_bytes()), Some(b"a\n"), 99, None);
        assert_eq!(shortened_diff(&diff.text, 40).text, diff.text);
        let unended = unified_diff("n", Some(b"a"), Some(b"b"), 99, None);
        assert_eq!(shortened_diff(&unended.text, 40).text, unended.text);
        assert_eq!(
            shortened_diff("rename from a\nrename to b\n", 40).text,
            "rename from a\nrename to b\n"
        );
    }
}
