//! Where things are: the root of the repository, and what cargo builds.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::metadata;

/// The root of the repository: the directory above this crate.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// For what tasks keep between runs. Under the target directory, so `cargo clean` removes it.
pub(crate) fn cache_directory() -> Result<PathBuf> {
    let metadata = metadata::of_members()?;
    let target = metadata::text(&metadata, "target_directory")?;
    Ok(Path::new(target).join("xtask"))
}
