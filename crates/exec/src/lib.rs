//! Processes: the only crate that starts them.
//!
//! For now that is a [`Worker`]: a small child, mostly this very program once more, that is given bytes
//! and answers with bytes. What decodes a stranger's file runs in one, so that a file which eats memory,
//! never ends or takes the decoder over ends a child without rights, and no session.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is the crate that the bans send everybody to who starts a process"
)]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "toolcrib-exec has no way yet to limit a process on this system; Linux only, for now"
);

mod worker;

pub use worker::{NotConfined, Worker, WorkerError, WorkerLimits, confine, serve};
