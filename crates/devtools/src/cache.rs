//! Data that tasks keep between runs.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::metadata;

/// The directory of this data. It is in the target directory, so `cargo clean`
/// removes it.
pub fn directory() -> Result<PathBuf> {
    let metadata = metadata::of_members()?;
    let target = metadata::text(&metadata, "target_directory")?;
    Ok(Path::new(target).join("xtask"))
}
