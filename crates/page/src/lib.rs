//! The page for people: it shows what agents do, answers their questions and takes changes back.
//!
//! One process per user serves it on loopback. The process joins the sockets of all running servers and reads the
//! logs. It calls no tool: it can list, answer and undo. Servers do not depend on it.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the page listens on loopback, looks up who connects to it, and starts the user's own command"
)]

mod api_error;
mod assets;
mod calls;
mod changes;
mod event_stream;
mod head_checks;
mod later_records;
mod live;
mod logged_call;
mod monitors;
mod notify;
mod operator;
mod peer_user;
mod query;
mod questions;
mod refusals;
mod response;
mod routes;
mod rule_preview;
mod rules;
mod serve;
mod server;
mod sign_in;
mod visible_browsers;
mod workspaces;

pub use operator::{ExplainedSubject, Operator, RulesNotReplaced};
pub use serve::{Addresses, Page, PageOptions};
