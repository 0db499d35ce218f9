//! The one rule for a text that is too long: whole lines from the front, and what is missing counted.

/// A text within its budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clipped {
    /// What is kept, ending where a line ends if there is one to end at.
    pub text: String,
    /// How many characters were left out.
    pub left_out_chars: usize,
    /// How many lines were left out, a line cut in its middle among them.
    pub left_out_lines: usize,
}

/// Keeps at most `max_chars` characters of `text`: whole lines, unless the first alone is too long.
/// Never cuts a character in two.
pub fn clip_lines(text: &str, max_chars: usize) -> Clipped {
    let Some((limit, _)) = text.char_indices().nth(max_chars) else {
        return Clipped { text: text.to_owned(), left_out_chars: 0, left_out_lines: 0 };
    };
    let cut = text[..limit].rfind('\n').map_or(limit, |newline| newline + 1);
    let (kept, rest) = text.split_at(cut);
    Clipped {
        text: kept.to_owned(),
        left_out_chars: rest.chars().count(),
        left_out_lines: rest.lines().count(),
    }
}

/// Keeps at most `max_chars` characters of one line, and says how many are missing.
pub fn clip_line(line: &str, max_chars: usize) -> String {
    match line.char_indices().nth(max_chars) {
        None => line.to_owned(),
        Some((cut, _)) => {
            format!("{}{}", &line[..cut], left_out(line[cut..].chars().count() as u64))
        }
    }
}

/// What stands where so many characters were left out.
pub(crate) fn left_out(chars: u64) -> String {
    format!("…[+{chars} characters]")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_lines_are_kept() {
        let clipped = clip_lines("one\ntwo\nthree\n", 9);
        assert_eq!(clipped.text, "one\ntwo\n");
        assert_eq!((clipped.left_out_chars, clipped.left_out_lines), (6, 1));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_uncounted(text in "[ab\u{1f600}\\n]{0,40}", max in 0usize..50) {
            let clipped = clip_lines(&text, max);
            prop_assert!(text.starts_with(&clipped.text));
            prop_assert!(clipped.text.chars().count() <= max);
            prop_assert_eq!(clipped.text.chars().count() + clipped.left_out_chars, text.chars().count());
        }
    }
}
