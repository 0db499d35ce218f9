//! The client against the bytes of servers.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod any_bytes;
mod conversation;
