//! The parts of HTTP servers that are the same for all of them: connections, heads, tokens and bodies, and with the feature
//! `tls` encryption.

mod body;
mod body_budget;
mod connections;
mod headers;
mod refusal;
mod serve_connection;
#[cfg(feature = "tls")]
mod server_tls;
mod strict_heads;
mod token;

pub use body::{BodyLimit, BodyWith, read_body};
pub use body_budget::{BodyBudget, ReservedBytes};
pub use connections::{Connection, Connections, Full, UnfinishedRequest};
pub use headers::{FETCH_SITE, bearer, is_json, is_repeated};
pub use refusal::Refusal;
pub use serve_connection::serve_connection;
#[cfg(feature = "http2")]
pub use serve_connection::{Http2Limits, serve_http2_connection};
#[cfg(feature = "tls")]
pub use server_tls::ServerTls;
pub use strict_heads::{NextHead, StrictHeads};
pub use token::{Token, TokenError, TokenHash};
