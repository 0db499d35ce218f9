//! Whether a call may do what it says it will do.
//!
//! Values in, a decision out: no I/O, no clock, no state, so that the same question has the same
//! answer in a test, in `policy explain` and in a call. Who is asked, and what the answer was, is
//! the business of the trunk.

mod access;
mod approval_scope;
mod command;
mod danger;
mod decide;
pub mod git_config;
pub mod git_sequence;
mod name_pattern;
mod outside;
mod profile;
mod proposal;
mod protect;
mod read_only_commands;
mod rule;
mod runs_later;

pub use access::{Access, Effect};
pub use approval_scope::{Asked, Remembered};
pub use command::{
    Assignment, Command, Role, Surroundings, Touched, Trouble, Understood, WhyNot, Word, understand,
};
pub use danger::{Danger, danger};
pub use decide::{Basis, Decision, Policy, Verdict};
pub use name_pattern::name_fits;
pub use outside::{Outside, UnknownOutside};
pub use profile::{Profile, UnknownProfile};
pub use proposal::Proposal;
pub use protect::Protection;
pub use rule::{RuleError, Rules};
pub use runs_later::runs_later;
