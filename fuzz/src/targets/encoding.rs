//! Decoding and encoding: encoding gives the same bytes back, and decoding in chunks gives the same text.

use toolcrib_text::{Detector, Encoding, TextProperties};

/// The first byte is the length of the chunks.
pub(crate) fn encoding(input: &[u8]) -> String {
    let Some((&size, bytes)) = input.split_first() else { return "empty".to_owned() };
    let chunks = || bytes.chunks(1 + usize::from(size) % 64);
    let encoding = Encoding::of(bytes);

    let mut properties = TextProperties::default();
    let mut detector = Detector::default();
    for chunk in chunks() {
        properties.feed(chunk);
        detector.feed(chunk);
    }
    properties.finish();
    assert_eq!(
        properties,
        TextProperties::of(bytes),
        "properties in chunks equal those of the whole"
    );
    assert_eq!(
        detector.finish(&properties),
        encoding,
        "the encoding in chunks equals that of the whole"
    );

    let (whole, whole_has_errors) = stream(encoding, std::iter::once(bytes));
    let (streamed, has_errors) = stream(encoding, chunks());
    assert_eq!(streamed, whole, "text in chunks equals that of the whole");
    assert_eq!(has_errors, whole_has_errors);

    let name = encoding.name();
    let Some(decoded) = encoding.decode(bytes) else { return format!("{name}, not decoded") };
    if encoding.is_utf8() {
        assert_eq!(decoded, bytes, "UTF-8 is not changed");
        return name.to_owned();
    }
    let text = std::str::from_utf8(&decoded).expect("decoded text is UTF-8");
    assert_eq!(encoding.encode(text).as_deref(), Ok(bytes), "encoding gives the same bytes");
    assert_eq!(streamed, text.as_bytes(), "streaming gives the same text as decoding at once");
    assert!(!has_errors, "text that can be encoded back had no errors");
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

/// Searching line ends backwards in the bytes finds as many as counting them in the text.
fn check_line_ends(encoding: Encoding, bytes: &[u8], text: &str) {
    for terminator in [b'\n', b'\r'] {
        let in_bytes = encoding.line_ends_backwards(bytes, terminator).count();
        let in_text = text.bytes().filter(|byte| *byte == terminator).count();
        assert_eq!(in_bytes, in_text, "line ends by {terminator:#x}");
    }
}
