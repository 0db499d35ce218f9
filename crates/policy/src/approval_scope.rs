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

impl Asked {
    /// Whether it was answered before, by an answer to the same or to more.
    pub fn is_covered_by(&self, answers: &Remembered) -> bool {
        let covers = |answer: &Asked| match (answer, self) {
            (Asked::Outside(answered, above), Asked::Outside(asked, path)) => {
                answered >= asked && path.starts_with(above)
            }
            _ => false,
        };
        answers.contains(self) || answers.iter().any(covers)
    }
}
