//! What a call answers when it did what was asked.

use serde_json::{Map, Value};
use toolcrib_text::clip_lines;

use crate::error::Error;
use crate::words::counted;

/// The answer of a call: text for the model, facts for programs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    output: String,
    diff: String,
    metadata: Map<String, Value>,
}

impl Reply {
    /// A reply that says `output`.
    pub fn new(output: impl Into<String>) -> Self {
        Reply { output: output.into(), ..Reply::default() }
    }

    /// What changed, as a unified diff: part of what the model reads, and by itself for a door that
    /// shows it in colour or asks somebody about it.
    #[must_use]
    pub fn diff(mut self, diff: impl Into<String>) -> Self {
        self.diff = diff.into();
        self
    }

    /// A fact for programs.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// What it says, without the diff.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// The diff; empty where nothing changed.
    pub fn diff_text(&self) -> &str {
        &self.diff
    }

    /// Facts for programs.
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// All of it as the model reads it.
    pub fn text(&self) -> String {
        if self.diff.is_empty() {
            return self.output.clone();
        }
        format!("{}\n{}", self.output.trim_end(), self.diff)
    }

    /// The same reply within the budget; what had to go is counted, in the text and for programs.
    pub(crate) fn within(mut self, chars: usize) -> Self {
        let total = self.output.chars().count() + self.diff.chars().count();
        if total <= chars {
            return self;
        }
        let (output, in_output) = clip(&self.output, chars);
        let (diff, in_diff) = clip(&self.diff, chars.saturating_sub(output.chars().count()));
        (self.output, self.diff) = (output, diff);
        self.with("clipped_chars", in_output + in_diff)
    }
}

/// An error's text within the budget.
pub(crate) fn clip_error(error: Error, chars: usize) -> Error {
    error.map_text(|text| clip(text, chars).0)
}

fn clip(text: &str, chars: usize) -> (String, usize) {
    let clipped = clip_lines(text, chars);
    if clipped.left_out_chars == 0 {
        return (clipped.text, 0);
    }
    let lines = counted(clipped.left_out_lines as u64, "line");
    let left_out = counted(clipped.left_out_chars as u64, "character");
    let note = format!("[{lines}, {left_out} left out: a reply has at most {chars}]\n");
    (clipped.text + &note, clipped.left_out_chars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reply_says_what_is_missing() {
        let reply = Reply::new("line\n".repeat(100)).diff("+x\n").within(52);
        assert!(reply.output().starts_with(&"line\n".repeat(10)));
        assert!(
            reply
                .output()
                .ends_with("[90 lines, 450 characters left out: a reply has at most 52]\n")
        );
        assert_eq!(reply.metadata()["clipped_chars"], 453);
    }

    #[test]
    fn a_reply_of_exactly_the_budget_is_whole() {
        let reply = Reply::new("abc").diff("de");
        assert_eq!(reply.clone().within(5), reply);
    }
}
