//! The runtime interface of Kubernetes' agent-sandbox (KEP-539.2), called `sandboxd` there: files over REST and processes over
//! gRPC. Each request is an operation of the raw API of a session, so that policy, sandbox and journal are those of the tools.

#![allow(clippy::disallowed_types, reason = "the server listens")]

mod access;
mod error_status;
mod grpc;
mod messages;
mod multipart;
mod process_events;
mod processes;
mod rest;
mod server;
mod timestamp;
mod workspace;
mod workspace_path;

pub use access::Access;
pub use server::{Listeners, SandboxdOptions, serve};
