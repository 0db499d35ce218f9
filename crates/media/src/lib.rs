//! What is in files that are not text: bytes in, pages, cells and pixels out.
//!
//! No I/O lives here. The bytes come from anybody, and decoders are where programs get broken: notebooks
//! are bounded by what they are given; pictures and PDFs are small files that may cost much memory and time,
//! so a caller who does not know where one comes from decodes it in a process with limits.

mod file_kind;
mod image;
mod notebook;
mod pdf;

pub use file_kind::{Kind, kind_of};
pub use image::{ImageError, ImageLimits, Picture, PictureFormat, picture};
pub use notebook::{Cell, CellType, Edited, Notebook, NotebookError, Position, Rendered};
pub use pdf::{MAX_PDF_PAGES, PdfError, PdfPage, PdfText, count_pdf_pages, read_pdf};
