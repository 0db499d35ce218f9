//! Tools for AI coding agents: files, search, shell commands and undo.
//!
//! A [`Runtime`] holds the tools, the directories that they may use, and the policy. A [`Session`] is the state
//! of one agent. [`Runtime::call`] takes a [`Call`] and returns a [`Reply`] or an [`Error`]; the text of both
//! is written for a model.
//!
//! # Example
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
//! # Where to start
//!
//! - [`Runtime::builder`] lists the settings of a runtime. [`run_helper`] and [`RuntimeBuilder::helper`] enable
//!   commands, PDFs and images; [`RuntimeBuilder::journal`] enables undo.
//! - [`Runtime::catalogue`] returns the tool list for a model API.
//! - [`Tool`] is the trait for your own tools; [`RuntimeBuilder::register`] adds one. [`Cx`] is its access to files.
//! - [`Options`] sets the approver, cancellation and progress of one call.
//!
//! # For contributors
//!
//! `call.rs` shows the steps of a call, one per line. A built-in tool is one file in `tools/` and one line in
//! `tools.rs`.
//!
//! This crate uses no `std::fs`, `std::process` or `std::env` (tools reach the machine through [`Cx`] only) and
//! no protocol (the transports have theirs). It prints nothing; the compiler checks that:
//!
//! ```compile_fail
//! include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/no_print.rs"));
//! fn main() {
//!     println!("hello");
//! }
//! ```
//!
//! The failing line is the `println!`: without it, the same program compiles.
//!
//! ```
//! include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/no_print.rs"));
//! fn main() {}
//! ```

/// Compiles the examples of the embedding guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding-rust.md")]
struct EmbeddingPage;

#[macro_use]
#[expect(unused_macros, reason = "they shadow the standard macros")]
mod no_print;

mod active_rules;
mod all_running_commands;
mod approve;
mod authorize;
pub mod backend;
mod backup_source;
mod call;
mod call_command;
mod call_log;
mod call_policy;
mod call_recorder;
mod call_title;
mod cancel_and_progress;
mod change_notices;
mod changed_by;
mod command_changes;
mod command_guard;
mod command_sandbox;
mod command_state;
mod command_variables;
mod cx;
mod decision_log;
mod decode;
mod deny_syntax_errors;
mod dialect;
mod edit_checks;
mod error;
mod explain;
mod git;
mod helper;
mod hidden_paths;
mod history;
mod host_asker;
mod host_tool;
mod ignored_directories;
mod index_admin;
mod inspection_settings;
mod journal_errors;
mod language_servers;
mod limits;
mod log_state;
mod message_names;
mod metadata_fields;
mod network;
mod operator_logs;
mod outlines;
mod output_notes;
mod path_access;
mod path_rules;
mod phrases;
mod question_turns;
mod quota;
mod reachable_paths;
mod reply;
mod reply_json;
mod reply_reference;
mod request;
mod run_later_notes;
mod runtime;
mod sandbox_checkup;
mod sandbox_refusal_notes;
mod sandbox_settings;
mod schema;
mod schema_fault;
mod search_decoder;
mod seen_files;
mod services;
mod session;
mod source_syntax;
mod strict_json;
mod strip_tool_mentions;
mod structured_result;
mod suggest;
mod tmp_leftovers_note;
mod tool;
mod tool_formats;
mod tool_selection;
mod tool_table;
mod tools;
mod type_map;
mod undo;
mod undo_part;
pub mod user_machine;
mod write_gate;

pub use active_rules::{RulesSource, RulesState};
pub use all_running_commands::{RunningCommand, end_command, running_commands};
pub use approve::{
    Answer, AnswerRecord, Approver, NoApprover, PendingQuestion, Question, QuestionTurn,
    split_question,
};
pub use backup_source::BackupSource;
pub use call_command::{CallCommand, CommandEnd, CommandOutput, WeakCallCommand};
pub use call_log::logged_access;
pub use call_recorder::{BegunCall, Outcome, Record, Recorder};
pub use call_title::call_title;
pub use cancel_and_progress::{Cancel, Progress};
pub use change_notices::ChangedFile;
pub use command_state::login_files;
pub use cx::{Changed, Chunks, Cx, FileEdit, OpenFile, Updated};
pub use decision_log::DecisionEntry;
pub use dialect::Dialect;
pub use error::{Error, ErrorKind};
pub use explain::Explanation;
pub use helper::run_helper;
pub use history::{ChangeLog, FileDiff, HistoryDirectory, HistoryEntry, HistoryFile};
pub use host_tool::{HostTool, HostToolFunction};
pub use index_admin::RootIndex;
pub use inspection_settings::{Injection, InspectionSettings};
pub use language_servers::LanguageServer;
pub use limits::Limits;
pub use message_names::Spelling;
pub use metadata_fields::{COMMON as COMMON_METADATA, MetadataField};
pub use network::ConnectionEntry;
pub use operator_logs::OperatorLogs;
pub use phrases::age;
pub use quota::{CommandPlace, OverQuota, Quota};
pub use reply::{Picture, Reply};
pub use reply_json::to_json;
pub use request::{Call, CallOrigin, Options, Principal};
pub use runtime::{Runtime, RuntimeBuilder};
pub use sandbox_checkup::{Checkup, SandboxSummary};
pub use sandbox_refusal_notes::DeniedAccess;
pub use sandbox_settings::SandboxSettings;
pub use session::Session;
pub use strict_json::parse_json;
pub use suggest::similar_names;
pub use tool::{Category, Hints, Tool};
pub use tool_formats::{Format, ToolInfo};
pub use tool_selection::{check_tool_names, check_tools_of_rules};
pub use toolcrib_exec::OuterWall;
pub use toolcrib_exec::{
    Amount, EscapeAttempt, Limits as CommandLimits, Network, PathSet, close_inherited,
    is_running_since, raise_nofile_limit, size_text,
};
pub use toolcrib_fs::{
    AuditBreak, AuditEvent, AuditOutbox, AuditReport, AuditVerifier, CallPage, CallRecord, Caps,
    CommandEndRecord, ConnectionRecord, Content, DamagedChanges, DecisionRecord, HardLinks,
    OperatorChange, OperatorFile, OutboxPosition, OutboxRecord, PrivateFile, PrivateFileError,
    Recovered, RecoveryOutcome, RefusalRecord, ReservedPaths, SharedHolder, check_state_version,
    check_trusted_file, escaped_json, make_private_directory, now_ms, random_bytes,
    symlinks_on_the_way, unix_ms,
};
pub use toolcrib_net::{Resolver, SystemResolver, UpstreamProxies, UpstreamProxy};
pub use toolcrib_policy::{
    Access, ApprovalScope, Assignment, Command as ShellCommand, CommandAnalysis, CommandStep,
    Decision, Effect, LocatedRule, NewRule, Outside, PartDecision, Profile, Proposal, Protection,
    RedirectedFile, Role, RuleError, Rules, SessionApprovals, SettingHints, StepPart,
    UnknownOutside, UnknownProfile, Unparsed, UnparsedKind, Word, command_steps, line_number,
    shell_word, toml_key, toml_problem,
};
pub use toolcrib_search::{IndexSettings, IndexStatus};
pub use toolcrib_text::{
    LineHunk, NumberedLine, visible, visible_content, visible_lines, visible_name,
};

pub use undo::{UndoPart, UndoSelection};
pub use undo_part::{FileUndo, FileUndoResult};
pub use write_gate::WriteGate;

/// For the argument struct of your own tool: `#[derive(serde::Deserialize, toolcrib::JsonSchema)]`.
pub use schemars::{self, JsonSchema};
