//! Extracts the text of a PDF, page by page.
//!
//! hayro parses the file and interprets the drawing operators of each page. The glyphs that it draws are
//! assembled here into words and lines, by their positions on the page and in drawing order. That order is
//! nearly always the reading order, also with columns.

mod cjk_collections;
mod glyph_text;
mod line;
mod page;
mod right_to_left;

use std::fmt;
use std::ops::RangeInclusive;

use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use hayro_interpret::{InterpreterCache, InterpreterSettings};
use serde::{Deserialize, Serialize};

use cjk_collections::Collections;

/// Maximum number of pages of one call: more text than any model is given at once, and a bound for a file
/// that claims millions.
pub const MAX_PDF_PAGES: u32 = 1_000;

/// How far into a file its `%PDF-` may be: mail gateways insert lines before it, and readers allow this.
const MAX_HEADER_OFFSET: usize = 1_024;

/// The text of a PDF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfText {
    /// Number of pages of the file.
    pub page_count: u32,
    /// The pages that were read, in order, without pages that the file does not have.
    pub pages: Vec<PdfPage>,
    /// Whether requested text is missing: the end of the last page, or pages after it.
    pub cut: bool,
}

/// One page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfPage {
    /// The position in the file, from 1, independent of printed page numbers.
    pub number: u32,
    /// Its lines, without a final newline. Empty if there is no text on it: a scan, a drawing.
    pub text: String,
}

/// Why the text cannot be extracted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PdfError {
    /// It needs a password.
    Encrypted,
    /// It is not a PDF.
    NotPdf,
    /// It is a PDF that cannot be read.
    Broken {
        /// The reason, to follow "the PDF".
        why: String,
    },
}

impl fmt::Display for PdfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PdfError::Encrypted => f.write_str("the PDF is encrypted and needs a password"),
            PdfError::NotPdf => f.write_str("this is not a PDF"),
            PdfError::Broken { why } => write!(f, "the PDF {why}"),
        }
    }
}

impl std::error::Error for PdfError {}

/// Extracts the text of pages, numbered from 1, at most `max_chars` characters in total. A file that is
/// encrypted with an empty password opens normally, as in other readers.
pub fn read_pdf(
    bytes: Vec<u8>,
    pages: RangeInclusive<u32>,
    max_chars: usize,
) -> Result<PdfText, PdfError> {
    let pdf = open(bytes)?;
    let cache = InterpreterCache::new();
    let settings = InterpreterSettings::default();
    let mut collections = Collections::of(&pdf);
    let page_count = count(&pdf);
    let first = (*pages.start()).max(1);
    let last = (*pages.end()).min(page_count);
    let last_read = last.min(first.saturating_add(MAX_PDF_PAGES - 1));
    let mut text = PdfText { page_count, pages: Vec::new(), cut: last_read < last };
    let mut chars_left = max_chars;
    let wanted = pdf.pages().iter().zip(1..=last_read).skip(first as usize - 1);
    for (page, number) in wanted {
        let read = page::read(page, &cache, &settings, &mut collections, chars_left);
        chars_left -= read.text.chars().count();
        text.pages.push(PdfPage { number, text: read.text });
        if read.cut {
            text.cut = true;
            break;
        }
    }
    Ok(text)
}

/// The number of pages, at a fraction of the cost of reading them.
pub fn count_pdf_pages(bytes: Vec<u8>) -> Result<u32, PdfError> {
    open(bytes).map(|pdf| count(&pdf))
}

fn open(bytes: Vec<u8>) -> Result<Pdf, PdfError> {
    let head = bytes.get(..MAX_HEADER_OFFSET).unwrap_or(&bytes);
    let has_header = head.windows(5).any(|window| window == b"%PDF-");
    let broken = |why: &str| PdfError::Broken { why: why.to_owned() };
    Pdf::new(bytes).map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => PdfError::Encrypted,
        LoadPdfError::Decryption(_) => broken("has an unsupported encryption"),
        LoadPdfError::Invalid if has_header => broken("has no readable pages"),
        LoadPdfError::Invalid => PdfError::NotPdf,
    })
}

fn count(pdf: &Pdf) -> u32 {
    u32::try_from(pdf.pages().len()).unwrap_or(u32::MAX)
}
