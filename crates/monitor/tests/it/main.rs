//! Tests with real sockets.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests look at the disk and at sockets from outside, and fail by panicking"
)]

mod answers;
mod several_questions;
mod sockets;
