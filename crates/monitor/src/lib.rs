//! What a running server shows to the user's other programs, and which answers it accepts from them.
//!
//! A server has a [`Monitor`], which keeps the recent events, the running calls and the open questions, and serves them
//! on a socket that only the user can open. [`Client`] is the other end; [`Servers`] connects to all servers of the
//! user. No call waits for a client of the socket, unless it asks for approval.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the sockets are outside every workspace, and this crate makes and opens them"
)]

mod answers;
mod asking;
mod bounded_text;
mod client;
mod describe_question;
mod event_ring;
mod first_answer;
mod kept_commands;
mod line_io;
mod messages;
mod monitor;
mod observed_call;
mod open_question;
mod peer;
pub mod protocol;
mod question_list;
mod servers;
mod shared_questions;
mod shorten;
mod socket_directory;
mod socket_server;

pub use answers::described;
pub use asking::{Asked, Channel, NoChannel, SettledSignal};
pub use client::{Client, Notice};
pub use describe_question::question_digest;
pub use first_answer::{FirstAnswer, ViewerTimeouts};
pub use messages::{
    GivenAnswer, OutputPart, Request, RequestError, RequestErrorKind, RequestLine, ServerLine,
    State,
};
pub use monitor::{Monitor, RuleStore};
pub use open_question::SettleError;
pub use peer::require_same_user;
pub use servers::{ServerNotice, Servers};
pub use shared_questions::{
    SharedCall, SharedEntry, SharedOutcome, SharedQuestion, SharedQuestions, SharedState,
};
pub use socket_directory::{SocketPath, bind_private, sockets};
pub use socket_server::ListeningSocket;
