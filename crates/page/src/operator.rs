//! The interface to the program: the settings of the operator.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib::Runtime;

/// What the page needs from the program that starts it. The page reads no configuration itself.
pub trait Operator: Send + Sync + 'static {
    /// A runtime of a workspace for the operator's own undo and redo.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the workspace or the configuration cannot be read.
    fn operator_runtime(&self, workspace: &Path) -> Result<Runtime, String>;

    /// A runtime of a workspace with the settings of an agent, to explain decisions. `profile` is the one that the
    /// agent was started with, if it is known. With a text, the user's rules are these instead of those in the file.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the workspace, the configuration or the rules cannot be read.
    fn agent_runtime(
        &self,
        workspace: &Path,
        profile: Option<&str>,
        rules: Option<&str>,
    ) -> Result<Runtime, String>;

    /// Explains the decision on something that an agent with a profile could do in a workspace, as `toolcrib policy`
    /// does.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the workspace, the configuration or the arguments are invalid.
    fn explain(
        &self,
        workspace: &Path,
        profile: Option<&str>,
        subject: &ExplainedSubject,
    ) -> Result<String, String>;

    /// The user's rules file, whether it exists or not. `None` if the configuration directory is unknown.
    fn rules_file(&self) -> Option<PathBuf>;

    /// The text of the rules file. Empty if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if it cannot be read.
    fn rules_text(&self) -> Result<String, String>;

    /// Replaces the rules file if it still has the text `was`.
    ///
    /// # Errors
    ///
    /// Fails if the file was changed meanwhile, or cannot be written.
    fn replace_rules(&self, was: &str, new: &str) -> Result<(), RulesNotReplaced>;

    /// The text with rules at its end, in the style of the file.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if the rules or the text are invalid.
    fn with_rules(&self, text: &str, rules: &str) -> Result<String, String>;
}

/// What a decision is about.
#[derive(Debug)]
pub enum ExplainedSubject {
    /// A shell command.
    Command(String),
    /// A call of a tool.
    Call {
        /// The name of the tool.
        tool: String,
        /// Its arguments.
        arguments: Value,
    },
    /// A host and a port, such as `example.com:443`.
    Host(String),
}

/// Why the rules file was not replaced.
#[derive(Debug)]
pub enum RulesNotReplaced {
    /// Its text has changed.
    Changed,
    /// It cannot be written.
    Failed(String),
}
