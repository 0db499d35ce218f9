//! Detects the encoding of a command's output.
//!
//! Many programs may contribute to an output. One invalid file name, or a few bytes of data, do not change
//! the encoding of the rest. Such bytes are shown as escapes. Decoding everything with another encoding would
//! change all other characters too.

use crate::encoding::{Detector, Encoding};
use crate::text_properties::TextProperties;

/// The encoding of an output, given its beginning and its end.
pub fn output_encoding(parts: &[&[u8]]) -> Encoding {
    if is_mostly_utf8(parts) {
        return Encoding::UTF_8;
    }
    let (mut detector, mut properties) = (Detector::default(), TextProperties::default());
    for part in parts {
        detector.feed(part);
        properties.feed(part);
    }
    properties.finish();
    let found = detector.finish(&properties);
    // A few NULs among letters resemble UTF-16, which no program here writes to a pipe.
    if found.unit_bytes() == 1 { found } else { Encoding::UTF_8 }
}

/// Whether at least half of the lines with non-ASCII bytes are UTF-8. In another encoding, hardly any line is
/// valid UTF-8. The bytes FE and FF do not indicate another encoding.
fn is_mostly_utf8(parts: &[&[u8]]) -> bool {
    let (mut whole, mut broken) = (0_u64, 0_u64);
    for line in parts.iter().flat_map(|part| part.split(|&byte| byte == b'\n')) {
        if line.is_ascii() {
            continue;
        }
        let mut invalid = line.utf8_chunks().flat_map(|chunk| chunk.invalid().iter());
        let is_whole = !line.utf8_chunks().any(|chunk| !chunk.invalid().is_empty());
        whole += u64::from(is_whole);
        broken += u64::from(!is_whole && !invalid.all(|byte| matches!(byte, 0xfe | 0xff)));
    }
    whole >= broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_invalid_bytes_do_not_change_the_other_characters() {
        for output in [
            b"caf\xc3\xa9 ok\nbad \xff byte\n".as_slice(),
            b"bad_\xff\xfe.txt\n",
            b"\xe2\x9c\x93 passed\n\xb3\x81\xe0\x9a\xf1\x88\xa2\xc4",
            b"plain\n",
            b"",
        ] {
            assert!(output_encoding(&[output]).is_utf8(), "{output:?}");
        }
        // Cut in the middle of a character, as samples are.
        assert!(output_encoding(&[b"gr\xc3\xbc\xc3", b"\xbcn\n"]).is_utf8());
    }

    #[test]
    fn text_in_another_encoding_is_detected() {
        let text = "Où est la bibliothèque ?\nLes élèves étaient très fatigués.\n";
        let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        assert_eq!(output_encoding(&[&latin]).name(), "windows-1252");
        assert_eq!(output_encoding(&[b"ASCII, then \xb2\xe2\xca\xd4\n"]).name(), "GBK");
    }
}
