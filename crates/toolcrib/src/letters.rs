//! The letters of a file that is not plain UTF-8, for a search: as Read would show them.

use std::borrow::Cow;

use toolcrib_search::{Letters, Reading};
use toolcrib_text::{Detector, Survey};

/// Reads what Read reads.
pub(crate) struct AsRead;

impl Letters for AsRead {
    fn read<'b>(&self, bytes: &'b [u8]) -> Reading<'b> {
        let (survey, mut detector) = (Survey::of(bytes), Detector::default());
        detector.feed(bytes);
        if survey.looks_binary() && !detector.may_be_utf16() {
            return Reading::Binary;
        }
        let encoding = detector.finish(&survey);
        if encoding.is_utf8() {
            return Reading::Text(with_line_feeds(bytes.into()), None);
        }
        let mut stream = encoding.stream();
        let mut letters = stream.feed(bytes, false).into_owned();
        letters.extend_from_slice(&stream.feed(b"", true));
        Reading::Text(with_line_feeds(letters.into()), Some(encoding.name()))
    }
}

/// Where no line ends with `\n`, `\r` ends one.
fn with_line_feeds(mut letters: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if !letters.contains(&b'\n') && letters.contains(&b'\r') {
        for byte in letters.to_mut().iter_mut().filter(|byte| **byte == b'\r') {
            *byte = b'\n';
        }
    }
    letters
}
