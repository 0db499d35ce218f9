//! ApplyPatch, asked again and again by one long conversation.

use std::path::Path;

use serde_json::{Value, json};

use super::tree::Tree;
use crate::conversation::{Conversation, call_line};
use crate::error::Result;
use crate::sandbox::{Sandbox, is_success, kind};

/// What came of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was applied, and these are the files then.
    Applied(Tree),
    /// It was not.
    Refused(Refusal),
}

/// Why it was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    /// In a word.
    pub(super) kind: String,
    /// In full.
    pub(super) says: String,
}

/// The product, with a workspace of its own.
pub(super) struct Ours {
    conversation: Conversation,
    // Behind the conversation, so that the process is gone before its directory is.
    sandbox: Sandbox,
    asked: usize,
}

impl Ours {
    pub(super) fn new(binary: &Path) -> Result<Ours> {
        let sandbox = Sandbox::in_memory(binary)?;
        // Nobody is there to be asked.
        let conversation = Conversation::start(sandbox.command(&["run", "--profile", "open"]))?;
        Ok(Ours { conversation, sandbox, asked: 0 })
    }

    /// Puts these files into the workspace, and nothing else.
    pub(super) fn put(&self, tree: &Tree) -> Result<()> {
        tree.write(&self.sandbox.workspace())
    }

    /// Applies a patch to what is there. A refusal that changed something is an error.
    pub(super) fn apply(&mut self, patch: &str) -> Result<(Outcome, Value)> {
        let was = Tree::read(&self.sandbox.workspace())?;
        let reply = self.call("ApplyPatch", &json!({"patch": patch}))?;
        let now = Tree::read(&self.sandbox.workspace())?;
        if is_success(&reply) {
            return Ok((Outcome::Applied(now), reply));
        }
        let says = reply["output"].as_str().unwrap_or_default().to_owned();
        match now.difference(&was) {
            None => Ok((Outcome::Refused(Refusal { kind: kind(&reply).to_owned(), says }), reply)),
            Some(what) => Err(format!("a refusal changed something: {what}; {says}").into()),
        }
    }

    /// Takes the last change back; answers what is there then.
    pub(super) fn undo(&mut self) -> Result<Outcome> {
        let reply = self.call("Undo", &json!({}))?;
        if is_success(&reply) {
            return Ok(Outcome::Applied(Tree::read(&self.sandbox.workspace())?));
        }
        let says = reply["output"].as_str().unwrap_or_default().to_owned();
        Ok(Outcome::Refused(Refusal { kind: kind(&reply).to_owned(), says }))
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        self.asked += 1;
        self.conversation.ask(&call_line(self.asked, tool, arguments, true))
    }
}
