//! Processes: the only crate that starts them.
//!
//! Two kinds. A [`Worker`] is a small child, mostly this very program once more, that is given bytes and
//! answers with bytes: what decodes a stranger's file runs in one, so that a file which eats memory, never
//! ends or takes the decoder over ends a child without rights, and no session.
//!
//! A [`Job`] is a command that an agent wants run. It is plain data ([`Command`]); a [`Launcher`] starts a
//! keeper for it, which starts the shell, reaps what comes of it and ends it when told to, or when nobody
//! is left to tell. [`Jobs`] has those of a session. A command may run in a [`Sandbox`], as far as the
//! system can hold it to that ([`Enforced`]); a [`Guard`] decides about each change that it makes to a file.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is the crate that the bans send everybody to who starts a process"
)]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "toolcrib-exec has no way yet to limit a process on this system; Linux only, for now"
);

mod attempts;
mod bash;
mod command;
mod environment;
mod error;
mod exported;
mod guard;
mod handles;
mod handover;
mod job;
mod jobs;
mod keeper;
mod keepers;
mod kept;
mod keys;
mod launch;
mod log;
mod memory;
mod poller;
mod ports;
mod probe;
mod random;
mod refusal;
mod sandbox;
mod step;
mod supervise;
mod tmp;
mod wire;
mod worker;

pub use attempts::{Attempt, tells_refusals, try_to_escape};
pub use bash::find_bash;
pub use command::{Command, Ended, Exit, Left};
pub use environment::{Environment, is_secret};
pub use error::JobError;
pub use guard::{
    AllowAll, FileAccess, FileAction, Guard, NodeKind, Program, RefusedContent, Verdict,
};
pub use handles::ask_for_more_handles;
pub use job::{Job, Snapshot, Status};
pub use jobs::{Jobs, Shells};
pub use keeper::{Process, keep};
pub use kept::{Kept, all_kept};
pub use launch::Launcher;
pub use log::LogLimits;
pub use refusal::{Deed, REFUSALS_TOLD, Refusal, Unwritable};
pub use sandbox::level::{Enforced, Level};
pub use sandbox::{HeldPath, Limits, Network, SESSION_TMP, Sandbox};
pub use wire::Ending;
pub use worker::{
    Conversation, NotConfined, Worker, WorkerError, WorkerLimits, WorkerPlace, WorkerPlaces,
    confine, serve, serve_conversation,
};
