//! Connects commands to hosts by name, as far as a policy allows.
//!
//! The parsers are pure: bytes in, values out. They read what an untrusted program sends, so each of them
//! bounds what it accepts: [`dns`] reads DNS queries and writes replies, [`client_hello`] finds the server
//! name of a TLS handshake, and [`http_request`] the host of an HTTP request. [`AddressClass`] tells public
//! addresses from others.

mod address_class;
pub mod client_hello;
pub mod dns;
mod host;
pub mod http_request;

pub use address_class::AddressClass;
pub use host::Host;
