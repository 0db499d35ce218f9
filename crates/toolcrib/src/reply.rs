//! Replies of successful calls.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use toolcrib_text::{Secrets, truncate_lines};

use crate::phrases::counted;

/// Reply of a call: text for the model, metadata for programs.
///
/// ```
/// use toolcrib::Reply;
///
/// let reply = Reply::new("Deployed to staging.").with("version", 7);
/// assert_eq!(reply.text(), "Deployed to staging.");
/// assert_eq!(reply.metadata()["version"], 7);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    output: String,
    diff: String,
    full_diff: Option<String>,
    metadata: Map<String, Value>,
    pictures: Vec<Picture>,
}

/// Image in a reply, for models with vision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Media type, such as `image/png`.
    pub media_type: &'static str,
    /// Encoded image.
    pub bytes: Vec<u8>,
}

impl Picture {
    /// Returns the image in base64.
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.bytes)
    }
}

impl Reply {
    /// Creates a reply with this text.
    pub fn new(output: impl Into<String>) -> Self {
        Reply { output: output.into(), ..Reply::default() }
    }

    /// Sets the unified diff of the change. The model reads it after the text; transports can also show it
    /// separately.
    #[must_use]
    pub fn diff(mut self, diff: impl Into<String>) -> Self {
        self.diff = diff.into();
        self
    }

    /// Sets the complete diff for programs, if the model reads only a part.
    #[must_use]
    pub(crate) fn full_diff(mut self, diff: impl Into<String>) -> Self {
        self.full_diff = Some(diff.into());
        self
    }

    /// Appends whole lines to the text.
    #[must_use]
    pub(crate) fn with_lines(mut self, lines: &str) -> Self {
        if !lines.is_empty() && !self.output.ends_with('\n') {
            self.output.push('\n');
        }
        self.output += lines;
        self
    }

    /// Adds an image.
    #[must_use]
    pub fn picture(mut self, picture: Picture) -> Self {
        self.pictures.push(picture);
        self
    }

    /// Appends a sentence to the text, on a new line.
    #[must_use]
    pub(crate) fn note(mut self, sentence: String) -> Self {
        if !self.output.is_empty() && !self.output.ends_with('\n') {
            self.output.push('\n');
        }
        self.output += &sentence;
        self
    }

    /// Adds a field to the metadata.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// Adds several fields to the metadata.
    #[must_use]
    pub(crate) fn with_all(self, facts: Vec<(&'static str, Value)>) -> Self {
        facts.into_iter().fold(self, |reply, (key, value)| reply.with(key, value))
    }

    /// Returns the text without the diff.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// Returns the diff. Empty if nothing changed.
    pub fn diff_text(&self) -> &str {
        &self.diff
    }

    /// Returns the complete diff, even if the model reads only a part.
    pub fn full_diff_text(&self) -> &str {
        self.full_diff.as_deref().unwrap_or(&self.diff)
    }

    /// Returns the metadata, for programs.
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// Returns the images.
    pub fn pictures(&self) -> &[Picture] {
        &self.pictures
    }

    /// Returns the text for the model, including the diff.
    pub fn text(&self) -> String {
        if self.diff.is_empty() {
            return self.output.clone();
        }
        format!("{}\n{}", self.output.trim_end(), self.diff)
    }

    /// Masks secrets, except in the diff, which has the content of files.
    #[must_use]
    pub(crate) fn masked(mut self, secrets: &Secrets) -> Self {
        if let Cow::Owned(masked) = secrets.mask(&self.output) {
            self.output = masked;
        }
        self.metadata.values_mut().for_each(|value| mask_strings(value, secrets));
        self
    }

    /// Truncates the reply to `chars` characters, and reports the removed amount in text and metadata.
    pub(crate) fn within(mut self, chars: usize) -> Self {
        if let Some(diff) = &mut self.full_diff {
            *diff = clip(diff, chars, chars).0;
        }
        // A text has at most as many characters as bytes.
        let bytes = self.output.len() + self.diff.len() + 1;
        if bytes <= chars || self.text().chars().count() <= chars {
            return self;
        }
        // One for the newline between text and diff.
        let room = chars.saturating_sub(1);
        let rest = room.saturating_sub(self.output.chars().count());
        let left_out;
        if rest > NOTE_CHARS {
            (self.diff, left_out) = clip(&self.diff, rest, chars);
        } else {
            // The diff does not fit: truncate both together.
            let all = self.text();
            self.diff.clear();
            (self.output, left_out) = clip(&all, room, chars);
        }
        self.with("clipped_chars", left_out)
    }
}

/// Masks secrets in every string of a value.
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

/// Truncates a text to `room` characters, including a last line that reports the removed amount. `budget` is
/// the limit that this line names.
pub(crate) fn clip(text: &str, room: usize, budget: usize) -> (String, usize) {
    if text.chars().count() <= room {
        return (text.to_owned(), 0);
    }
    let clipped = truncate_lines(text, room.saturating_sub(NOTE_CHARS));
    let lines = counted(clipped.left_out_lines as u64, "line");
    let left_out = counted(clipped.left_out_chars as u64, "character");
    let note = format!("[{lines}, {left_out} omitted: a reply has at most {budget}]\n");
    (clipped.text + &note, clipped.left_out_chars)
}

/// Upper bound of the length of that line.
const NOTE_CHARS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_reply_reports_the_removed_amount() {
        let long = |output: usize, diff: usize| {
            Reply::new("line\n".repeat(output)).diff("+x\n".repeat(diff)).within(400)
        };
        for reply in [long(100, 50), long(10, 200), long(79, 200), long(60, 50)] {
            assert!(reply.text().contains("characters omitted: a reply has at most 400]"));
            assert!(reply.text().chars().count() <= 400, "{}", reply.text());
            assert!(reply.metadata()["clipped_chars"].as_u64() > Some(40));
        }
    }

    #[test]
    fn reply_at_the_limit_is_not_truncated() {
        let reply = Reply::new("abc").diff("de");
        assert_eq!(reply.clone().within(6), reply);
    }
}
