//! The bounds of a call. Nothing without one reaches the model or the memory.

use std::time::Duration;

/// How much a call may take in and give out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Characters in a reply. Common clients cut at 40,000 or soon after, and not at a line's end.
    pub reply_chars: usize,
    /// Characters shown of one line.
    pub line_chars: usize,
    /// Bytes of a file that is held in memory as a whole, to edit it.
    pub edit_bytes: u64,
    /// Bytes of a file that is looked through as a whole to read a part of it: for its hash, and for
    /// what its lines do not show. Of a larger one, the beginning tells.
    pub look_bytes: u64,
    /// Bytes of a large file that are read to count its lines.
    pub count_bytes: u64,
    /// Bytes of a picture that is read.
    pub picture_bytes: u64,
    /// Pixels on the longer side of a picture in a reply; a larger one is made smaller.
    pub picture_side: u32,
    /// Bytes of a picture in a reply. In base64 it is a third more, and 5 MB is where common models
    /// refuse the whole conversation.
    pub shown_picture_bytes: usize,
    /// Pixels of a picture that is decoded, whatever it is made to fit in.
    pub picture_pixels: u64,
    /// Bytes of a PDF that is read.
    pub pdf_bytes: u64,
    /// Bytes of a notebook that is read.
    pub notebook_bytes: u64,
    /// Bytes of a file that a search over many looks into; one that is named may have `edit_bytes`.
    pub search_bytes: u64,
    /// How long a search takes at most; then it answers what it has. Common clients give up after a minute.
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
