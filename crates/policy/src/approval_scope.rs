//! What somebody was asked about, to the point: what an answer is remembered for, and no more.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::access::Effect;

/// Answers that hold for a session.
pub type SessionApprovals = BTreeSet<ApprovalScope>;

/// One thing that was asked about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApprovalScope {
    /// Everything of an effect, as profiles ask: all reading, all editing.
    Effect(Effect),
    /// A path that a rule asks about.
    Path(Effect, PathBuf),
    /// What is outside the workspace, for commands.
    External(PathBuf),
    /// What is outside the workspace, for file tools: this path and what is beneath it.
    Outside(Effect, PathBuf),
    /// A command with its arguments, and the variables that are set for it.
    Command(Vec<String>),
    /// A file that a redirection writes.
    Redirection(PathBuf),
    /// A host.
    Host(String),
    /// A whole script, letter for letter: one that is not understood is only the same as itself.
    Script(String),
}

impl ApprovalScope {
    /// Whether it was answered before, by an answer to the same or to more.
    pub fn is_covered_by(&self, answers: &SessionApprovals) -> bool {
        let covers = |answer: &ApprovalScope| match (answer, self) {
            (ApprovalScope::Outside(answered, above), ApprovalScope::Outside(asked, path)) => {
                answered >= asked && path.starts_with(above)
            }
            _ => false,
        };
        answers.contains(self) || answers.iter().any(covers)
    }
}
