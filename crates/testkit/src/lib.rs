//! Test cases in Markdown, and the transports that they run through.
//!
//! A case is a readable page: files before, calls, replies, files after, with prose between that
//! explains them. The same pages run in-process and through `toolcrib call`, `toolcrib run` and
//! `toolcrib serve`, so that the transports cannot drift apart. Each page is a test of its own
//! ([`case_tests`]). `UPDATE=1` writes the actual replies into the pages; review the diff.
//!
//! For tests only: no crate of the product depends on this crate. Timing, races and signals are tested
//! in Rust instead.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "tests inspect the disk and start processes directly, fail by panicking, and say why they are skipped"
)]

mod case_settings;
mod certificate;
mod content_encoding;
mod directory_snapshot;
mod markdown_page;
mod postgres_server;
mod run_case;
mod sandbox_visible_directory;
mod step;
mod token_issuer;
mod transport;

pub use case_settings::Setup;
pub use certificate::self_signed_certificate;
pub use content_encoding::{escape, unescape};
pub use libtest_mimic;
pub use markdown_page::{Document, Segment};
pub use postgres_server::{PostgresServer, make_private};
pub use run_case::{case_tests, play_cases};
pub use sandbox_visible_directory::sandbox_visible_directory;
pub use token_issuer::{SigningKey, TokenIssuer, now};
pub use transport::{CallTransport, InProcessTransport, McpTransport, RunTransport, Transport};
