//! Hosts by name: which hosts the commands of a session reach, and what replies say about it.
//!
//! `exec` makes the sockets in the session's network namespace, and `net` serves them. This module connects the two
//! ([`gateway`]), decides by the rules and the answers of the session ([`session_connections`]), asks the approver while
//! a connection waits ([`asking`]), and words the result ([`notes`]).

pub(crate) mod asking;
mod gateway;
mod log;
pub(crate) mod notes;
mod session_connections;

pub use self::log::ConnectionEntry;
pub(crate) use self::session_connections::SessionConnections;
