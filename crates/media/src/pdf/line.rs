//! One line of a page: adjacent glyphs, and their text.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::{glyph_text, right_to_left};

/// A wider gap, relative to the font size, is a space. Letters of a word have nearly no gap, and a space that
/// justification has squeezed is still an eighth.
const MIN_SPACE_GAP: f64 = 0.12;

/// A wider gap separates columns of a table, and becomes a tab.
const MIN_COLUMN_GAP: f64 = 1.8;

/// How far a glyph may be above or below the previous one, such as the number of a footnote.
const MAX_RAISE: f64 = 0.5;

/// How far a right-to-left line may jump over words of the other direction.
const MAX_JUMP: f64 = 3.0;

/// A positioned glyph, in page coordinates.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlacedGlyph {
    pub(super) text: String,
    /// The text direction, as a unit vector.
    pub(super) direction: (f64, f64),
    /// Its start and end, along the direction.
    pub(super) start: f64,
    pub(super) end: f64,
    /// Its baseline, across the direction.
    pub(super) baseline: f64,
    /// Its font size.
    pub(super) size: f64,
}

impl PlacedGlyph {
    fn middle(&self) -> f64 {
        f64::midpoint(self.start, self.end)
    }
}

/// A line in progress, in drawing order.
#[derive(Debug, Default)]
pub(super) struct Line {
    glyphs: Vec<PlacedGlyph>,
    has_right_to_left: bool,
    /// The extent of its glyphs.
    extent: Option<(f64, f64)>,
}

impl Line {
    /// Adds a glyph. Returns it if it belongs to another line.
    pub(super) fn push(&mut self, glyph: PlacedGlyph) -> Option<PlacedGlyph> {
        let right_to_left = right_to_left::is_in(&glyph.text);
        if let Some(last) = self.glyphs.last_mut() {
            let follows = if right_to_left || self.has_right_to_left {
                is_level(last, &glyph) && is_near(self.extent, &glyph)
            } else {
                is_level(last, &glyph) && is_ahead(last, &glyph)
            };
            if !follows {
                return Some(glyph);
            }
            // A combining mark belongs to the letter that it was drawn after.
            if glyph.text.chars().all(is_combining_mark) {
                last.text.push_str(&glyph.text);
                return None;
            }
        }
        self.has_right_to_left |= right_to_left;
        let (from, to) = self.extent.unwrap_or((glyph.start, glyph.end));
        self.extent = Some((from.min(glyph.start), to.max(glyph.end)));
        self.glyphs.push(glyph);
        None
    }

    /// Takes the text and leaves the line empty. The text is empty if there are only spaces.
    pub(super) fn take(&mut self) -> String {
        let mut line = std::mem::take(self);
        if line.has_right_to_left {
            line.glyphs.sort_by(|a, b| a.start.total_cmp(&b.start));
        }
        let mut words = with_spaces(with_accents(line.glyphs));
        if line.has_right_to_left {
            words = right_to_left::in_reading_order(words);
        }
        words.concat().trim().nfc().collect()
    }
}

/// Whether two glyphs have the same direction and about the same baseline. A raised glyph must be close,
/// otherwise it belongs to another line.
fn is_level(last: &PlacedGlyph, glyph: &PlacedGlyph) -> bool {
    let same_way =
        last.direction.0 * glyph.direction.0 + last.direction.1 * glyph.direction.1 > 0.98;
    let size = last.size.max(glyph.size);
    let off = (last.baseline - glyph.baseline).abs();
    let is_close = (glyph.start - last.end).abs() < size;
    same_way && (off < 0.1 * size || (off < MAX_RAISE * size && is_close))
}

/// Whether the glyph continues to the right. A letter may go back under its accent, but no further.
fn is_ahead(last: &PlacedGlyph, glyph: &PlacedGlyph) -> bool {
    glyph.start > last.start - 0.5 * last.size.max(glyph.size)
}

/// Whether the glyph is near the line on either side. Right-to-left text is drawn in either order.
fn is_near(extent: Option<(f64, f64)>, glyph: &PlacedGlyph) -> bool {
    let jump = MAX_JUMP * glyph.size;
    extent.is_none_or(|(from, to)| glyph.end > from - jump && glyph.start < to + jump)
}

/// Merges spacing accents with the letters below them.
fn with_accents(glyphs: Vec<PlacedGlyph>) -> Vec<PlacedGlyph> {
    let mut composed: Vec<PlacedGlyph> = Vec::with_capacity(glyphs.len());
    for glyph in glyphs {
        match composed.last_mut() {
            Some(last) if are_stacked(last, &glyph) => {
                if let Some(text) = accented(&last.text, &glyph.text) {
                    last.text = text;
                    last.start = last.start.min(glyph.start);
                    last.end = last.end.max(glyph.end);
                } else {
                    composed.push(glyph);
                }
            }
            _ => composed.push(glyph),
        }
    }
    composed
}

fn are_stacked(a: &PlacedGlyph, b: &PlacedGlyph) -> bool {
    (a.middle() - b.middle()).abs() < 0.25 * a.size.min(b.size)
}

/// Combines a letter and an accent, in either order.
fn accented(first: &str, second: &str) -> Option<String> {
    let is_letter = |text: &str| text.chars().all(char::is_alphabetic);
    let (letter, mark) = match (glyph_text::combining(first), glyph_text::combining(second)) {
        (Some(mark), None) => (second, mark),
        (None, Some(mark)) => (first, mark),
        _ => return None,
    };
    is_letter(letter).then(|| format!("{}{mark}", glyph_text::under_accent(letter)))
}

/// The texts in order, with a space or a tab in each gap.
fn with_spaces(glyphs: Vec<PlacedGlyph>) -> Vec<String> {
    let mut texts: Vec<String> = Vec::with_capacity(glyphs.len());
    let mut before: Option<(f64, f64)> = None;
    for glyph in glyphs {
        if let Some((end, size)) = before {
            let gap = (glyph.start - end) / size.max(glyph.size);
            let after_space = texts.last().is_some_and(|text| text.ends_with([' ', '\t']));
            if gap > MIN_COLUMN_GAP {
                if after_space {
                    texts.pop();
                }
                texts.push("\t".to_owned());
            } else if gap > MIN_SPACE_GAP && !after_space && !glyph.text.starts_with(' ') {
                texts.push(" ".to_owned());
            }
        }
        before = Some((glyph.end, glyph.size));
        let doubled = glyph.text == " " && texts.last().is_some_and(|text| text.ends_with(' '));
        if !doubled {
            texts.push(glyph.text);
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters half as wide as the font size, at these positions.
    fn line(letters: &[(&str, f64)]) -> String {
        let mut line = Line::default();
        for &(text, start) in letters {
            assert_eq!(line.push(at(text, start, 0.0)), None);
        }
        line.take()
    }

    fn at(text: &str, start: f64, baseline: f64) -> PlacedGlyph {
        let direction = (1.0, 0.0);
        PlacedGlyph {
            text: text.to_owned(),
            direction,
            start,
            end: start + 5.0,
            baseline,
            size: 10.0,
        }
    }

    #[test]
    fn gaps_are_spaces_and_wide_gaps_are_tabs() {
        assert_eq!(line(&[("a", 0.0), ("b", 5.3), ("c", 13.0), ("d", 60.0)]), "ab c\td");
        assert_eq!(line(&[("a", 0.0), (" ", 5.0), (" ", 10.0), ("b", 15.0)]), "a b");
        assert_eq!(line(&[("a", 0.0), (" ", 5.0), ("b", 60.0)]), "a\tb");
    }

    #[test]
    fn an_accent_is_merged_only_with_the_letter_below_it() {
        assert_eq!(line(&[("J", 0.0), ("o", 5.0), ("˜", 10.0), ("a", 10.2), ("o", 15.0)]), "João");
        assert_eq!(line(&[("a", 0.0), ("\u{a8}", 0.3), ("b", 5.0)]), "äb");
        assert_eq!(line(&[("´", 0.0), ("ı", 0.0)]), "í");
        assert_eq!(line(&[("~", 0.0), ("a", 5.0)]), "~a");
    }

    #[test]
    fn a_raised_number_belongs_to_the_line_and_the_next_line_does_not() {
        let mut line = Line::default();
        assert_eq!(line.push(at("x", 0.0, 0.0)), None);
        assert_eq!(line.push(at("2", 5.0, -3.5)), None);
        assert!(line.push(at("y", 10.0, 12.0)).is_some());
        assert!(line.push(at("y", -60.0, -3.5)).is_some());
        assert_eq!(line.take(), "x2");
    }

    #[test]
    fn right_to_left_text_is_read_alike_in_either_drawing_order() {
        let shown = [("ג", 0.0), ("ב", 5.0), ("א", 10.0), ("7", 18.0), ("1", 23.0)];
        let logical = [("7", 18.0), ("1", 23.0), ("א", 10.0), ("ב", 5.0), ("ג", 0.0)];
        assert_eq!(line(&shown), "71 אבג");
        assert_eq!(line(&logical), "71 אבג");
    }
}
