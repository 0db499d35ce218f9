//! Hebrew, Arabic and their like: from the order on the page to the order of reading.
//!
//! The reverse of what a program does that shows such text. The order on the page has less in it than
//! the text had, so this is the likeliest text and not always the very one.

/// Which way a piece of text runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Left,
    Right,
}

/// Whether there is a letter in it that is written from right to left.
pub(super) fn is_in(text: &str) -> bool {
    text.chars().any(is_right_to_left)
}

/// The pieces of a line, given from left to right as they stand, in the order to read them.
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

/// Every piece gets a way: spaces and points run with their neighbours where those agree, and with the
/// line where they do not.
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
    fn letters_turn_and_numbers_do_not() {
        assert_eq!(read(".4.5 גבא"), "אבג 4.5.");
        assert_eq!(read("דג בא"), "אב גד");
    }

    #[test]
    fn a_word_inside_a_line_of_the_other_way_keeps_its_place() {
        assert_eq!(read("the word גבא is here"), "the word אבג is here");
        assert_eq!(read("וה pdf דגבא"), "אבגד pdf הו");
    }
}
