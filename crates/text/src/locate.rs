//! Finds exact occurrences of a string.

/// The byte offsets of `needle` in `haystack`, from left to right, not overlapping, at most `most`. Empty for
/// an empty needle.
pub fn find_all(haystack: &[u8], needle: &[u8], most: usize) -> Vec<usize> {
    if needle.is_empty() {
        return Vec::new();
    }
    memchr::memmem::find_iter(haystack, needle).take(most).collect()
}

/// The first occurrence of `needle` after `first`, which may overlap the one at `first`. If there is one,
/// `first` is ambiguous.
pub fn find_another(haystack: &[u8], needle: &[u8], first: usize) -> Option<usize> {
    let rest = haystack.get(first + 1..)?;
    memchr::memmem::find(rest, needle).map(|at| first + 1 + at)
}

/// The line numbers, from 1, of byte offsets in ascending order. Takes one pass.
pub fn line_numbers(text: &[u8], places: &[usize], terminator: u8) -> Vec<u64> {
    let (mut line, mut counted_to) = (1, 0);
    let mut number = |&place: &usize| {
        let place = place.clamp(counted_to, text.len());
        line += memchr::memchr_iter(terminator, &text[counted_to..place]).count() as u64;
        counted_to = place;
        line
    };
    places.iter().map(&mut number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occurrence_is_found_once() {
        assert_eq!(find_all(b"aXaXa", b"aX", usize::MAX), [0, 2]);
        assert_eq!(find_all(b"aaaa", b"aa", usize::MAX), [0, 2]);
        assert_eq!(find_all(b"aaaa", b"aa", 1), [0]);
        assert_eq!(find_all(b"aaaa", b"", usize::MAX), [0usize; 0]);
        assert_eq!(find_another(b"aaa", b"aa", 0), Some(1));
        assert_eq!(find_another(b"aab", b"aa", 0), None);
        assert_eq!(line_numbers(b"a\nb\nc", &[0, 1, 4], b'\n'), [1, 1, 3]);
    }
}
