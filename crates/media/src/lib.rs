//! What is in files that are not text: bytes in, pages, cells and pixels out.
//!
//! No I/O lives here. The bytes come from anybody, and decoders are where programs get broken: nothing
//! here bounds the memory or the time that a hostile file costs, so a caller who does not know where a
//! file comes from runs this in a process with limits.

mod image;
mod kind;
mod pdf;

pub use image::{ImageError, ImageLimits, Picture, picture};
pub use kind::{Kind, kind_of};
pub use pdf::{MAX_PDF_PAGES, PdfError, PdfPage, PdfText, count_pdf_pages, read_pdf};
