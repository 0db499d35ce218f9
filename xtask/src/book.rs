//! `cargo xtask book`: renders docs/ as a book with mdBook.

use std::process::Command;

use crate::error::{Result, no_arguments};
use crate::{peers, process, workspace};

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_arguments("book", arguments)?;
    build()?;
    println!("target/book/index.html");
    Ok(())
}

/// Fails if a page is missing from the book or cannot be rendered.
pub(crate) fn build() -> Result<()> {
    let mdbook = peers::mdbook()?;
    process::run(Command::new(mdbook).arg("build").current_dir(workspace::root()))
}
