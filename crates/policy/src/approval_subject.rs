//! What exactly an approval covers: a kind of effect, a path, a command, a host, a script.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::access::Effect;

/// The approvals of a session.
pub type SessionApprovals = BTreeSet<ApprovalScope>;

/// The subject of an approval request, and the scope that its approval covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApprovalScope {
    /// All accesses with an effect, as profiles ask: all reading, all editing.
    Effect(Effect),
    /// A path that a rule asks about.
    Path(Effect, PathBuf),
    /// A path outside the workspace, for commands.
    External(PathBuf),
    /// A path outside the workspace and everything beneath it, for file tools.
    Outside(Effect, PathBuf),
    /// A command with its arguments and the variables set for it.
    Command(Vec<String>),
    /// A file that a redirection writes.
    Redirection(PathBuf),
    /// A host with its port, such as `example.com:443`, or without if that is not known.
    Host(String),
    /// A script with exactly this text. An unparsed script is equal only to itself.
    Script(String),
}

impl ApprovalScope {
    /// Whether one of the approvals covers this scope.
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
