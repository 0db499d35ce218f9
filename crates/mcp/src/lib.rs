//! The tools over the Model Context Protocol: the only crate that knows MCP, and, with the command line,
//! the only one that knows async.
//!
//! Both eras of the protocol are spoken, the one that begins with `initialize` and the one without a
//! session. Nothing waits for a slow call: it runs on a thread of its own, or on one that another relieves; how
//! many run at once is bounded.

mod approve;
mod client_session;
mod fast_parse;
mod handler;
mod http;
mod instructions;
mod leader_follower;
mod ndjson;
mod progress;
mod protocol_types;
mod request_state;
mod running_calls;
mod stdio;
mod tool_request;

pub use handler::{Handler, ServeOptions};
pub use http::{
    Guard, HttpOptions, Listener, Refusal, Token, TokenError, serve_handler, serve_http,
};
pub use stdio::{ServeError, serve_socket, serve_stdio};
