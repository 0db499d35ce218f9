//! What tests share: cases written as Markdown, and the doors they run through.
//!
//! A case is a page that a person can read: files before, calls, replies, files after, with prose
//! between that says why. The same pages run in-process, through `toolcrib call`, `toolcrib run` and
//! `toolcrib serve`, so that the doors cannot drift apart. `UPDATE=1` writes the real replies into
//! the pages; the diff is for review.
//!
//! For tests only: nothing of the product depends on this crate. Not for timing, races or signals;
//! those are tests in Rust.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    reason = "tests look at the disk and start processes from outside, and fail by panicking"
)]

mod case;
mod command_directory;
mod content;
mod document;
mod snapshot;
mod step;
mod transport;

pub use case::{Setup, play_cases, run_cases};
pub use command_directory::command_directory;
pub use content::{escape, unescape};
pub use document::{Document, Segment};
pub use transport::{CallDoor, Door, InProcessDoor, McpDoor, RunDoor};
