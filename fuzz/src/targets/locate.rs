//! Locating a text in a file: every match is in the file, and replacing a match by itself changes nothing.

use toolcrib_text::{
    EndingFinder, SoughtText, TextProperties, find_all, find_another, find_equivalents,
    nearest_block, without_line_numbers,
};

use super::parts;

/// The parts are the file, the sought text, and its replacement.
pub(crate) fn locate(input: &[u8]) -> String {
    let [file, wanted, new] = parts(input);
    let (wanted, new) = (String::from_utf8_lossy(wanted), String::from_utf8_lossy(new));
    check_exact(file, wanted.as_bytes());
    check_line_numbers(&wanted);
    let terminator = TextProperties::of(file).terminator();
    // Only that it returns: the choice of the nearest text is not checked.
    nearest_block(file, wanted.as_bytes(), terminator);

    let (wanted, new) = (SoughtText::new(&wanted), SoughtText::new(&new));
    let places = find_equivalents(file, terminator, &wanted);
    let mut endings = EndingFinder::new(file);
    let mut rewritten = 0;
    for place in &places {
        let range = place.range();
        let there = file.get(range.clone()).expect("a match is in the file");
        let ending = endings.at(range.start);
        if let Some(same) = place.rewrite(file, &wanted, &wanted, ending) {
            assert_eq!(same, there, "replacing a match by itself changes nothing");
        }
        rewritten += usize::from(place.rewrite(file, &wanted, &new, ending).is_some());
    }
    match places.first() {
        None => "nowhere".to_owned(),
        Some(place) if rewritten > 0 => format!("{}, rewritten", place.difference().name()),
        Some(place) => format!("{}, not rewritten", place.difference().name()),
    }
}

fn check_exact(file: &[u8], wanted: &[u8]) {
    let places = find_all(file, wanted, usize::MAX);
    for &at in &places {
        assert_eq!(
            file.get(at..at + wanted.len()),
            Some(wanted),
            "the match is where it was found"
        );
    }
    if let Some(&first) = places.first()
        && let Some(another) = find_another(file, wanted, first)
    {
        assert_ne!(another, first);
        assert_eq!(file.get(another..another + wanted.len()), Some(wanted));
    }
}

/// Removing the line numbers that Read adds gives the text back.
fn check_line_numbers(text: &str) {
    without_line_numbers(text);
    if text.is_empty() {
        return;
    }
    let lines = text.split_inclusive('\n').zip(9..);
    let numbered: String = lines.map(|(line, number)| format!("{number:>6}\t{line}")).collect();
    assert_eq!(without_line_numbers(&numbered), Some((9, text.to_owned())));
}
