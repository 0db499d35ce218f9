//! Where a string stands in a file, exactly. Nothing here guesses.

/// The byte offsets at which `needle` stands in `haystack`, left to right, not overlapping: the
/// places where it can be replaced. An empty needle stands nowhere.
pub fn find_all(haystack: &[u8], needle: &[u8]) -> Vec<usize> {
    if needle.is_empty() {
        return Vec::new();
    }
    memchr::memmem::find_iter(haystack, needle).collect()
}

/// The first place after `first` at which `needle` stands, also one that overlaps the place at
/// `first`: where there is one, `first` is not the only reading.
pub fn find_another(haystack: &[u8], needle: &[u8], first: usize) -> Option<usize> {
    let rest = haystack.get(first + 1..)?;
    memchr::memmem::find(rest, needle).map(|at| first + 1 + at)
}

/// The number, from 1, of the line that the byte at `offset` is in.
pub fn line_number_at(text: &[u8], offset: usize, terminator: u8) -> u64 {
    let before = &text[..offset.min(text.len())];
    memchr::memchr_iter(terminator, before).count() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_found_once() {
        assert_eq!(find_all(b"aXaXa", b"aX"), [0, 2]);
        assert_eq!(find_all(b"aaaa", b"aa"), [0, 2]);
        assert_eq!(find_all(b"aaaa", b""), [0usize; 0]);
        assert_eq!(find_another(b"aaa", b"aa", 0), Some(1));
        assert_eq!(find_another(b"aab", b"aa", 0), None);
        assert_eq!(line_number_at(b"a\nb\nc", 4, b'\n'), 3);
    }
}
