//! The library through its public door.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests look at the disk from outside, start programs, and fail by panicking"
)]

mod bounded;
mod cases;
mod command_changes;
mod git_operations;
mod git_protection;
mod hidden;
mod large_files;
mod large_patches;
mod own_tools;
mod permission;
mod properties;
mod protected_names;
mod protected_undo;
mod records;
mod sandboxed;
mod sessions;
mod shells;
mod silence;

use std::path::{Path, PathBuf};

/// A program that is the helper of a runtime.
fn helper() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().and_then(Path::parent).unwrap().join("examples/helper")
}
