//! Suggestions for an unknown name.

use crate::error::Usage;

/// The error for an unknown name, with similar names if there are any, otherwise with all names.
pub(crate) fn unknown<'a>(
    kind: &str,
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Usage {
    let known: Vec<&str> = known.into_iter().collect();
    let near = nearest(word, &known);
    let hint = if near.is_empty() {
        format!("there are: {}", known.join(", "))
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    Usage(format!("no {kind} `{word}`; {hint}"))
}

/// The names that begin with the word or differ in at most a third of its letters, the nearest first.
fn nearest<'a>(word: &str, known: &[&'a str]) -> Vec<&'a str> {
    let farthest = word.chars().count().div_ceil(3);
    let away = |name: &str| {
        if name.starts_with(word) { 0 } else { distance(word, name) }
    };
    let mut near: Vec<(usize, &str)> = known
        .iter()
        .map(|&name| (away(name), name))
        .filter(|&(away, _)| away <= farthest)
        .collect();
    near.sort_by_key(|&(away, _)| away);
    near.into_iter().map(|(_, name)| name).collect()
}

/// The Levenshtein distance of two words.
fn distance(from: &str, to: &str) -> usize {
    // One row of the table at a time: `row` holds the distances from the current prefix of `from`.
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (read, a) in from.chars().enumerate() {
        let mut next = vec![read + 1];
        let mut left = read + 1;
        for (b, pair) in to.chars().zip(row.windows(2)) {
            let &[diagonal, above] = pair else { continue };
            left = (diagonal + usize::from(a != b)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_changed_letters() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "ci"), 2);
        assert_eq!(distance("docs", "docs"), 0);
    }

    #[test]
    fn similar_names_come_first_and_others_are_omitted() {
        let known = ["ci", "docs", "bench", "doctest"];
        assert_eq!(nearest("doc", &known), ["docs", "doctest"]);
        assert_eq!(nearest("bnech", &known), ["bench"]);
        assert_eq!(nearest("release", &known), [] as [&str; 0]);
        assert_eq!(
            unknown("task", "zz", known).0,
            "no task `zz`; there are: ci, docs, bench, doctest"
        );
    }
}
