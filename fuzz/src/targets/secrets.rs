//! What is secret in a text: any text is taken, lines stay lines, and where an output is cut tells nothing.

use toolcrib_text::{Masker, Secrets};

use super::parts;

/// A value that one was told.
const KNOWN: &str = "0123456789abcdef";

/// The parts are a text, and where it is cut: a byte for each of 255 places.
pub(crate) fn secrets(input: &[u8]) -> String {
    let [text, cuts] = parts(input);
    let text = String::from_utf8_lossy(text);
    let secrets = Secrets::known([("A_TOKEN".to_owned(), KNOWN.to_owned())]);
    let masked = secrets.mask(&text);
    assert_eq!(masked.matches('\n').count(), text.matches('\n').count(), "lines stay lines");
    assert!(!masked.contains(KNOWN), "what one was told is not shown");
    let mut masker = Masker::new(&secrets);
    for (line, expected) in text.split('\n').zip(masked.split('\n')) {
        assert_eq!(masker.line(line), expected, "by lines and as a whole it is the same");
    }
    for &cut in cuts {
        let at = text.floor_char_boundary(text.len() * usize::from(cut) / 255);
        let held = secrets.unfinished(&text.as_bytes()[..at]);
        let (first, rest) = text.split_at(at - held);
        let shown = secrets.mask(first).into_owned() + &secrets.mask(rest);
        assert!(!shown.contains(KNOWN), "not in two parts either");
    }
    if masker.masked() > 0 { "masked" } else { "nothing secret" }.to_owned()
}
