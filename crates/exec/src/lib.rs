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

mod escape_checks;
mod bash;
mod command;
mod environment;
mod error;
mod shell_state;
mod guard;
mod nofile_limit;
mod fd_passing;
mod job;
mod jobs;
mod init;
mod init_pool;
mod running_jobs;
mod keys;
mod launch;
mod output_buffer;
mod remote_memory;
mod poller;
mod ports;
mod probe;
mod random;
mod refusal;
mod sandbox;
mod setup_error;
mod supervise;
mod tmp;
mod wire;
mod worker;

pub use escape_checks::{Attempt, tells_refusals, try_to_escape};
pub use bash::find_bash;
pub use command::{Command, Ended, Exit, Left};
pub use environment::{Environment, is_secret};
pub use error::JobError;
pub use guard::{
    AllowAll, FileAccess, FileAction, Guard, NodeKind, Program, RefusedContent, Verdict,
};
pub use nofile_limit::ask_for_more_handles;
pub use job::{Job, Snapshot, Status};
pub use jobs::{Jobs, Shells};
pub use init::{Process, keep};
pub use running_jobs::{Kept, all_kept};
pub use launch::Launcher;
pub use output_buffer::LogLimits;
pub use refusal::{Deed, REFUSALS_TOLD, Refusal, Unwritable};
pub use sandbox::level::{Enforced, Level};
pub use sandbox::{HeldPath, Limits, Network, SESSION_TMP, Sandbox};
pub use wire::Ending;
pub use worker::{
    Conversation, NotConfined, Worker, WorkerError, WorkerLimits, WorkerPlace, WorkerPlaces,
    confine, serve, serve_conversation,
};
