//! Decoding of text, which the caller supplies.

use std::borrow::Cow;

/// Decodes text of other encodings.
pub trait Decoder: Sync {
    /// Decodes bytes that are not plain UTF-8 with lines that end in `\n`.
    fn read<'b>(&self, bytes: &'b [u8]) -> Decoded<'b>;

    /// Returns a decoder for a large text that begins with `beginning`. `None` if it is not text.
    fn pieces(&self, beginning: &[u8]) -> Option<Box<dyn ChunkDecoder>>;
}

/// Decodes a text chunk by chunk.
pub trait ChunkDecoder {
    /// The name of the encoding, if it is not UTF-8.
    fn encoding(&self) -> Option<&'static str>;

    /// Decodes the next chunk to UTF-8 as far as possible, with lines that end in `\n`.
    fn feed<'b>(&mut self, bytes: &'b [u8], is_last: bool) -> Cow<'b, [u8]>;
}

/// The result of decoding.
#[derive(Debug)]
pub enum Decoded<'b> {
    /// Text: UTF-8 as far as possible, with lines that end in `\n`, and the name of the encoding if it is not
    /// UTF-8.
    Text(Cow<'b, [u8]>, Option<&'static str>),
    /// Not text.
    Binary,
}
