//! Connects commands to hosts by name, as far as a policy allows.
//!
//! # Theory of operation
//!
//! Commands run in a network namespace in which one block of addresses is local ([`SyntheticBlock`]). A
//! [`NamespaceGateway`] answers DNS queries there: each name gets an address of the block, and nothing is
//! forwarded. Before a command connects to such an address, the gateway listens on it with a socket that was
//! made inside the namespace, so that the kernel completes the connection. The gateway accepts it and knows
//! the name and the port. It asks the [`ConnectionPolicy`], resolves the name outside, checks the address,
//! connects to exactly that address, compares the server name of TLS or the host of HTTP with the name, and
//! copies bytes. A refusal is sent so that programs print it. Where commands have no network namespace, a
//! [`ProxyGateway`] does the same for programs that use a proxy.
//!
//! The parsers are pure: bytes in, values out. They read what an untrusted program sends, so each of them
//! bounds what it accepts: [`dns`] reads DNS queries and writes replies, [`client_hello`] finds the server
//! name of a TLS handshake, and [`http_request`] the host of an HTTP request. [`AddressClass`] tells public
//! addresses from others. [`RequestPath`] has the one spelling of a request's path.
//!
//! [`post`] and [`get`] make requests of this program itself to servers that the user configured, `http_connection.rs` many on one
//! connection; `server_stream.rs` connects to one.
//!
//! With the feature `inspect`, the gateway reads the requests of some connections (`inspect.rs`).

#![allow(
    clippy::disallowed_types,
    reason = "the lints send code that uses the network to this crate"
)]

mod address_class;
mod backoff;
mod check_first_bytes;
pub mod client_hello;
mod connection_policy;
mod connection_sources;
mod dial;
pub mod dns;
mod dns_server;
mod gateway;
mod host;
#[cfg(feature = "inspect")]
mod http_connection;
mod http_get;
mod http_post;
pub mod http_request;
#[cfg(feature = "inspect")]
mod inspect;
mod job_connections;
mod local_route;
mod own_connection;
mod proxy_request;
mod refusal_reply;
mod relay;
mod request_path;
mod resolve;
mod serve_connection;
#[cfg(feature = "inspect")]
mod server_authorities;
mod server_dial;
#[cfg(feature = "inspect")]
mod server_stream;
mod synthetic_addresses;
mod upstream_proxy;

pub use address_class::AddressClass;
pub use backoff::Backoff;
pub use connection_policy::{
    AddressRuling, Attempt, ConnectionPolicy, ConnectionRecord, Outcome, RequestLine,
    RequestRefusal, RequestRuling, Ruling,
};
pub use gateway::{ConnectError, NamespaceGateway, NamespaceSockets, ProxyGateway};
pub use host::Host;
#[cfg(feature = "inspect")]
pub use http_connection::{HttpAnswer, HttpConnection, HttpRequest};
pub use http_get::{HttpGet, get};
pub use http_post::{HttpPost, HttpResponse, post};
#[cfg(feature = "inspect")]
pub use inspect::{Credential, Inspector, SystemTrust, TrustedFile};
pub use own_connection::HttpTarget;
pub use request_path::RequestPath;
pub use resolve::{ProxiedResolver, Resolver, SystemResolver};
#[cfg(feature = "inspect")]
pub use server_stream::{ServerAddress, ServerStream};
pub use synthetic_addresses::SyntheticBlock;
pub use upstream_proxy::{UpstreamProxies, UpstreamProxy};
