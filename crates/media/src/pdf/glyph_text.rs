//! The text of a glyph.

use hayro_interpret::font::Glyph;
use hayro_interpret::hayro_cmap::BfString;
use unicode_normalization::UnicodeNormalization;

use super::cjk_collections::Collections;

/// The text of a glyph. Empty if it is unknown or the glyph has none.
pub(super) fn of(glyph: &Glyph<'_>, collections: &mut Collections<'_>) -> String {
    let by_collection = || match glyph {
        Glyph::Outline(glyph) => collections.text(glyph),
        Glyph::Type3(_) => None,
    };
    let known = match glyph.as_unicode().or_else(by_collection) {
        Some(BfString::Char(c)) => plain(&[c]),
        Some(BfString::String(text)) => plain(&text.chars().collect::<Vec<_>>()),
        None => String::new(),
    };
    if known.is_empty() { from_code(glyph.char_code()) } else { known }
}

/// The combining character for an accent that the font has as a separate glyph and the page shows above a
/// letter, as TeX draws it.
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

/// The letter under an accent: restores the dot that TeX omits.
pub(super) fn under_accent(letter: &str) -> &str {
    match letter {
        "ı" => "i",
        "ȷ" => "j",
        other => other,
    }
}

/// Normalizes characters: ligatures such as `ffi` become letters, and invisible characters are removed. Other
/// compatibility characters are kept, since `m²` is not `m2`.
fn plain(chars: &[char]) -> String {
    let mut text = String::new();
    for &c in chars {
        match c {
            // It was drawn, so it is a visible hyphen.
            '\u{ad}' => text.push('-'),
            '\u{a0}' | '\t' | '\n' | '\r' => text.push(' '),
            '\u{fffd}' | '\u{feff}' | '\u{200b}' => {}
            c if c.is_control() => {}
            // Ligatures, and the Arabic presentation forms.
            '\u{fb00}'..='\u{fb4f}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' => {
                text.extend(std::iter::once(c).nfkc());
            }
            c => text.push(c),
        }
    }
    text
}

/// Old fonts name their glyphs `a0`, `a1`, … and have no table, but their codes are mostly ASCII.
fn from_code(code: u32) -> String {
    char::from_u32(code).filter(|c| matches!(c, ' '..='~')).map(String::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ligatures_become_letters_and_invisible_characters_are_removed() {
        assert_eq!(plain(&['\u{fb03}', 'x', '²', '\0', '\u{200b}']), "ffix²");
        assert_eq!(plain(&['\u{fefb}']), "لا");
        assert_eq!(plain(&['\u{ad}', '\u{a0}']), "- ");
    }

    #[test]
    fn only_ascii_codes_become_text() {
        assert_eq!(from_code(65), "A");
        assert_eq!(from_code(7), "");
        assert_eq!(from_code(0x4e00), "");
    }
}
