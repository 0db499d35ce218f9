//! Starts processes. No other crate does.
//!
//! A [`Worker`] is a small child process that reads bytes and replies with bytes. Usually it is this program,
//! started again. Decoders of untrusted files run in one: a file that exhausts memory, never ends or takes over
//! the decoder ends only a child without privileges, and not the session.
//!
//! A [`Job`] is a command of an agent. The command is plain data ([`Command`]). A [`Launcher`] starts a shim for
//! it, which starts the shell, reaps its descendants, and ends them when it is told to or when the runtime is
//! gone. [`Jobs`] holds the jobs of a session. A command may run in a [`Sandbox`], as far as the system supports
//! it ([`SandboxSupport`]); a [`Guard`] decides about each of its file changes.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the lints send code that starts processes to this crate"
)]

#[cfg(not(target_os = "linux"))]
compile_error!("toolcrib-exec cannot limit processes on this system: it supports Linux only");

mod command;
mod environment;
mod error;
mod escape_checks;
mod fd_passing;
mod find_bash;
mod find_program;
mod gateway;
mod guard;
mod inherited_descriptors;
mod job;
mod jobs;
mod jobs_in_proc;
mod launch;
mod limit_watch;
mod limits;
mod machine_memory;
mod nofile_limit;
mod outer_wall;
mod output_buffer;
mod parse_shell_state;
mod path_encoding;
mod path_set;
mod poller;
mod ports;
mod process_tree;
mod random;
mod refusal;
mod remote_memory;
mod replacement_files;
mod running_limit;
mod running_process;
mod sandbox;
mod session_tmp;
mod setup_error;
mod shim;
mod shim_messages;
mod shims;
mod sock_diag;
mod start_options;
mod stream_io;
mod streams;
mod supervise;
mod supervised_calls;
mod terminal_reads;
mod worker;

pub use command::{Command, Ended, Exit, ShellState, Stdin};
pub use environment::{Environment, is_secret};
pub use error::JobError;
pub use escape_checks::{EscapeAttempt, reports_denials, try_to_escape};
pub use find_bash::find_bash;
pub use find_program::find_program;
pub use gateway::{Gateway, MakeSockets, NetworkExit, NetworkSockets, NoRoute, ProxyExit};
pub use guard::{
    AllowAll, FileAccess, FileAction, Guard, GuardVerdict, NodeKind, Program, RefusedContent,
};
pub use inherited_descriptors::close_inherited;
pub use job::{ErrorStream, Job, Snapshot, Status};
pub use jobs::{JobRunner, Jobs};
pub use jobs_in_proc::{RunningJob, all_running_jobs};
pub use launch::Launcher;
pub use limits::{Amount, ExceededLimit, Limits, MeasuredLimit, size_text};
pub use machine_memory::machine_memory;
pub use nofile_limit::raise_nofile_limit;
pub use outer_wall::OuterWall;
pub use output_buffer::{KeptOutput, OutputLimits};
pub use path_set::{PathSet, SetPath};
pub use process_tree::Process;
pub use refusal::{DeniedAction, MAX_REFUSALS, Refusal, Unwritable};
pub use replacement_files::ReplacementFiles;
pub use running_limit::RunningLimit;
pub use running_process::is_running_since;
pub use rustix::process::Signal;
pub use sandbox::level::{Level, SandboxSupport};
pub use sandbox::{Network, PinnedPath, Replacement, SESSION_TMP, Sandbox, has_no_writer};
pub use session_tmp::free_bytes;
pub use shim::run_shim;
pub use shim_messages::Ending;
pub use start_options::{ReservedId, StartOptions};
pub use stream_io::{CommandInput, CommandOutput, OutputStream, has_reader};
pub use streams::Streams;
pub use worker::{
    ConfineError, Conversation, Worker, WorkerError, WorkerLimits, WorkerSlot, WorkerSlots,
    confine, serve, serve_conversation,
};
