//! Where a string stands in a file, exactly. Nothing here guesses.

/// The byte offsets at which `needle` stands in `haystack`, left to right, not overlapping.
/// An empty needle stands nowhere.
pub fn find_all(haystack: &[u8], needle: &[u8]) -> Vec<usize> {
    if needle.is_empty() {
        return Vec::new();
    }
    memchr::memmem::find_iter(haystack, needle).collect()
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
        assert_eq!(line_number_at(b"a\nb\nc", 4, b'\n'), 3);
    }
}
