//! Whether a call may do what it says it will do.
//!
//! Values in, a decision out: no I/O, no clock, no state, so that the same question has the same
//! answer in a test, in `policy explain` and in a call. Who is asked, and what the answer was, is
//! the business of the trunk.

mod access;
mod approval_scope;
mod command;
mod decide;
mod destructive_commands;
pub mod git_config;
pub mod git_sequence;
mod name_pattern;
mod outside_access;
mod profile;
mod protected_names;
mod read_only_commands;
mod rule;
mod rule_proposal;
mod runs_later;

pub use access::{Access, Effect};
pub use approval_scope::{ApprovalScope, SessionApprovals};
pub use command::{
    Assignment, Command, CommandAnalysis, Role, Surroundings, Touched, Trouble, WhyNot, Word,
    understand,
};
pub use decide::{Basis, Decision, Policy, Verdict};
pub use destructive_commands::{Danger, danger};
pub use name_pattern::name_fits;
pub use outside_access::{Outside, UnknownOutside};
pub use profile::{Profile, UnknownProfile};
pub use protected_names::Protection;
pub use rule::{RuleError, Rules};
pub use rule_proposal::Proposal;
pub use runs_later::runs_later;
