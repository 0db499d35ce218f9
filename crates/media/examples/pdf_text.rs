//! Extracts the text of a PDF: reads the file from stdin, writes its pages to stdout with a form feed after
//! each.
//!
//! `cargo run --release -p toolcrib-media --example pdf_text < some.pdf`

#![allow(clippy::print_stderr, reason = "a program for people, and for the trial")]
#![allow(clippy::disallowed_methods, reason = "reads and writes what the shell gives it")]

use std::io::{Read, Write};
use std::process::ExitCode;

use toolcrib_media::{MAX_PDF_PAGES, read_pdf};

/// More than any document of the evaluation has.
const MAX_CHARS: usize = 20_000_000;

fn main() -> ExitCode {
    match text() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn text() -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let text = read_pdf(bytes, 1..=MAX_PDF_PAGES, MAX_CHARS)?;
    let mut out = std::io::stdout().lock();
    for page in text.pages {
        writeln!(out, "{}\u{c}", page.text)?;
    }
    Ok(())
}
