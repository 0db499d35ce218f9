//! Decodes files that are not plain UTF-8 for a search, as Read does.

use std::borrow::Cow;

use toolcrib_search::{ChunkDecoder, Decoded, Decoder};
use toolcrib_text::{Detector, TextProperties, Transcoder};

pub(crate) struct AsRead;

impl Decoder for AsRead {
    fn read<'b>(&self, bytes: &'b [u8]) -> Decoded<'b> {
        let (survey, mut detector) = (TextProperties::of(bytes), Detector::default());
        detector.feed(bytes);
        if survey.looks_binary() && !detector.may_be_utf16() {
            return Decoded::Binary;
        }
        let encoding = detector.finish(&survey);
        if encoding.is_utf8() {
            return Decoded::Text(with_line_feeds(bytes.into()), None);
        }
        let mut stream = encoding.stream();
        let mut letters = stream.feed(bytes, false).into_owned();
        letters.extend_from_slice(&stream.feed(b"", true));
        Decoded::Text(with_line_feeds(letters.into()), Some(encoding.name()))
    }

    fn pieces(&self, beginning: &[u8]) -> Option<Box<dyn ChunkDecoder>> {
        let (survey, mut detector) = (TextProperties::of(beginning), Detector::default());
        detector.feed(beginning);
        if survey.looks_binary() && !detector.may_be_utf16() {
            return None;
        }
        let encoding = detector.finish(&survey);
        let letters = encoding.stream().feed(beginning, false).into_owned();
        Some(Box::new(InPieces {
            stream: encoding.stream(),
            encoding: (!encoding.is_utf8()).then(|| encoding.name()),
            ends_with_cr: ends_with_cr(&letters),
        }))
    }
}

/// Decodes a large file in chunks. The beginning determines the encoding and the line ends, as in Read.
struct InPieces {
    stream: Transcoder,
    encoding: Option<&'static str>,
    ends_with_cr: bool,
}

impl ChunkDecoder for InPieces {
    fn encoding(&self) -> Option<&'static str> {
        self.encoding
    }

    fn feed<'b>(&mut self, bytes: &'b [u8], is_last: bool) -> Cow<'b, [u8]> {
        let mut letters = self.stream.feed(bytes, is_last);
        if self.ends_with_cr {
            cr_to_lf(&mut letters);
        }
        letters
    }
}

/// Converts `\r` to `\n` if no line ends with `\n`.
fn with_line_feeds(mut letters: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if ends_with_cr(&letters) {
        cr_to_lf(&mut letters);
    }
    letters
}

fn ends_with_cr(letters: &[u8]) -> bool {
    !letters.contains(&b'\n') && letters.contains(&b'\r')
}

fn cr_to_lf(letters: &mut Cow<'_, [u8]>) {
    for byte in letters.to_mut().iter_mut().filter(|byte| **byte == b'\r') {
        *byte = b'\n';
    }
}
