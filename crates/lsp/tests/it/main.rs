//! The client against the bytes of servers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod any_bytes;
mod conversation;
