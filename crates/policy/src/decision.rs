//! The three decisions on a call.

/// A decision. The strictest of several wins: deny over ask over allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// The call may proceed.
    Allow,
    /// The call needs approval.
    Ask,
    /// The call is refused.
    Deny,
}

impl Decision {
    /// The name in records.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }
}
