//! Limits of calls. Every input and output has one.

use std::time::Duration;

/// Limits of a call's input, output and time.
///
/// ```
/// let limits = toolcrib::Limits { reply_chars: 20_000, ..Default::default() };
/// # let _ = limits;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Characters in a reply. Common clients truncate at 40,000 or soon after, within a line.
    pub reply_chars: usize,
    /// Characters shown of one line.
    pub line_chars: usize,
    /// Bytes of a file that is loaded into memory for editing.
    pub edit_bytes: u64,
    /// Bytes of a file that is read completely before a part of it is shown: for its hash, encoding and line
    /// endings. For a larger file, the beginning decides.
    pub look_bytes: u64,
    /// Bytes of a large file that are read to count lines.
    pub count_bytes: u64,
    /// Bytes of an image file.
    pub picture_bytes: u64,
    /// Pixels on the longer side of an image in a reply. Larger images are scaled down.
    pub picture_side: u32,
    /// Bytes of an image in a reply. Base64 adds a third, and common models reject the whole conversation above
    /// 5 MB.
    pub shown_picture_bytes: usize,
    /// Pixels of an image that is decoded, before scaling.
    pub picture_pixels: u64,
    /// Bytes of a PDF.
    pub pdf_bytes: u64,
    /// Bytes of a notebook.
    pub notebook_bytes: u64,
    /// Bytes of a file in a search of many files. For a file named in the call, `edit_bytes` applies.
    pub search_bytes: u64,
    /// Time limit of a search, after which it returns partial results. Common clients give up after a minute.
    pub search_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            reply_chars: 40_000,
            line_chars: 2_000,
            edit_bytes: 256 << 20,
            look_bytes: 16 << 20,
            count_bytes: 2 << 30,
            picture_bytes: 10_000_000,
            picture_side: 2_000,
            shown_picture_bytes: 3_750_000,
            picture_pixels: 50_000_000,
            pdf_bytes: 50_000_000,
            notebook_bytes: 20_000_000,
            search_bytes: 10 << 20,
            search_time: Duration::from_secs(20),
        }
    }
}
