//! What somebody was asked about, to the point: what an answer is remembered for, and no more.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::access::Effect;

/// Answers that hold for a session.
pub type Remembered = BTreeSet<Asked>;

/// One thing that was asked about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asked {
    /// Everything of an effect, as profiles ask: all reading, all editing.
    Effect(Effect),
    /// A path that a rule asks about.
    Path(Effect, PathBuf),
    /// What is outside the workspace.
    External(PathBuf),
    /// A command with its arguments, and the variables that are set for it.
    Command(Vec<String>),
    /// A file that a redirection writes.
    Redirection(PathBuf),
    /// A host.
    Host(String),
    /// A whole script, letter for letter: one that is not understood is only the same as itself.
    Script(String),
}
