//! A client of language servers that asks for one thing: the errors of a text.
//!
//! It does no I/O. [`Client::receive`] takes the bytes that a server wrote, and [`Client::take_output`] returns the
//! bytes for it. An answer belongs to one version of one text: [`Client::answer`] returns none for any other version.
//! Everything that a server sends is bounded, and a server that breaks the protocol is an error.
//!
//! ```
//! use toolcrib_lsp::{Client, ClientSettings};
//!
//! let mut client = Client::new(ClientSettings::new("/w"));
//! let version = client.set_text("/w/a.py".as_ref(), "python", "x = 1\n").unwrap();
//! assert!(client.answer("/w/a.py".as_ref(), version).is_none());
//! assert!(client.take_output().starts_with(b"Content-Length: "));
//! ```

mod client;
mod client_settings;
mod diagnostic;
mod document;
mod file_uri;
mod frame;
mod incoming;
mod new_errors;
mod outgoing;
mod server_request;

pub use client::{Client, ClientError, FileChange, FileChangeKind, MAX_TEXT_BYTES};
pub use client_settings::ClientSettings;
pub use diagnostic::{Diagnostic, Errors, MAX_ERRORS};
pub use file_uri::{file_uri, path_of_uri};
pub use frame::{FrameDecoder, FrameError, MAX_BODY_BYTES, MAX_HEADER_BYTES, frame};
pub use new_errors::new_errors;
