//! Converts Hebrew, Arabic and similar text from display order to reading order.
//!
//! This is the reverse of the bidirectional algorithm. The display order has less information than the text
//! had, so the result is the most likely text.

/// The direction of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Left,
    Right,
}

/// Whether a text contains a right-to-left letter.
pub(super) fn is_in(text: &str) -> bool {
    text.chars().any(is_right_to_left)
}

/// Reorders the pieces of a line from left-to-right display order to reading order.
pub(super) fn in_reading_order(pieces: Vec<String>) -> Vec<String> {
    let own: Vec<Option<Direction>> = pieces.iter().map(|piece| direction(piece)).collect();
    let count = |direction| own.iter().filter(|&&own| own == Some(direction)).count();
    let base = if count(Direction::Left) >= count(Direction::Right) {
        Direction::Left
    } else {
        Direction::Right
    };
    let mut runs: Vec<(Direction, Vec<String>)> = Vec::new();
    for (piece, direction) in pieces.into_iter().zip(resolve_directions(&own, base)) {
        match runs.last_mut() {
            Some((last, run)) if *last == direction => run.push(piece),
            _ => runs.push((direction, vec![piece])),
        }
    }
    for (direction, run) in &mut runs {
        if *direction == Direction::Left {
            run.reverse();
        }
    }
    if base == Direction::Left {
        runs.reverse();
    }
    runs.into_iter().flat_map(|(_, run)| run).collect()
}

/// Gives every piece a direction. Spaces and punctuation take that of their neighbours if those agree, and
/// otherwise that of the line.
fn resolve_directions(own: &[Option<Direction>], base: Direction) -> Vec<Direction> {
    let mut resolved = Vec::with_capacity(own.len());
    let mut before = base;
    for (at, direction) in own.iter().enumerate() {
        let direction = direction.unwrap_or_else(|| {
            let after = own.iter().skip(at).copied().flatten().next().unwrap_or(base);
            if before == after { before } else { base }
        });
        before = direction;
        resolved.push(direction);
    }
    resolved
}

fn direction(piece: &str) -> Option<Direction> {
    if is_in(piece) {
        Some(Direction::Left)
    } else if piece.chars().any(char::is_alphanumeric) {
        Some(Direction::Right)
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
