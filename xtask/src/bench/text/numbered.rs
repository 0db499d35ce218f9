//! Text whose lines begin with their numbers, so that an answer can be checked without the file.

use std::io::Write;

use crate::error::Result;

/// What the lines are cut from: letters only, so that a number stands nowhere but before its line.
const LETTERS: &str = "the quick brown fox jumps over the lazy dog and the five boxing wizards jump \
                       quickly past the liquor jugs that my very able zebra had packed";

/// How long a line is on average, its end included.
pub(super) const LINE_BYTES: usize = 100;

/// Writes so many lines, of 50 to 150 bytes each.
pub(super) fn write(lines: usize, to: &mut impl Write) -> Result<()> {
    for number in 1..=lines {
        writeln!(to, "{}{}", mark(number), letters(number))?;
    }
    Ok(())
}

/// What a line begins with.
pub(super) fn mark(number: usize) -> String {
    format!("{number:08} ")
}

/// What stands behind the mark. The lengths are all different for a while, and then the same again.
fn letters(number: usize) -> &'static str {
    let length = 40 + number * 37 % 101;
    LETTERS.get(..length).unwrap_or(LETTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_number_and_the_length_that_is_claimed() {
        let mut bytes = Vec::new();
        write(10_100, &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.len(), 10_100 * LINE_BYTES);
        assert!(text.lines().nth(4_999).unwrap().starts_with("00005000 the quick"));
        assert_eq!(text.matches("00005000 ").count(), 1);
    }
}
