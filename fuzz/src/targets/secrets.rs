//! Masking secrets: any text is accepted, the number of lines stays the same, and splitting the output reveals
//! nothing.

use toolcrib_text::{Masker, Secrets};

use super::parts;

/// A known secret value.
const KNOWN: &str = "0123456789abcdef";

/// The parts are a text and the positions where it is split, as fractions of 255.
pub(crate) fn secrets(input: &[u8]) -> String {
    let [text, cuts] = parts(input);
    let text = String::from_utf8_lossy(text);
    let secrets = Secrets::known([("A_TOKEN".to_owned(), KNOWN.to_owned())]);
    let masked = secrets.mask(&text);
    assert_eq!(
        masked.matches('\n').count(),
        text.matches('\n').count(),
        "the number of lines stays the same"
    );
    assert!(!masked.contains(KNOWN), "the known secret is masked");
    let mut masker = Masker::new(&secrets);
    for (line, expected) in text.split('\n').zip(masked.split('\n')) {
        assert_eq!(masker.line(line), expected, "masking by lines equals masking as a whole");
    }
    for &cut in cuts {
        let at = text.floor_char_boundary(text.len() * usize::from(cut) / 255);
        let held = secrets.unfinished(&text.as_bytes()[..at]);
        let (first, rest) = text.split_at(at - held);
        let shown = secrets.mask(first).into_owned() + &secrets.mask(rest);
        assert!(!shown.contains(KNOWN), "the known secret is masked in two parts");
    }
    if masker.masked() > 0 { "masked" } else { "nothing secret" }.to_owned()
}
