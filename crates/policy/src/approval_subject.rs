//! What exactly an approval covers: a kind of effect, a path, a command, a host, a script.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::access::Effect;
use crate::contacted_hosts::target;

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
    /// Connections to a port of an address.
    pub fn address(address: SocketAddr) -> ApprovalScope {
        ApprovalScope::Host(target(&address.ip().to_string(), Some(address.port())))
    }

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

    /// What the approval covers, in two or three words.
    pub fn short_name(&self) -> &'static str {
        match self {
            ApprovalScope::Effect(Effect::Read) => "all reading",
            ApprovalScope::Effect(Effect::Write) => "all edits",
            ApprovalScope::Effect(Effect::Reach) => "all such calls",
            ApprovalScope::Effect(Effect::Command) => "all commands",
            ApprovalScope::Path(..) | ApprovalScope::Redirection(_) => "this file",
            ApprovalScope::Outside(Effect::Write, _) => "all edits there",
            ApprovalScope::External(_) | ApprovalScope::Outside(..) => "this path",
            ApprovalScope::Command(_) => "this command",
            ApprovalScope::Host(_) => "this host",
            ApprovalScope::Script(_) => "exactly this command",
        }
    }
}

/// What the approval covers, as words for a person. Texts are not escaped.
impl fmt::Display for ApprovalScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApprovalScope::Effect(Effect::Read) => write!(f, "reading all files"),
            ApprovalScope::Effect(Effect::Write) => {
                write!(f, "all edits of files in the workspace")
            }
            ApprovalScope::Effect(Effect::Reach) => write!(f, "all calls of this kind"),
            ApprovalScope::Effect(Effect::Command) => write!(f, "all commands"),
            ApprovalScope::Path(Effect::Read, path)
            | ApprovalScope::Outside(Effect::Read, path) => {
                write!(f, "reading {} and everything beneath it", path.display())
            }
            ApprovalScope::Path(_, path) => write!(f, "edits of {}", path.display()),
            ApprovalScope::Outside(_, path) => {
                write!(f, "edits of {} and everything beneath it", path.display())
            }
            ApprovalScope::External(path) => {
                write!(f, "commands that use {} or paths beneath it", path.display())
            }
            ApprovalScope::Command(words) => write!(f, "the command `{}`", words.join(" ")),
            ApprovalScope::Redirection(path) => {
                write!(f, "commands that redirect to {}", path.display())
            }
            ApprovalScope::Host(host) => write!(f, "connections to {host}"),
            ApprovalScope::Script(_) => write!(f, "a command with exactly this text"),
        }
    }
}
