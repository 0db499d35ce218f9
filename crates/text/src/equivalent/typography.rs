//! Typographic characters, and the plain ones that keyboards and models write for them.

/// The plain equivalent of `c`.
pub(super) fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2bc}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe63}' | '\u{ff0d}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// Whether `c` is a plain character with typographic variants, or such a variant.
pub(super) fn has_typographic_variants(c: char) -> bool {
    matches!(plain(c), '\'' | '"' | '-' | ' ')
}

/// The first character of `bytes`, if they begin with a valid one.
fn first_char(bytes: &[u8]) -> Option<char> {
    let longest = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(longest) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(&longest[..error.valid_up_to()]).unwrap_or_default(),
    };
    valid.chars().next()
}

/// The number of bytes at the start of `file` that match `wanted`. `None` if they do not match.
pub(super) fn prefix_len(file: &[u8], wanted: &str, folds: bool) -> Option<usize> {
    if !folds {
        return file.starts_with(wanted.as_bytes()).then_some(wanted.len());
    }
    let mut at = 0;
    for want in wanted.chars() {
        let have = first_char(&file[at..])?;
        if plain(have) != plain(want) {
            return None;
        }
        at += have.len_utf8();
    }
    Some(at)
}

/// The number of bytes at the end of `file` that match `wanted`. `None` if they do not match.
pub(super) fn suffix_len(file: &[u8], wanted: &str, folds: bool) -> Option<usize> {
    if !folds {
        return file.ends_with(wanted.as_bytes()).then_some(wanted.len());
    }
    let mut start = file.len();
    for want in wanted.chars().rev() {
        let tail = &file[..start];
        let len = (1..=4.min(tail.len())).find(|len| {
            let last = std::str::from_utf8(&tail[tail.len() - len..]).unwrap_or_default();
            last.chars().next().is_some_and(|have| plain(have) == plain(want))
        })?;
        start -= len;
    }
    Some(file.len() - start)
}
