//! The lines in which two versions of a text differ.

use std::ops::RangeInclusive;

/// The rows of `after`, from 0, between the lines at the beginning and the end that both texts have in common. At a
/// place where lines were only removed, the row of the next line.
pub(crate) fn changed_rows(before: &[u8], after: &[u8]) -> RangeInclusive<usize> {
    let lines = |text| -> Vec<&[u8]> { <[u8]>::split(text, |byte| *byte == b'\n').collect() };
    let (before, after) = (lines(before), lines(after));
    let is_equal = |(one, other): &(&&[u8], &&[u8])| one == other;
    let start = before.iter().zip(&after).take_while(is_equal).count();
    let start = start.min(after.len() - 1);
    let most = before.len().saturating_sub(start).min(after.len() - start);
    let ends = before.iter().rev().zip(after.iter().rev()).take(most);
    let end = ends.take_while(is_equal).count();
    start..=(after.len() - end).saturating_sub(1).max(start)
}

#[cfg(test)]
mod tests {
    use super::changed_rows;

    #[test]
    fn the_common_beginning_and_end_do_not_count() {
        for (before, after, rows) in [
            ("a\nb\nc\n", "a\nB\nc\n", 1..=1),
            ("a\nb\nc\n", "a\nc\n", 1..=1),
            ("a\nc\n", "a\nb\nb\nc\n", 1..=2),
            ("", "a\n", 0..=0),
            ("a\n", "a\n", 1..=1),
            ("aaa", "aa", 0..=0),
            ("a\nb\n", "", 0..=0),
            ("}\n", "  }\n}\n", 0..=0),
        ] {
            assert_eq!(changed_rows(before.as_bytes(), after.as_bytes()), rows, "{before:?}");
        }
    }
}
