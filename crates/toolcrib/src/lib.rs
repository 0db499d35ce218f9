//! The tools of a coding agent, as a library.
//!
//! A [`Runtime`] holds the table of tools, the directories they may see and the policy. A
//! [`Session`] is one agent's stay. A [`Call`] goes in, a [`Reply`] or an [`Error`] comes out, and
//! both are written for the model that reads them.
//!
//! ```
//! # fn main() -> Result<(), toolcrib::Error> {
//! use toolcrib::{Call, Options, Runtime};
//!
//! let runtime = Runtime::builder().root(env!("CARGO_MANIFEST_DIR")).build()?;
//! let session = runtime.session();
//! let call = Call::new("Read", serde_json::json!({"file_path": "Cargo.toml", "limit": 1}));
//! let reply = runtime.call(&session, call, Options::default())?;
//! assert_eq!(reply.output().lines().next(), Some("     1\t[package]"));
//! # Ok(())
//! # }
//! ```
//!
//! How a call flows is written in `call.rs`, one line a step. A tool is one file in `tools/` and one
//! line in `tools.rs`; a library user's own tool is a type with the [`Tool`] trait and one
//! [`Runtime::register`].
//!
//! What may not be here: `std::fs`, `std::process`, `std::env` (tools reach the machine through
//! [`Cx`] alone), any protocol (doors have theirs), printing of any kind. That last one is held by
//! the compiler:
//!
//! ```compile_fail
//! include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/silence.rs"));
//! fn main() {
//!     println!("hello");
//! }
//! ```
//!
//! (and that it is this line that does not compile, by the same without it)
//!
//! ```
//! include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/silence.rs"));
//! fn main() {}
//! ```

/// Compiles the example of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding-rust.md")]
struct EmbeddingPage;

#[macro_use]
#[expect(unused_macros, reason = "they are there to be found in place of the usual ones")]
mod silence;

mod approve;
mod author;
mod authorize;
mod call;
mod call_record;
mod cancel;
mod command_changes;
mod cx;
mod decisions;
mod decode;
mod dialect;
mod doctor;
mod error;
mod explain;
mod helper;
mod hidden_paths;
mod history;
mod indexing;
mod json;
mod limits;
mod metadata_field;
mod names;
mod open_file;
mod output_notes;
mod outside_access;
mod path_access;
mod phrases;
mod reply;
mod reply_json;
mod reply_reference;
mod run_later_notes;
mod running_commands;
mod runtime;
mod sandbox;
mod schema;
mod search_decoder;
mod seen_files;
mod session;
mod shell;
mod structured_result;
mod suggest;
mod syntax_errors;
mod tmp_leftovers;
mod tool;
mod tool_formats;
mod tool_state;
mod tool_table;
mod tools;
mod undo;

pub use approve::{Answer, Answered, Approver, Nobody, Question};
pub use call::{Call, Options};
pub use call_record::{Outcome, Record, Recorder};
pub use cancel::{Cancel, Progress};
pub use cx::{Changed, Cx, FileEdit, Updated};
pub use decisions::DecisionEntry;
pub use dialect::Dialect;
pub use doctor::Checkup;
pub use error::{Error, ErrorKind};
pub use explain::Explanation;
pub use helper::run_helper;
pub use history::{ChangeLog, HistoryDirectory, HistoryEntry, HistoryFile};
pub use indexing::RootIndex;
pub use json::parse_json;
pub use limits::Limits;
pub use metadata_field::{COMMON as COMMON_METADATA, MetadataField};
pub use open_file::{Chunks, OpenFile};
pub use reply::{Picture, Reply};
pub use reply_json::to_json;
pub use running_commands::{RunningCommand, end_command, running_commands};
pub use runtime::{Runtime, RuntimeBuilder};
pub use sandbox::SandboxSettings;
pub use session::Session;
pub use shell::login_files;
pub use tool::{Category, Hints, Tool};
pub use tool_formats::{Format, ToolInfo};
pub use toolcrib_exec::{EscapeAttempt, Network, raise_nofile_limit};
pub use toolcrib_fs::{
    Caps, Content, DamagedChanges, HardLinks, PrivateFile, PrivateFileError, Recovered,
    RecoveryOutcome, Registry, random_bytes,
};
pub use toolcrib_policy::{
    Access, ApprovalScope, Assignment, Basis, Command as ShellCommand, CommandAnalysis, Decision,
    Effect, Outside, Profile, Proposal, Protection, Role, RuleError, Rules, SessionApprovals,
    Touched, Trouble, UnknownOutside, UnknownProfile, WhyNot, Word,
};
pub use toolcrib_search::{IndexSettings, IndexStatus};
pub use toolcrib_text::{visible, visible_content, visible_lines, visible_name};

/// What a tool of one's own derives its arguments with: `#[derive(Deserialize, JsonSchema)]`.
pub use schemars::{self, JsonSchema};
