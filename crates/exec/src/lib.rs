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

mod command;
mod environment;
mod error;
mod escape_checks;
mod fd_passing;
mod find_bash;
mod guard;
mod job;
mod jobs;
mod launch;
mod nofile_limit;
mod output_buffer;
mod poller;
mod ports;
mod random;
mod refusal;
mod remote_memory;
mod running_jobs;
mod sandbox;
mod sandbox_probe;
mod session_tmp;
mod setup_error;
mod shell_state;
mod shim;
mod shim_pool;
mod supervise;
mod terminal_reads;
mod wire;
mod worker;

pub use command::{Command, Ended, Exit, ShellState};
pub use environment::{Environment, is_secret};
pub use error::JobError;
pub use escape_checks::{EscapeAttempt, reports_denials, try_to_escape};
pub use find_bash::find_bash;
pub use guard::{
    AllowAll, FileAccess, FileAction, Guard, GuardVerdict, NodeKind, Program, RefusedContent,
};
pub use job::{ErrorStream, Job, Snapshot, Status};
pub use jobs::{Jobs, Shells};
pub use launch::Launcher;
pub use nofile_limit::raise_nofile_limit;
pub use output_buffer::LogLimits;
pub use refusal::{DeniedAction, REFUSALS_TOLD, Refusal, Unwritable};
pub use running_jobs::{RunningJob, all_running_jobs};
pub use sandbox::level::{Enforced, Level};
pub use sandbox::{HeldPath, Limits, Network, SESSION_TMP, Sandbox, has_no_writer};
pub use shim::{Process, run_shim};
pub use wire::Ending;
pub use worker::{
    Conversation, NotConfined, Worker, WorkerError, WorkerLimits, WorkerPlace, WorkerPlaces,
    confine, serve, serve_conversation,
};
