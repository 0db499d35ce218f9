//! Characters that are invisible or change the display order: one table, and the contexts in which they are
//! ordinary.
//!
//! The table has all of general category Cf and all of Default_Ignorable_Code_Point, the line and paragraph
//! separators, every space but U+0020, and a few symbols that are drawn blank. Names, prompts and messages
//! show each of these as an escape. In content some have an ordinary use that depends on their neighbours: an
//! emoji sequence, a letter of a joining script. [`hidden_in`] finds the others.

use std::cell::LazyCell;

/// Ranges of invisible characters, in order, each with its name or the name of the range.
const INVISIBLE: &[(u32, u32, &str)] = &[
    (0xa0, 0xa0, "NO-BREAK SPACE"),
    (0xad, 0xad, "SOFT HYPHEN"),
    (0x34f, 0x34f, "COMBINING GRAPHEME JOINER"),
    (0x600, 0x605, "ARABIC NUMBER SIGN"),
    (0x61c, 0x61c, "ARABIC LETTER MARK"),
    (0x6dd, 0x6dd, "ARABIC END OF AYAH"),
    (0x70f, 0x70f, "SYRIAC ABBREVIATION MARK"),
    (0x890, 0x891, "ARABIC CURRENCY MARK ABOVE"),
    (0x8e2, 0x8e2, "ARABIC DISPUTED END OF AYAH"),
    (0x115f, 0x1160, "HANGUL FILLER"),
    (0x1680, 0x1680, "OGHAM SPACE MARK"),
    (0x17b4, 0x17b5, "KHMER INHERENT VOWEL"),
    (0x180b, 0x180d, "MONGOLIAN VARIATION SELECTOR"),
    (0x180e, 0x180e, "MONGOLIAN VOWEL SEPARATOR"),
    (0x180f, 0x180f, "MONGOLIAN VARIATION SELECTOR"),
    (0x2000, 0x200a, "SPACE OF UNUSUAL WIDTH"),
    (0x200b, 0x200b, "ZERO WIDTH SPACE"),
    (0x200c, 0x200c, "ZERO WIDTH NON-JOINER"),
    (0x200d, 0x200d, "ZERO WIDTH JOINER"),
    (0x200e, 0x200e, "LEFT-TO-RIGHT MARK"),
    (0x200f, 0x200f, "RIGHT-TO-LEFT MARK"),
    (0x2028, 0x2028, "LINE SEPARATOR"),
    (0x2029, 0x2029, "PARAGRAPH SEPARATOR"),
    (0x202a, 0x202a, "LEFT-TO-RIGHT EMBEDDING"),
    (0x202b, 0x202b, "RIGHT-TO-LEFT EMBEDDING"),
    (0x202c, 0x202c, "POP DIRECTIONAL FORMATTING"),
    (0x202d, 0x202d, "LEFT-TO-RIGHT OVERRIDE"),
    (0x202e, 0x202e, "RIGHT-TO-LEFT OVERRIDE"),
    (0x202f, 0x202f, "NARROW NO-BREAK SPACE"),
    (0x205f, 0x205f, "MEDIUM MATHEMATICAL SPACE"),
    (0x2060, 0x2060, "WORD JOINER"),
    (0x2061, 0x2064, "INVISIBLE OPERATOR"),
    (0x2065, 0x2065, "IGNORED CODE POINT"),
    (0x2066, 0x2066, "LEFT-TO-RIGHT ISOLATE"),
    (0x2067, 0x2067, "RIGHT-TO-LEFT ISOLATE"),
    (0x2068, 0x2068, "FIRST STRONG ISOLATE"),
    (0x2069, 0x2069, "POP DIRECTIONAL ISOLATE"),
    (0x206a, 0x206f, "DEPRECATED FORMAT CHARACTER"),
    (0x2800, 0x2800, "BRAILLE PATTERN BLANK"),
    (0x3000, 0x3000, "IDEOGRAPHIC SPACE"),
    (0x3164, 0x3164, "HANGUL FILLER"),
    (0xfe00, 0xfe0f, "VARIATION SELECTOR"),
    (0xfeff, 0xfeff, "ZERO WIDTH NO-BREAK SPACE"),
    (0xffa0, 0xffa0, "HALFWIDTH HANGUL FILLER"),
    (0xfff0, 0xfff8, "IGNORED CODE POINT"),
    (0xfff9, 0xfffb, "INTERLINEAR ANNOTATION CHARACTER"),
    (0x1107f, 0x1107f, "BRAHMI NUMBER JOINER"),
    (0x110bd, 0x110bd, "KAITHI NUMBER SIGN"),
    (0x110cd, 0x110cd, "KAITHI NUMBER SIGN ABOVE"),
    (0x13430, 0x1343f, "EGYPTIAN HIEROGLYPH FORMAT CONTROL"),
    (0x13441, 0x13442, "EGYPTIAN HIEROGLYPH BLANK"),
    (0x16fe4, 0x16fe4, "KHITAN SMALL SCRIPT FILLER"),
    (0x1bca0, 0x1bca3, "SHORTHAND FORMAT CHARACTER"),
    (0x1d159, 0x1d159, "MUSICAL SYMBOL NULL NOTEHEAD"),
    (0x1d173, 0x1d17a, "MUSICAL SYMBOL FORMAT CHARACTER"),
    (0xe0000, 0xe001f, "TAG CHARACTER"),
    (0xe0020, 0xe007f, "TAG CHARACTER"),
    (0xe0080, 0xe00ff, "IGNORED CODE POINT"),
    (0xe0100, 0xe01ef, "VARIATION SELECTOR"),
    (0xe01f0, 0xe0fff, "IGNORED CODE POINT"),
];

/// The three flags of Unicode's list that are spelt with tags: England, Scotland, Wales.
const TAG_FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];

/// Limit for following a flag's tags or a run of braille in either direction.
const MAX_SCANNED_CHARS: usize = 64;

/// The name of an invisible character, or of its range. `None` for any other character.
pub fn invisible_name(c: char) -> Option<&'static str> {
    let code = u32::from(c);
    // Most text is ASCII.
    if code < INVISIBLE[0].0 {
        return None;
    }
    let row = INVISIBLE.partition_point(|&(_, last, _)| last < code);
    INVISIBLE.get(row).filter(|&&(first, ..)| first <= code).map(|&(.., name)| name)
}

/// The invisible characters of a line that have no ordinary use in their context, each with its byte offset.
/// A byte order mark is ordinary at the start of a file, which only the caller knows.
pub fn hidden_in(line: &str) -> impl Iterator<Item = (usize, char)> {
    let looked_through = if line.is_ascii() { "" } else { line };
    let right_to_left = LazyCell::new(|| line.chars().any(is_right_to_left));
    looked_through.char_indices().filter(|&(_, c)| invisible_name(c).is_some()).filter(
        move |&(at, c)| match c {
            // Direction marks are ordinary in a line that has right-to-left text.
            '\u{200e}' | '\u{200f}' | '\u{61c}' => !*right_to_left,
            c => !is_ordinary(line, at, c),
        },
    )
}

/// Whether an invisible character is part of ordinary writing in this context.
fn is_ordinary(line: &str, at: usize, c: char) -> bool {
    let (before, after) = (&line[..at], &line[at + c.len_utf8()..]);
    let (previous, next) = (before.chars().next_back(), after.chars().next());
    let beside = |is: fn(char) -> bool| previous.is_some_and(is) || next.is_some_and(is);
    match u32::from(c) {
        // Typography, and format characters that are drawn.
        0xa0 | 0x1680 | 0x2000..=0x200a | 0x202f | 0x205f | 0x3000 => true,
        0x600..=0x605 | 0x6dd | 0x70f | 0x890 | 0x891 | 0x8e2 | 0x110bd | 0x110cd => true,
        0x200d if joins_emoji(before, next) => true,
        // A single joiner beside a joining letter. A run of them is suspicious.
        0x200c | 0x200d => {
            let in_run = |c: Option<char>| c.is_some_and(|c| invisible_name(c).is_some());
            beside(is_joining_letter) && !in_run(previous) && !in_run(next)
        }
        0x34f => previous.is_some_and(|c| matches!(c, '\u{591}'..='\u{5c7}')),
        0x115f | 0x1160 => beside(is_jamo),
        0x180b..=0x180f => previous.is_some_and(|c| matches!(c, '\u{1820}'..='\u{18aa}')),
        0x2800 => touches_braille(before, after),
        0xfe00..=0xfe0d => previous.is_some_and(|c| is_han(c) || has_variants(c)),
        0xfe0e | 0xfe0f => previous.is_some_and(|c| is_emoji(c) || is_keycap(c)),
        0x13430..=0x13442 => beside(is_hieroglyph),
        0x1bca0..=0x1bca3 => previous.is_some_and(|c| matches!(c, '\u{1bc00}'..='\u{1bc9f}')),
        0xe0020..=0xe007f => is_in_flag(before, c, after),
        0xe0100..=0xe01ef => previous.is_some_and(is_han),
        _ => false,
    }
}

/// Whether the joiner between these is part of an emoji sequence, such as a family or a profession.
fn joins_emoji(before: &str, next: Option<char>) -> bool {
    let base = before.strip_suffix('\u{fe0f}').unwrap_or(before);
    base.chars().next_back().is_some_and(is_emoji) && next.is_some_and(is_emoji)
}

/// Whether a tag is part of one of the flags in `TAG_FLAGS`.
fn is_in_flag(before: &str, tag: char, after: &str) -> bool {
    let is_tag = |c: &char| matches!(c, '\u{e0020}'..='\u{e007f}');
    let mut spelt: Vec<char> =
        before.chars().rev().take(MAX_SCANNED_CHARS).take_while(is_tag).collect();
    let base = before.chars().rev().nth(spelt.len());
    spelt.reverse();
    spelt.push(tag);
    spelt.extend(after.chars().take(MAX_SCANNED_CHARS).take_while(is_tag));
    let letters: Option<String> =
        spelt.iter().map(|&tag| char::from_u32(u32::from(tag) - 0xe0000)).collect();
    base == Some('\u{1f3f4}')
        && letters.is_some_and(|letters| {
            letters.strip_suffix('\u{7f}').is_some_and(|flag| TAG_FLAGS.contains(&flag))
        })
}

/// Whether a blank pattern is in a row of braille, as text or as a drawing.
fn touches_braille(before: &str, after: &str) -> bool {
    let inked = |c: char| matches!(c, '\u{2801}'..='\u{28ff}');
    let past_blanks = |c: &char| !matches!(c, '\u{2800}' | ' ');
    let found = |c: Option<char>| c.is_some_and(inked);
    found(before.chars().rev().take(MAX_SCANNED_CHARS).find(past_blanks))
        || found(after.chars().take(MAX_SCANNED_CHARS).find(past_blanks))
}

/// Letters and marks of the scripts whose shapes depend on joiners.
fn is_joining_letter(c: char) -> bool {
    matches!(u32::from(c),
        0x620..=0x6d3 | 0x6d5..=0x6ff | 0x710..=0x8ff | 0x900..=0xdff | 0xf40..=0xfbc
        | 0x1000..=0x109f | 0x1780..=0x17b3 | 0x17b6..=0x17dd | 0x1820..=0x18aa | 0x1900..=0x1c4f
        | 0xa800..=0xa82f | 0xa840..=0xa8ff | 0xa930..=0xa9df | 0xaa00..=0xaaff | 0xabc0..=0xabff
        | 0xfb50..=0xfdff | 0xfe70..=0xfefc
        | 0x10a00..=0x10aff | 0x10b80..=0x10bff | 0x10d00..=0x10fff | 0x11000..=0x11fff
        | 0x1e900..=0x1e95f)
        && invisible_name(c).is_none()
}

fn is_right_to_left(c: char) -> bool {
    matches!(u32::from(c),
        0x5d0..=0x5ea | 0x620..=0x64a | 0x66e..=0x6d3 | 0x6fa..=0x85f | 0x860..=0x8c9
        | 0xfb1d..=0xfdfc | 0xfe70..=0xfefc | 0x10800..=0x10fff | 0x1e800..=0x1efff)
}

fn is_jamo(c: char) -> bool {
    matches!(u32::from(c), 0x1100..=0x115e | 0x1161..=0x11ff | 0xa960..=0xa97c | 0xd7b0..=0xd7fb)
}

fn is_hieroglyph(c: char) -> bool {
    matches!(c, '\u{13000}'..='\u{1342f}' | '\u{13460}'..='\u{143fa}')
}

fn is_han(c: char) -> bool {
    matches!(u32::from(c),
        0x2e80..=0x2fdf | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3400..=0x9fff | 0xf900..=0xfaff
        | 0x20000..=0x3fffd)
}

/// Symbols and letters with standardized variants that are not emoji: mathematics, Myanmar, Phags-pa,
/// punctuation.
fn has_variants(c: char) -> bool {
    matches!(u32::from(c),
        0x30 | 0x1000..=0x109f | 0x2018..=0x201d | 0x2205..=0x22ff | 0x2a00..=0x2aff | 0x3001 | 0x3002
        | 0xa840..=0xa877 | 0xaa60..=0xaa7f | 0xff01..=0xff1f)
}

/// Roughly Extended_Pictographic and the regional indicators: the blocks that contain them.
fn is_emoji(c: char) -> bool {
    matches!(u32::from(c),
        0xa9 | 0xae | 0x203c | 0x2049 | 0x2122 | 0x2139 | 0x2190..=0x21ff | 0x2300..=0x23ff
        | 0x24c2 | 0x25a0..=0x27bf | 0x2934 | 0x2935 | 0x2b00..=0x2bff | 0x3030 | 0x303d
        | 0x3297 | 0x3299 | 0x1f000..=0x1faff)
}

fn is_keycap(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

#[cfg(test)]
mod tests {
    use regex_syntax::hir::{Class, HirKind};

    use super::*;

    /// The characters of a class, by the Unicode data of a maintained crate.
    fn class(pattern: &str) -> Vec<(u32, u32)> {
        let parsed = regex_syntax::parse(pattern).unwrap();
        let HirKind::Class(Class::Unicode(class)) = parsed.kind() else { panic!("{pattern}") };
        class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))).collect()
    }

    fn hidden(line: &str) -> Vec<u32> {
        hidden_in(line).map(|(_, c)| u32::from(c)).collect()
    }

    #[test]
    fn the_table_is_in_order() {
        assert!(INVISIBLE.windows(2).all(|rows| rows[0].1 < rows[1].0));
        assert!(INVISIBLE.iter().all(|(first, last, _)| first <= last));
    }

    #[test]
    fn every_format_character_ignorable_and_unusual_space_is_in_the_table() {
        let expected = class(r"[\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}[\p{Zs}--\x20]]");
        for (first, last) in expected {
            for c in (first..=last).filter_map(char::from_u32) {
                assert!(invisible_name(c).is_some(), "U+{:04X}", u32::from(c));
            }
        }
    }

    /// The other characters in the table are all drawn blank.
    #[test]
    fn letters_numbers_punctuation_and_symbols_are_not_in_the_table() {
        let blank = ['\u{2800}', '\u{1d159}'];
        for (first, last) in
            class(r"[\p{L}\p{N}\p{P}\p{S}\p{Co}--\p{Default_Ignorable_Code_Point}]")
        {
            for c in (first..=last).filter_map(char::from_u32) {
                let hieroglyph = matches!(c, '\u{13441}' | '\u{13442}');
                let shown = invisible_name(c).is_none();
                assert!(shown || blank.contains(&c) || hieroglyph, "U+{:04X}", u32::from(c));
            }
        }
    }

    #[test]
    fn ordinary_writing_has_no_hidden_characters() {
        let ordinary = [
            "fn main() { println!(\"naïve café\"); }",
            "❤️ ☎︎ 1️⃣ #️⃣ ©️ 👍🏽",
            "👩‍💻 👨‍👩‍👧‍👦 🏳️‍🌈 👩🏽‍🚀 🧑‍🤝‍🧑 ❤️‍🔥",
            "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} 🇩🇪",
            "می‌خواهم",
            "क्‍ष ශ්‍රී ന്‍",
            "שלום C++\u{200e} עולם",
            "葛\u{e0100} 辻\u{fe00}",
            "⠓⠑⠇⠇⠕⠀⠺⠕⠗⠇⠙",
            "Bonjour\u{a0}: 10\u{202f}000 全角\u{3000}空白",
            "سنة \u{600}١٢٣",
        ];
        for line in ordinary {
            assert_eq!(hidden(line), Vec::<u32>::new(), "{line}");
        }
    }

    #[test]
    fn characters_without_an_ordinary_use_are_found() {
        assert_eq!(hidden("a\u{202e}b\u{2066}c"), [0x202e, 0x2066]);
        assert_eq!(hidden("if\u{200b}x\u{200d}y\u{200f}"), [0x200b, 0x200d, 0x200f]);
        assert_eq!(hidden("a\u{fe0f}\u{e0101}"), [0xfe0f, 0xe0101]);
        // Bytes hidden after an emoji: only the first selector belongs to it.
        assert_eq!(hidden("😀\u{fe0f}\u{fe01}\u{e0102}"), [0xfe01, 0xe0102]);
        // A flag that spells something else.
        assert_eq!(hidden("🏴\u{e0068}\u{e0069}\u{e007f}").len(), 3);
        assert_eq!(hidden("\u{e0041}\u{2800}\u{3164}\u{feff}\u{ad}").len(), 5);
        assert_eq!(hidden("ا\u{200c}\u{200d}ب").len(), 2);
        assert_eq!(hidden("שלום \u{202e}"), [0x202e]);
    }
}
