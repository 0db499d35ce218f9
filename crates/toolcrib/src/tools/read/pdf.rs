//! Reads the text of a PDF by pages.

use toolcrib_media::{PdfError, PdfPage, PdfText};
use toolcrib_text::visible;

use super::line_page::FOOTER_CHARS;
use crate::cx::Cx;
use crate::cx::OpenFile;
use crate::error::{Error, ErrorKind};
use crate::helper::{acquire_decoder, pdf_text};
use crate::phrases::{counted, range_text};
use crate::reply::Reply;
use crate::tools::invisible_notes::InvisibleCharacters;

/// Number of pages to read by default.
const DEFAULT_PAGES: u32 = 20;

/// Hint about a PDF that cannot be read.
const DAMAGED: &str = "It is damaged, or it is not a PDF.";

/// Reads pages of a PDF.
pub(super) fn read(cx: &Cx<'_>, file: &OpenFile, pages: Option<&str>) -> Result<Reply, Error> {
    let (first, last) = match pages {
        None => (1, DEFAULT_PAGES),
        Some(pages) => range(pages).ok_or_else(|| no_range(pages))?,
    };
    let _place = acquire_decoder(cx)?;
    let bytes = file.read_all(cx.limits().pdf_bytes).map_err(|error| {
        error.hint("PDFs of this size are not supported. Split it and read a part.")
    })?;
    let chars = cx.limits().reply_chars.saturating_sub(FOOTER_CHARS);
    let text =
        pdf_text(cx, &bytes, (first, last), chars)?.map_err(|error| unreadable(file, &error))?;
    if text.page_count == 0 {
        let message = format!("{}: the PDF has no pages that could be found", file.shown());
        return Err(Error::new(ErrorKind::Unsupported, message).hint(DAMAGED));
    }
    if text.pages.is_empty() {
        let message = format!(
            "{} has {}; there is no page {first}",
            file.shown(),
            counted(text.page_count.into(), "page")
        );
        return Err(Error::invalid(message)
            .hint(format!("Use pages from 1 to {}.", text.page_count))
            .with("total_pages", text.page_count));
    }
    Ok(reply(file, &text, first, last))
}

/// Parses "3", "3-7" or "3-" (to the end).
fn range(pages: &str) -> Option<(u32, u32)> {
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|&number| number > 0);
    let (first, last) = match pages.split_once('-') {
        None => (number(pages)?, number(pages)?),
        Some((first, "")) => (number(first)?, u32::MAX),
        Some((first, last)) => (number(first)?, number(last)?),
    };
    (first <= last).then_some((first, last))
}

fn reply(file: &OpenFile, text: &PdfText, first: u32, last: u32) -> Reply {
    let total = text.page_count;
    let read_to = text.pages.last().map_or(first, |page| page.number);
    let mut output = format!("[PDF, {}]\n", counted(total.into(), "page"));
    output.extend(text.pages.iter().map(show));
    let hidden = InvisibleCharacters::of_text(&output);
    output += &hidden.note();
    if text.cut {
        // The truncated page is offered again, with the room of a whole reply.
        let next = if read_to > first { read_to } else { read_to + 1 };
        output += &format!(
            "[cut in page {read_to}: the reply is full; for more, pages: \"{next}-{}\"]\n",
            last.min(total).max(next)
        );
    } else if read_to < total {
        let next = read_to + 1;
        let to = next.saturating_add(DEFAULT_PAGES - 1).min(total);
        let range = range_text("page", first, read_to);
        output += &format!("[{range} of {total}; for more, pages: \"{next}-{to}\"]\n");
    }
    hidden
        .facts(Reply::new(output))
        .with("file_path", file.shown())
        .with("total_pages", total)
        .with("first_page", first)
        .with("pages_read", text.pages.len())
        .with("truncated", text.cut || read_to < total)
}

fn show(page: &PdfPage) -> String {
    let PdfPage { number, text } = page;
    if text.trim().is_empty() {
        format!("--- page {number}: no text ---\n")
    } else {
        format!("--- page {number} ---\n{}\n", visible(text.as_bytes()))
    }
}

fn no_range(pages: &str) -> Error {
    Error::invalid(format!("`pages`: {pages:?} is not a range of pages"))
        .hint("Use \"3\" for one page, \"3-7\" for several, \"3-\" for page 3 and all after it.")
}

fn unreadable(file: &OpenFile, error: &PdfError) -> Error {
    let hint = match error {
        PdfError::Encrypted => "Passwords are not supported. Make a copy without one.",
        PdfError::NotPdf | PdfError::Broken { .. } => DAMAGED,
    };
    Error::new(ErrorKind::Unsupported, format!("{}: {error}", file.shown())).hint(hint)
}
