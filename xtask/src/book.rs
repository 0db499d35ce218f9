//! `cargo xtask book`: renders docs/ as a book with mdBook.

use std::process::Command;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{peers, process, workspace};

pub(crate) fn run() -> Result<()> {
    build()?;
    println!("target/book/index.html");
    Ok(())
}

/// Fails if a page is missing from the book or cannot be rendered.
pub(crate) fn build() -> Result<()> {
    let mdbook = peers::mdbook()?;
    process::run(Command::new(mdbook).arg("build").current_dir(workspace::root()))
}
