//! What a call answers when it did what was asked.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use toolcrib_text::{Secrets, truncate_lines};

use crate::phrases::counted;

/// The answer of a call: text for the model, facts for programs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    output: String,
    diff: String,
    full_diff: Option<String>,
    metadata: Map<String, Value>,
    pictures: Vec<Picture>,
}

/// A picture in a reply, for models that can see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// What its bytes are, as in `image/png`.
    pub media_type: &'static str,
    /// The picture.
    pub bytes: Vec<u8>,
}

impl Picture {
    /// Its bytes as letters, for what speaks JSON.
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.bytes)
    }
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

    /// All of the diff, for programs, where the model reads only a part of it.
    #[must_use]
    pub(crate) fn full_diff(mut self, diff: impl Into<String>) -> Self {
        self.full_diff = Some(diff.into());
        self
    }

    /// The same, with whole lines behind what it says.
    #[must_use]
    pub(crate) fn with_lines(mut self, lines: &str) -> Self {
        if !lines.is_empty() && !self.output.ends_with('\n') {
            self.output.push('\n');
        }
        self.output += lines;
        self
    }

    /// A picture beside what it says.
    #[must_use]
    pub fn picture(mut self, picture: Picture) -> Self {
        self.pictures.push(picture);
        self
    }

    /// A sentence of ours behind what it says.
    #[must_use]
    pub(crate) fn note(mut self, sentence: String) -> Self {
        if !self.output.is_empty() && !self.output.ends_with('\n') {
            self.output.push('\n');
        }
        self.output += &sentence;
        self
    }

    /// A fact for programs.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// Several facts.
    #[must_use]
    pub(crate) fn with_all(self, facts: Vec<(&'static str, Value)>) -> Self {
        facts.into_iter().fold(self, |reply, (key, value)| reply.with(key, value))
    }

    /// What it says, without the diff.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// The diff; empty where nothing changed.
    pub fn diff_text(&self) -> &str {
        &self.diff
    }

    /// All of the diff, whatever part of it the model reads.
    pub fn full_diff_text(&self) -> &str {
        self.full_diff.as_deref().unwrap_or(&self.diff)
    }

    /// Facts for programs.
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// The pictures in it.
    pub fn pictures(&self) -> &[Picture] {
        &self.pictures
    }

    /// All of it as the model reads it.
    pub fn text(&self) -> String {
        if self.diff.is_empty() {
            return self.output.clone();
        }
        format!("{}\n{}", self.output.trim_end(), self.diff)
    }

    /// The same reply without secrets, but for the diff: that is what files say.
    #[must_use]
    pub(crate) fn masked(mut self, secrets: &Secrets) -> Self {
        if let Cow::Owned(masked) = secrets.mask(&self.output) {
            self.output = masked;
        }
        self.metadata.values_mut().for_each(|value| mask_strings(value, secrets));
        self
    }

    /// The same reply within the budget; what had to go is counted, in the text and for programs.
    pub(crate) fn within(mut self, chars: usize) -> Self {
        if let Some(diff) = &mut self.full_diff {
            *diff = clip(diff, chars, chars).0;
        }
        // No text has more characters than bytes.
        let bytes = self.output.len() + self.diff.len() + 1;
        if bytes <= chars || self.text().chars().count() <= chars {
            return self;
        }
        // One is for the newline between the two.
        let room = chars.saturating_sub(1);
        let rest = room.saturating_sub(self.output.chars().count());
        let left_out;
        if rest > NOTE_CHARS {
            (self.diff, left_out) = clip(&self.diff, rest, chars);
        } else {
            // No room for the diff beside what is said: it counts as left out with the rest.
            let all = self.text();
            self.diff.clear();
            (self.output, left_out) = clip(&all, room, chars);
        }
        self.with("clipped_chars", left_out)
    }
}

/// Masks what is secret in every string of a value.
pub(crate) fn mask_strings(value: &mut Value, secrets: &Secrets) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(masked) = secrets.mask(text) {
                *text = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask_strings(item, secrets)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| mask_strings(field, secrets));
        }
        _ => {}
    }
}

/// Keeps as much of a text as there is room for, with a line that tells what is missing; the room
/// includes that line. `budget` is what the line names.
pub(crate) fn clip(text: &str, room: usize, budget: usize) -> (String, usize) {
    if text.chars().count() <= room {
        return (text.to_owned(), 0);
    }
    let clipped = truncate_lines(text, room.saturating_sub(NOTE_CHARS));
    let lines = counted(clipped.left_out_lines as u64, "line");
    let left_out = counted(clipped.left_out_chars as u64, "character");
    let note = format!("[{lines}, {left_out} left out: a reply has at most {budget}]\n");
    (clipped.text + &note, clipped.left_out_chars)
}

/// More than the line takes that tells what is missing.
const NOTE_CHARS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reply_says_what_is_missing() {
        let long = |output: usize, diff: usize| {
            Reply::new("line\n".repeat(output)).diff("+x\n".repeat(diff)).within(400)
        };
        for reply in [long(100, 50), long(10, 200), long(79, 200), long(60, 50)] {
            assert!(reply.text().contains("characters left out: a reply has at most 400]"));
            assert!(reply.text().chars().count() <= 400, "{}", reply.text());
            assert!(reply.metadata()["clipped_chars"].as_u64() > Some(40));
        }
    }

    #[test]
    fn a_reply_of_exactly_the_budget_is_whole() {
        let reply = Reply::new("abc").diff("de");
        assert_eq!(reply.clone().within(6), reply);
    }
}
