//! Reads files that are not text: notebooks, images and PDFs.
//!
//! There is no I/O. The bytes are untrusted, and decoders are a common source of vulnerabilities. The cost of
//! a notebook is bounded by its size. Images and PDFs are small files that may cost much memory and time, so
//! a caller decodes untrusted ones in a process with limits.

mod file_kind;
mod image;
mod notebook;
mod pdf;

pub use file_kind::{Kind, kind_of};
pub use image::{ImageError, ImageLimits, Picture, PictureFormat, picture};
pub use notebook::{Cell, CellType, Edited, Notebook, NotebookError, Position, Rendered};
pub use pdf::{MAX_PDF_PAGES, PdfError, PdfPage, PdfText, count_pdf_pages, read_pdf};
