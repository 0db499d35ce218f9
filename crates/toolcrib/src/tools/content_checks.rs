//! Syntax errors and masks of secrets that a change introduced, as notes of its reply. A change is never refused for
//! them.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use toolcrib_text::masks;

use crate::message_names::READ;
use crate::metadata_fields::MetadataField;
use crate::reply::Reply;
use crate::source_syntax::{ParseBudget, base_name, errors_after_change};

/// Megabytes and time for all files of a call. Further files are not examined.
const MEGABYTES: u64 = 4;
const MAX_TIME: Duration = Duration::from_secs(2);

/// Files that a reply names.
const MAX_FILES: usize = 5;

/// Metadata about new syntax errors.
pub(super) const SYNTAX_ERRORS: &[MetadataField] = &[MetadataField::new(
    "syntax_errors",
    "array of string",
    "the change introduced syntax errors",
    "The first errors of each file: its path, the line and what is wrong.",
)];

/// What a change introduced in its files.
pub(super) struct ContentChecks {
    budget: ParseBudget,
    /// The sentence of each file.
    notes: Vec<String>,
    facts: Vec<Value>,
}

impl ContentChecks {
    pub(super) fn new() -> ContentChecks {
        let budget = ParseBudget::megabytes(MEGABYTES, MAX_TIME);
        ContentChecks { budget, notes: Vec::new(), facts: Vec::new() }
    }

    /// Examines a file before and after the change. `of` names it in the note, if the reply is about several files.
    pub(super) fn examine(
        &mut self,
        shown: &str,
        of: Option<&str>,
        was: Option<&[u8]>,
        now: &[u8],
    ) {
        if self.notes.len() >= MAX_FILES || was == Some(now) {
            return;
        }
        self.notes.extend(new_mask_note(of, was.unwrap_or_default(), now));
        let errors = errors_after_change(base_name(shown), was, now, &self.budget);
        if let Some(line) = errors.old {
            let subject = of.unwrap_or("The file");
            self.notes.push(format!("{subject} still does not parse at line {line}."));
        }
        let errors = errors.new;
        if errors.is_empty() {
            return;
        }
        let described: Vec<String> =
            errors.iter().map(|error| format!("line {}: {}", error.line, error.what)).collect();
        let noun = if errors.len() == 1 { "syntax error" } else { "syntax errors" };
        let place = of.map_or(String::new(), |of| format!(" in {of}"));
        self.notes.push(format!("New {noun}{place}: {}.", described.join("; ")));
        let facts = errors.iter().map(|error| format!("{shown}:{}: {}", error.line, error.what));
        self.facts.extend(facts.map(Value::from));
    }

    /// The notes, one for each file.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds the metadata.
    pub(super) fn facts(self, reply: Reply) -> Reply {
        if self.facts.is_empty() { reply } else { reply.with("syntax_errors", self.facts) }
    }
}

/// The note about a mask that the new content has and the old one had not, or less often.
fn new_mask_note(of: Option<&str>, was: &[u8], now: &[u8]) -> Option<String> {
    let now_has = counts(now);
    if now_has.is_empty() {
        return None;
    }
    let had = counts(was);
    let mask = masks(now).find(|mask| now_has.get(mask) > had.get(mask))?;
    let subject = of.unwrap_or("The file");
    Some(format!(
        "{subject} now has the text `{mask}`, which hides a secret in output of commands, and not the secret itself. {READ} shows files unmasked."
    ))
}

/// How often a text has each mask.
fn counts(text: &[u8]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    masks(text).for_each(|mask| *counts.entry(mask).or_default() += 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::new_mask_note;

    #[test]
    fn only_a_mask_that_is_more_frequent_gets_a_note() {
        let note = |was: &str, now: &str| new_mask_note(None, was.as_bytes(), now.as_bytes());
        assert_eq!(note("", "no mask"), None);
        assert_eq!(note("[masked: a] [masked: b]", "[masked: b] [masked: a]"), None);
        assert_eq!(note("[masked: a] [masked: a]", "[masked: a]"), None);
        let more = note("[masked: a] [masked: b]", "[masked: a] [masked: b] [masked: b]");
        assert!(more.unwrap().starts_with("The file now has the text `[masked: b]`"));
    }

    /// Text may consist of masks.
    #[test]
    fn many_masks_are_counted_once() {
        let masks = "[masked: a]".repeat(300_000);
        assert_eq!(new_mask_note(None, masks.as_bytes(), format!("{masks}\n").as_bytes()), None);
    }
}
