//! Decodes files that are not plain UTF-8 for a search, as Read does.

use std::borrow::Cow;

use toolcrib_search::{ChunkDecoder, Decoded, Decoder};
use toolcrib_text::{Detector, TextProperties, Transcoder};

pub(crate) struct SearchDecoder;

impl Decoder for SearchDecoder {
    fn read<'b>(&self, bytes: &'b [u8]) -> Decoded<'b> {
        let (properties, mut detector) = (TextProperties::of(bytes), Detector::default());
        detector.feed(bytes);
        if properties.looks_binary() && !detector.may_be_utf16() {
            return Decoded::Binary;
        }
        let encoding = detector.finish(&properties);
        if encoding.is_utf8() {
            return Decoded::Text(with_line_feeds(bytes.into()), None);
        }
        let mut stream = encoding.stream();
        let mut text = stream.feed(bytes, false).into_owned();
        text.extend_from_slice(&stream.feed(b"", true));
        Decoded::Text(with_line_feeds(text.into()), Some(encoding.name()))
    }

    fn pieces(&self, beginning: &[u8]) -> Option<Box<dyn ChunkDecoder>> {
        let (properties, mut detector) = (TextProperties::of(beginning), Detector::default());
        detector.feed(beginning);
        if properties.looks_binary() && !detector.may_be_utf16() {
            return None;
        }
        let encoding = detector.finish(&properties);
        let text = encoding.stream().feed(beginning, false).into_owned();
        Some(Box::new(StreamingDecoder {
            stream: encoding.stream(),
            encoding: (!encoding.is_utf8()).then(|| encoding.name()),
            ends_with_cr: ends_with_cr(&text),
        }))
    }
}

/// Decodes a large file in chunks. The beginning determines the encoding and the line ends, as in Read.
struct StreamingDecoder {
    stream: Transcoder,
    encoding: Option<&'static str>,
    ends_with_cr: bool,
}

impl ChunkDecoder for StreamingDecoder {
    fn encoding(&self) -> Option<&'static str> {
        self.encoding
    }

    fn feed<'b>(&mut self, bytes: &'b [u8], is_last: bool) -> Cow<'b, [u8]> {
        let mut text = self.stream.feed(bytes, is_last);
        if self.ends_with_cr {
            cr_to_lf(&mut text);
        }
        text
    }
}

/// Converts `\r` to `\n` if no line ends with `\n`.
fn with_line_feeds(mut text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if ends_with_cr(&text) {
        cr_to_lf(&mut text);
    }
    text
}

fn ends_with_cr(text: &[u8]) -> bool {
    !text.contains(&b'\n') && text.contains(&b'\r')
}

fn cr_to_lf(text: &mut Cow<'_, [u8]>) {
    for byte in text.to_mut().iter_mut().filter(|byte| **byte == b'\r') {
        *byte = b'\n';
    }
}
