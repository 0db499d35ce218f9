//! ApplyPatch in one long session.

use std::path::Path;

use serde_json::{Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::line_process::{LineProcess, call_line};
use toolcrib_devtools::scratch::{Scratch, is_success, kind};

use super::tree::Tree;

/// The outcome of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was applied, with these resulting files.
    Applied(Tree),
    /// It was refused.
    Refused(Refusal),
}

/// Why a patch was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The error kind.
    pub(super) kind: String,
    /// The full message.
    pub(super) message: String,
}

/// A `toolcrib` process with its own workspace.
pub(super) struct Ours {
    conversation: LineProcess,
    // After the conversation, so that the process ends before its directory is removed.
    scratch: Scratch,
    calls: usize,
}

impl Ours {
    pub(super) fn new(binary: &Path) -> Result<Ours> {
        let scratch = Scratch::in_memory(binary)?;
        // There is no approver.
        let conversation = LineProcess::start(scratch.command(&["run", "--profile", "open"]))?;
        Ok(Ours { conversation, scratch, calls: 0 })
    }

    /// Makes these the only files of the workspace.
    pub(super) fn put(&self, tree: &Tree) -> Result<()> {
        tree.write(&self.scratch.workspace())
    }

    /// Applies a patch to the current files. Fails if a refusal changed something.
    pub(super) fn apply(&mut self, patch: &str) -> Result<(Outcome, Value)> {
        let was = Tree::read(&self.scratch.workspace())?;
        let reply = self.call("ApplyPatch", &json!({"patch": patch}))?;
        let now = Tree::read(&self.scratch.workspace())?;
        if is_success(&reply) {
            return Ok((Outcome::Applied(now), reply));
        }
        let message = reply["output"].as_str().unwrap_or_default().to_owned();
        match now.difference(&was) {
            None => {
                Ok((Outcome::Refused(Refusal { kind: kind(&reply).to_owned(), message }), reply))
            }
            Some(what) => Err(format!("a refusal changed something: {what}; {message}").into()),
        }
    }

    /// Undoes the last change. Returns the resulting files.
    pub(super) fn undo(&mut self) -> Result<Outcome> {
        let reply = self.call("Undo", &json!({}))?;
        if is_success(&reply) {
            return Ok(Outcome::Applied(Tree::read(&self.scratch.workspace())?));
        }
        let message = reply["output"].as_str().unwrap_or_default().to_owned();
        Ok(Outcome::Refused(Refusal { kind: kind(&reply).to_owned(), message }))
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        self.calls += 1;
        self.conversation.ask(&call_line(self.calls, tool, arguments, true))
    }
}
