//! Where a string stands in a file, exactly. Nothing here guesses.

/// The byte offsets at which `needle` stands in `haystack`, left to right, not overlapping: the
/// places where it can be replaced, `most` at most. An empty needle stands nowhere.
pub fn find_all(haystack: &[u8], needle: &[u8], most: usize) -> Vec<usize> {
    if needle.is_empty() {
        return Vec::new();
    }
    memchr::memmem::find_iter(haystack, needle).take(most).collect()
}

/// The first place after `first` at which `needle` stands, also one that overlaps the place at
/// `first`: where there is one, `first` is not the only reading.
pub fn find_another(haystack: &[u8], needle: &[u8], first: usize) -> Option<usize> {
    let rest = haystack.get(first + 1..)?;
    memchr::memmem::find(rest, needle).map(|at| first + 1 + at)
}

/// The numbers, from 1, of the lines that bytes are in; `places` from left to right. One pass.
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
    fn every_place_is_found_once() {
        assert_eq!(find_all(b"aXaXa", b"aX", usize::MAX), [0, 2]);
        assert_eq!(find_all(b"aaaa", b"aa", usize::MAX), [0, 2]);
        assert_eq!(find_all(b"aaaa", b"aa", 1), [0]);
        assert_eq!(find_all(b"aaaa", b"", usize::MAX), [0usize; 0]);
        assert_eq!(find_another(b"aaa", b"aa", 0), Some(1));
        assert_eq!(find_another(b"aab", b"aa", 0), None);
        assert_eq!(line_numbers(b"a\nb\nc", &[0, 1, 4], b'\n'), [1, 1, 3]);
    }
}
