//! Paths of the repository.

use std::path::Path;

/// The root of the repository. This crate is two levels below it.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}
