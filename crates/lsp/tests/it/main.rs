//! The client against the bytes of servers.

mod any_bytes;
mod conversation;
