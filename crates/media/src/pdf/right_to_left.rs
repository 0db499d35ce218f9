//! Converts Hebrew, Arabic and similar text from display order to reading order.
//!
//! This is the reverse of the bidirectional algorithm. The display order has less information than the text
//! had, so the result is the most likely text.

/// The direction of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Left,
    Right,
}

/// Whether a text contains a right-to-left letter.
pub(super) fn is_in(text: &str) -> bool {
    text.chars().any(is_right_to_left)
}

/// Reorders the pieces of a line from left-to-right display order to reading order.
pub(super) fn in_reading_order(pieces: Vec<String>) -> Vec<String> {
    let own: Vec<Option<Way>> = pieces.iter().map(|piece| way(piece)).collect();
    let count = |way| own.iter().filter(|&&own| own == Some(way)).count();
    let base = if count(Way::Left) >= count(Way::Right) { Way::Left } else { Way::Right };
    let mut runs: Vec<(Way, Vec<String>)> = Vec::new();
    for (piece, way) in pieces.into_iter().zip(settled(&own, base)) {
        match runs.last_mut() {
            Some((last, run)) if *last == way => run.push(piece),
            _ => runs.push((way, vec![piece])),
        }
    }
    for (way, run) in &mut runs {
        if *way == Way::Left {
            run.reverse();
        }
    }
    if base == Way::Left {
        runs.reverse();
    }
    runs.into_iter().flat_map(|(_, run)| run).collect()
}

/// Gives every piece a direction. Spaces and punctuation take that of their neighbours if those agree, and
/// otherwise that of the line.
fn settled(own: &[Option<Way>], base: Way) -> Vec<Way> {
    let mut settled = Vec::with_capacity(own.len());
    let mut before = base;
    for (at, way) in own.iter().enumerate() {
        let way = way.unwrap_or_else(|| {
            let after = own.iter().skip(at).copied().flatten().next().unwrap_or(base);
            if before == after { before } else { base }
        });
        before = way;
        settled.push(way);
    }
    settled
}

fn way(piece: &str) -> Option<Way> {
    if is_in(piece) {
        Some(Way::Left)
    } else if piece.chars().any(char::is_alphanumeric) {
        Some(Way::Right)
    } else {
        None
    }
}

fn is_right_to_left(c: char) -> bool {
    matches!(c,
        '\u{590}'..='\u{65f}' | '\u{66a}'..='\u{6ef}' | '\u{6fa}'..='\u{8ff}'
        | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(shown: &str) -> String {
        in_reading_order(shown.chars().map(String::from).collect()).concat()
    }

    #[test]
    fn letters_are_reversed_and_numbers_are_not() {
        assert_eq!(read(".4.5 גבא"), "אבג 4.5.");
        assert_eq!(read("דג בא"), "אב גד");
    }

    #[test]
    fn a_word_of_the_other_direction_keeps_its_position() {
        assert_eq!(read("the word גבא is here"), "the word אבג is here");
        assert_eq!(read("וה pdf דגבא"), "אבגד pdf הו");
    }
}
