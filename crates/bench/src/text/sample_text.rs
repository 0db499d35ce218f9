//! Sample text with numbered lines, so that a reply can be checked without the file.

use std::io::Write;

use toolcrib_devtools::error::Result;

/// The source of the lines: letters only, so that digits occur only in line numbers.
const LETTERS: &str = "the quick brown fox jumps over the lazy dog and the five boxing wizards jump \
                       quickly past the liquor jugs that my very able zebra had packed";

/// The average length of a line with its newline.
pub(super) const LINE_BYTES: usize = 100;

/// Writes numbered lines of 50 to 150 bytes each.
pub(super) fn write(lines: usize, to: &mut impl Write) -> Result<()> {
    for number in 1..=lines {
        writeln!(to, "{}{}", mark(number), letters(number))?;
    }
    Ok(())
}

/// The beginning of a line.
pub(super) fn mark(number: usize) -> String {
    format!("{number:08} ")
}

/// The rest of a line. The lengths repeat after a while.
fn letters(number: usize) -> &'static str {
    let length = 40 + number * 37 % 101;
    LETTERS.get(..length).unwrap_or(LETTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_number_and_the_average_length() {
        let mut bytes = Vec::new();
        write(10_100, &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.len(), 10_100 * LINE_BYTES);
        assert!(text.lines().nth(4_999).unwrap().starts_with("00005000 the quick"));
        assert_eq!(text.matches("00005000 ").count(), 1);
    }
}
