//! Letters out of bytes and back: the same bytes come back, and a text that streams by is the same text.

use toolcrib_text::{Detector, Encoding, TextProperties};

/// The first byte says how long the chunks are in which the others stream by.
pub(crate) fn decode(input: &[u8]) -> String {
    let Some((&size, bytes)) = input.split_first() else { return "empty".to_owned() };
    let chunks = || bytes.chunks(1 + usize::from(size) % 64);
    let encoding = Encoding::of(bytes);

    let mut survey = TextProperties::default();
    let mut detector = Detector::default();
    for chunk in chunks() {
        survey.feed(chunk);
        detector.feed(chunk);
    }
    survey.finish();
    assert_eq!(survey, TextProperties::of(bytes), "a survey in chunks is the survey of the whole");
    assert_eq!(detector.finish(&survey), encoding, "so is the encoding");

    let (whole, whole_has_errors) = stream(encoding, std::iter::once(bytes));
    let (streamed, has_errors) = stream(encoding, chunks());
    assert_eq!(streamed, whole, "text in chunks is the text of the whole");
    assert_eq!(has_errors, whole_has_errors);

    let name = encoding.name();
    let Some(decoded) = encoding.decode(bytes) else { return format!("{name}, not decoded") };
    if encoding.is_utf8() {
        assert_eq!(decoded, bytes, "UTF-8 is its own letters");
        return name.to_owned();
    }
    let text = std::str::from_utf8(&decoded).expect("what was decoded is UTF-8");
    assert_eq!(encoding.encode(text).as_deref(), Ok(bytes), "the same bytes come back");
    assert_eq!(streamed, text.as_bytes(), "what streams by is what is decoded at once");
    assert!(!has_errors, "what can be written back had no errors");
    check_line_ends(encoding, bytes, text);
    format!("{name}, decoded")
}

fn stream<'a>(encoding: Encoding, chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, bool) {
    let mut stream = encoding.stream();
    let mut text = Vec::new();
    for chunk in chunks {
        text.extend_from_slice(&stream.feed(chunk, false));
    }
    text.extend_from_slice(&stream.feed(b"", true));
    (text, stream.errors > 0)
}

/// Lines are found from the end in the bytes, and from the beginning in the letters: they must be as
/// many.
fn check_line_ends(encoding: Encoding, bytes: &[u8], text: &str) {
    for terminator in [b'\n', b'\r'] {
        let in_bytes = encoding.line_ends_backwards(bytes, terminator).count();
        let in_text = text.bytes().filter(|byte| *byte == terminator).count();
        assert_eq!(in_bytes, in_text, "ends of lines by {terminator:#x}");
    }
}
