//! Decides whether a call may do what it declares.
//!
//! The crate is pure: no I/O, no clock, no state that a decision depends on. The same input gives the same
//! decision in a test, in `policy explain` and in a call. The core crate asks for approvals and remembers them.

mod access;
mod approval_subject;
mod command;
mod command_steps;
mod contacted_hosts;
mod decide;
mod decision;
pub mod git_config;
pub mod git_sequencer;
mod name_pattern;
mod new_rule;
mod outside_access;
mod profile;
mod protected_names;
mod read_only_commands;
mod rule;
mod rule_proposal;
mod runs_later;
mod setting_hints;
mod shown_parts;
mod system_damage;
mod toml_problem;

pub use access::{Access, Effect};
pub use approval_subject::{ApprovalScope, SessionApprovals};
pub use command::{
    Assignment, Command, CommandAnalysis, RedirectedFile, Role, ShellContext, Unparsed,
    UnparsedKind, Word, analyze_command,
};
pub use command_steps::{CommandStep, StepPart, command_steps};
pub use contacted_hosts::{contacts_only_loopback, is_loopback};
pub use decide::{A_RULE_DENIES, DANGER, Denial, PartDecision, Policy, RequestVerdict, Verdict};
pub use decision::Decision;
pub use name_pattern::name_matches;
pub use new_rule::{NewRule, shell_word};
pub use outside_access::{Outside, UnknownOutside};
pub use profile::{Profile, UnknownProfile};
pub use protected_names::Protection;
pub use rule::{LocatedRule, RequestSubject, RuleError, Rules};
pub use rule_proposal::Proposal;
pub use runs_later::runs_later;
pub use setting_hints::SettingHints;
pub use system_damage::{Danger, find_danger};
pub use toml_problem::{line_number, toml_key, toml_problem};
