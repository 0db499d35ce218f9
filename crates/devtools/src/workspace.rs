//! Paths of the repository.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::metadata;

/// The root of the repository. This crate is two levels below it.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// The directory for data that tasks keep between runs. It is in the target directory, so `cargo clean`
/// removes it.
pub fn cache_directory() -> Result<PathBuf> {
    let metadata = metadata::of_members()?;
    let target = metadata::text(&metadata, "target_directory")?;
    Ok(Path::new(target).join("xtask"))
}
