//! Detects the type of a file by its first bytes, never by its name.

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An image that can be shown, with its media type.
    Picture(&'static str),
    /// A PDF document.
    Pdf,
    /// Another known media type.
    Other(&'static str),
}

impl Kind {
    /// The media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Kind::Pdf => "application/pdf",
            Kind::Picture(media_type) | Kind::Other(media_type) => media_type,
        }
    }
}

/// The type of a file that begins with these bytes. `None` for text and for unknown types. Some hundred bytes
/// are enough.
pub fn kind_of(head: &[u8]) -> Option<Kind> {
    let media_type = infer::get(head)?.mime_type();
    Some(match media_type {
        // Two letters do not make a bitmap: four bytes of its header are always zero.
        "image/bmp" if head.get(6..10) != Some(&[0; 4]) => return None,
        "application/pdf" => Kind::Pdf,
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "image/bmp" => {
            Kind::Picture(media_type)
        }
        // These texts have a signature, but are read as text.
        "text/html" | "text/xml" | "text/x-shellscript" => return None,
        _ => Kind::Other(media_type),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_determine_the_type() {
        assert_eq!(kind_of(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), Some(Kind::Picture("image/png")));
        assert_eq!(kind_of(b"%PDF-1.7\n"), Some(Kind::Pdf));
        assert_eq!(kind_of(b"PK\x03\x04"), Some(Kind::Other("application/zip")));
        assert_eq!(kind_of(b"#!/bin/sh\necho\n"), None);
        assert_eq!(kind_of(b"<svg xmlns='http://www.w3.org/2000/svg'/>"), None);
        assert_eq!(kind_of(b"BM is how this sentence begins, and it is no picture."), None);
        assert_eq!(kind_of(b""), None);
    }
}
