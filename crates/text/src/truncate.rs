//! Truncation: whole lines from the front, and a count of the rest.

/// A truncated text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncated {
    /// The kept text, cut at a line end if there is one.
    pub text: String,
    /// Number of omitted characters.
    pub left_out_chars: usize,
    /// Number of omitted lines, including a partial one.
    pub left_out_lines: usize,
}

/// Keeps at most `max_chars` characters of `text`: whole lines, unless the first alone is too long. Never
/// splits a character.
pub fn truncate_lines(text: &str, max_chars: usize) -> Truncated {
    let Some((limit, _)) = text.char_indices().nth(max_chars) else {
        return Truncated { text: text.to_owned(), left_out_chars: 0, left_out_lines: 0 };
    };
    let cut = text[..limit].rfind('\n').map_or(limit, |newline| newline + 1);
    let (kept, rest) = text.split_at(cut);
    Truncated {
        text: kept.to_owned(),
        left_out_chars: rest.chars().count(),
        left_out_lines: rest.lines().count(),
    }
}

/// Keeps at most `max_chars` characters of one line, and appends the number of omitted ones.
pub fn truncate_line(line: &str, max_chars: usize) -> String {
    match line.char_indices().nth(max_chars) {
        None => line.to_owned(),
        Some((cut, _)) => {
            format!("{}{}", &line[..cut], left_out(line[cut..].chars().count() as u64))
        }
    }
}

/// Keeps at most `max_chars` characters of one line, from a little before its first difference from `other`.
pub(crate) fn truncate_around(line: &str, other: &str, max_chars: usize) -> String {
    let same = line.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let length = line.chars().count();
    // The whole end is shown if it fits.
    let skipped = same.saturating_sub(max_chars / 4).min(length.saturating_sub(max_chars));
    if skipped == 0 {
        return truncate_line(line, max_chars);
    }
    let shown: String = line.chars().skip(skipped).collect();
    format!("{}…{}", left_out(skipped as u64), truncate_line(&shown, max_chars))
}

/// Keeps at most `max_chars` characters of one line, most of them from its beginning and the rest from its
/// end, with the number of omitted ones between. `missing` is the position and number of characters that are
/// missing already.
pub fn truncate_middle(line: &str, missing: Option<(usize, u64)>, max_chars: usize) -> String {
    let chars = |text: &str| text.chars().count();
    let end_chars = max_chars / 4;
    let (begin, end, mut missing) = match missing {
        Some((at, count)) => (&line[..at], &line[at..], count),
        None if line.char_indices().nth(max_chars).is_none() => return line.to_owned(),
        None => {
            let after = line.char_indices().nth(max_chars - end_chars).map_or(0, |(at, _)| at);
            (&line[..after], &line[after..], 0)
        }
    };
    let begin_end =
        begin.char_indices().nth(max_chars - end_chars).map_or(begin.len(), |(at, _)| at);
    let end_begin = match chars(end).checked_sub(end_chars) {
        Some(over) => end.char_indices().nth(over).map_or(end.len(), |(at, _)| at),
        None => 0,
    };
    missing += (chars(&begin[begin_end..]) + chars(&end[..end_begin])) as u64;
    format!("{}{}…{}", &begin[..begin_end], left_out(missing), &end[end_begin..])
}

/// The note about omitted characters.
pub(crate) fn left_out(chars: u64) -> String {
    format!("…[+{chars} characters]")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_lines_are_kept() {
        let clipped = truncate_lines("one\ntwo\nthree\n", 9);
        assert_eq!(clipped.text, "one\ntwo\n");
        assert_eq!((clipped.left_out_chars, clipped.left_out_lines), (6, 1));
    }

    #[test]
    fn a_long_line_keeps_its_first_difference() {
        let differ = |line, other| truncate_around(line, other, 4);
        assert_eq!(differ("abcdefgh", "abcdeXgh"), "…[+4 characters]…efgh");
        assert_eq!(differ("abcdefghijkl", "abcdeX"), "…[+4 characters]…efgh…[+4 characters]");
        assert_eq!(differ("abcdefgh", "X"), "abcd…[+4 characters]");
        assert_eq!(differ("abcd", "abcX"), "abcd");
    }

    #[test]
    fn a_long_line_keeps_its_beginning_and_its_end() {
        assert_eq!(truncate_middle("abcdefgh", None, 8), "abcdefgh");
        assert_eq!(truncate_middle("abcdefghijkl", None, 8), "abcdef…[+4 characters]…kl");
        assert_eq!(
            truncate_middle("abcdefghijkl", Some((9, 100)), 8),
            "abcdef…[+104 characters]…kl"
        );
        assert_eq!(truncate_middle("ab", Some((1, 5)), 8), "a…[+5 characters]…b");
        assert_eq!(truncate_middle("äöüßäöüß", None, 4), "äöü…[+4 characters]…ß");
        assert_eq!(truncate_middle("abc", None, 0), "…[+3 characters]…");
    }

    proptest! {
        #[test]
        fn omitted_characters_are_counted(text in "[ab\u{1f600}\\n]{0,40}", max in 0usize..50) {
            let clipped = truncate_lines(&text, max);
            prop_assert!(text.starts_with(&clipped.text));
            prop_assert!(clipped.text.chars().count() <= max);
            prop_assert_eq!(clipped.text.chars().count() + clipped.left_out_chars, text.chars().count());
        }
    }
}
