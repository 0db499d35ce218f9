//! The tools over the Model Context Protocol. This is the only crate that depends on MCP and, besides the command
//! line, the only one with async code.
//!
//! It supports both protocol generations: with `initialize`, and without a session. A slow call blocks nothing: it
//! runs on its own thread, or another thread takes over the messages. The number of concurrent calls is bounded.

mod approve;
mod call_origin;
mod caller;
mod client_session;
mod fast_parse;
mod handler;
mod http;
mod instructions;
mod leader_follower;
mod ndjson;
mod progress;
mod running_calls;
mod scope;
mod sealed_request_state;
mod serve_error;
mod stdio;
mod to_protocol;
mod tool_request;

pub use caller::Caller;
pub use handler::{Handler, ServeOptions};
pub use http::{
    Access, Guard, HttpOptions, Identify, Identifying, Listener, OpenedWorkspace, PublicUrl,
    Unidentified, WorkspaceId, WorkspaceSource, WorkspacesOptions, serve_handler, serve_http,
    serve_workspaces,
};
pub use scope::{Scope, Scopes};
pub use serve_error::ServeError;
pub use stdio::{serve_socket, serve_stdio};
#[cfg(feature = "tls")]
pub use toolcrib_http::ServerTls;
pub use toolcrib_http::{Refusal, Token, TokenError, TokenHash};
