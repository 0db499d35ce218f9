//! What a glyph says.

use hayro_interpret::font::Glyph;
use hayro_interpret::hayro_cmap::BfString;
use unicode_normalization::UnicodeNormalization;

use super::cjk_collections::Collections;

/// The text of a glyph; empty if nobody can tell, or if it says nothing.
pub(super) fn of(glyph: &Glyph<'_>, collections: &mut Collections<'_>) -> String {
    let by_collection = || match glyph {
        Glyph::Outline(glyph) => collections.text(glyph),
        Glyph::Type3(_) => None,
    };
    let told = match glyph.as_unicode().or_else(by_collection) {
        Some(BfString::Char(c)) => plain(&[c]),
        Some(BfString::String(text)) => plain(&text.chars().collect::<Vec<_>>()),
        None => String::new(),
    };
    if told.is_empty() { from_code(glyph.char_code()) } else { told }
}

/// Accents that stand beside their letter in a font and above it on the page, as TeX draws them, with
/// the mark that goes into the letter.
pub(super) fn combining(accent: &str) -> Option<char> {
    let mut chars = accent.chars();
    let (Some(accent), None) = (chars.next(), chars.next()) else {
        return None;
    };
    Some(match accent {
        '`' | '\u{2cb}' => '\u{300}',
        '´' | '\u{2ca}' => '\u{301}',
        '^' | 'ˆ' => '\u{302}',
        '~' | '˜' => '\u{303}',
        '¯' | '\u{2c9}' => '\u{304}',
        '˘' => '\u{306}',
        '˙' => '\u{307}',
        '¨' => '\u{308}',
        '˚' => '\u{30a}',
        '˝' => '\u{30b}',
        'ˇ' => '\u{30c}',
        '¸' => '\u{327}',
        '˛' => '\u{328}',
        _ => return None,
    })
}

/// The letter as it is under an accent: the dot that TeX leaves away comes back.
pub(super) fn under_accent(letter: &str) -> &str {
    match letter {
        "ı" => "i",
        "ȷ" => "j",
        other => other,
    }
}

/// As one would type it: `ffi` and not the one glyph that it is drawn with, and nothing that cannot be
/// seen. Other compatibility characters stay, since `m²` is not `m2`.
fn plain(chars: &[char]) -> String {
    let mut text = String::new();
    for &c in chars {
        match c {
            // Drawn, so it is a hyphen that shows.
            '\u{ad}' => text.push('-'),
            '\u{a0}' | '\t' | '\n' | '\r' => text.push(' '),
            '\u{fffd}' | '\u{feff}' | '\u{200b}' => {}
            c if c.is_control() => {}
            // Ligatures, and the Arabic letters by their shape in the word.
            '\u{fb00}'..='\u{fb4f}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' => {
                text.extend(std::iter::once(c).nfkc());
            }
            c => text.push(c),
        }
    }
    text
}

/// Old fonts name their glyphs `a0`, `a1`, … and have no table, while their codes mostly are ASCII.
fn from_code(code: u32) -> String {
    char::from_u32(code).filter(|c| matches!(c, ' '..='~')).map(String::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ligatures_are_letters_and_the_unseen_is_left_out() {
        assert_eq!(plain(&['\u{fb03}', 'x', '²', '\0', '\u{200b}']), "ffix²");
        assert_eq!(plain(&['\u{fefb}']), "لا");
        assert_eq!(plain(&['\u{ad}', '\u{a0}']), "- ");
    }

    #[test]
    fn a_code_is_a_letter_only_where_it_is_ascii() {
        assert_eq!(from_code(65), "A");
        assert_eq!(from_code(7), "");
        assert_eq!(from_code(0x4e00), "");
    }
}
