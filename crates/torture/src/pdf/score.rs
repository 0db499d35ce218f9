//! Scores the similarity of two texts of one document.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;

/// The words of a text with their counts.
pub(super) type Words = HashMap<String, usize>;

/// Counts the words of a text after normalization of line breaks and characters. In scripts without spaces
/// each character is a word.
pub(super) fn words(text: &str) -> Words {
    let mut plain = String::with_capacity(text.len());
    for c in text.nfkc().filter(|&c| !is_invisible(c)) {
        if is_written_without_spaces(c) {
            plain.extend([' ', c, ' ']);
        } else {
            plain.push(c);
        }
    }
    let mut words = Words::new();
    for word in joined(&plain).split_whitespace() {
        *words.entry(word.to_owned()).or_default() += 1;
    }
    words
}

/// The total number of words.
pub(super) fn count(words: &Words) -> usize {
    words.values().sum()
}

/// The F1 score of two bags of words: 1 if they are equal, 0 if they share no word.
pub(super) fn f1(ours: &Words, theirs: &Words) -> f64 {
    let shared: usize = ours
        .iter()
        .map(|(word, &times)| times.min(theirs.get(word).copied().unwrap_or_default()))
        .sum();
    let all = count(ours) + count(theirs);
    if all == 0 { 1.0 } else { 2.0 * shared as f64 / all as f64 }
}

/// Joins words that were hyphenated at the end of a line.
fn joined(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let line = line.trim();
        let goes_on = lines.peek().is_some_and(|next| next.trim().starts_with(char::is_alphabetic));
        let broken = line.strip_suffix(['-', '\u{2010}', '\u{ad}']);
        match broken.filter(|line| goes_on && line.ends_with(char::is_alphabetic)) {
            Some(line) => whole.push_str(line),
            None => {
                whole.push_str(line);
                whole.push('\n');
            }
        }
    }
    whole
}

/// Whether a character marks the writing direction or a possible line break.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn is_written_without_spaces(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}'
        | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{2ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_order_does_not_matter() {
        assert_eq!(f1(&words("a ﬁne day\nout-\nside"), &words("outside fine\na day")), 1.0);
        assert_eq!(f1(&words("你好 world"), &words("world 你 好")), 1.0);
        assert_eq!(f1(&words("\u{202b}7\u{202c}"), &words("7")), 1.0);
    }

    #[test]
    fn extra_words_lower_the_score() {
        assert_eq!(f1(&words("a a"), &words("a")), 2.0 / 3.0);
        assert_eq!(f1(&words("a"), &words("b")), 0.0);
        assert_eq!(f1(&words(""), &words("")), 1.0);
    }
}
