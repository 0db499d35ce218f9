//! The parts of HTTP servers on loopback that are the same for all of them: connections, heads, tokens and bodies.

mod body;
mod body_budget;
mod connections;
mod headers;
mod refusal;
mod serve_connection;
mod strict_heads;
mod token;

pub use body::{BodyLimit, BodyWith, read_body};
pub use body_budget::{BodyBudget, ReservedBytes};
pub use connections::{Connection, Connections, Full, UnfinishedRequest};
pub use headers::{FETCH_SITE, bearer, is_json, is_repeated};
pub use refusal::Refusal;
pub use serve_connection::serve_connection;
pub use strict_heads::{NextHead, StrictHeads};
pub use token::{Token, TokenError, TokenHash};
