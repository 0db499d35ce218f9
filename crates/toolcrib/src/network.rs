//! Hosts by name: which hosts the commands of a session reach, and what replies say about it.
//!
//! `exec` makes the sockets in the session's network namespace, and `net` serves them. This module connects the two
//! ([`gateway`]), decides by the rules and the answers of the session ([`session_connections`]), and words the result
//! ([`notes`]). [`inspection`] decides on requests to some hosts. Calls ask the approver while a connection waits (`host_asker.rs`).

mod gateway;
#[cfg_attr(not(feature = "inspect"), path = "network/no_inspection.rs")]
mod inspection;
mod log;
pub(crate) mod notes;
mod session_connections;

pub(crate) use self::inspection::Inspection;
pub use self::log::ConnectionEntry;
pub(crate) use self::log::{ConnectionSink, connections};
pub(crate) use self::session_connections::{
    ANSWER_TIMEOUT, HostAnswer, HostQuestion, SessionConnections, SessionRules,
};
