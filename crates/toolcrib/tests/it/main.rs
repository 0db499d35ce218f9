//! The library through its public door.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests look at the disk from outside, start programs, and fail by panicking"
)]

mod cases;
mod large_files;
mod large_patches;
mod own_tools;
mod permission;
mod properties;
mod records;
mod sandboxed;
mod sessions;
mod shells;
mod silence;
