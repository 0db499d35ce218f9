//! Notes about invisible characters in the shown content. The content itself is unchanged.

use serde_json::{Value, json};
use toolcrib_text::{hidden_in, invisible_name};

use crate::metadata_fields::MetadataField;
use crate::phrases::counted;
use crate::reply::Reply;

/// Number of lines that the metadata lists.
const LISTED: usize = 20;

/// Metadata about invisible characters.
pub(super) const INVISIBLE: &[MetadataField] = &[
    MetadataField::new(
        "invisible_characters",
        "object",
        "the shown content has invisible characters",
        "Where they are.",
    ),
    MetadataField::new(
        "invisible_characters.count",
        "integer",
        "with its object",
        "Number of characters.",
    ),
    MetadataField::new(
        "invisible_characters.places",
        "array of object",
        "with its object",
        "The first lines with one, at most 20.",
    ),
    MetadataField::new(
        "invisible_characters.places[].place",
        "string",
        "with its object",
        "The line, as the reply names it.",
    ),
    MetadataField::new(
        "invisible_characters.places[].character",
        "string",
        "with its object",
        "Its first invisible character, such as `U+202E`.",
    ),
];

/// The invisible characters in the lines that a reply shows.
#[derive(Debug, Default)]
pub(super) struct InvisibleCharacters {
    first: Option<(String, char)>,
    count: u64,
    places: Vec<Value>,
}

impl InvisibleCharacters {
    /// Examines a line; `place` is its name in the reply.
    pub(super) fn examine(&mut self, line: &str, place: impl FnOnce() -> String) {
        let mut found = hidden_in(line).map(|(_, c)| c);
        let Some(first) = found.next() else { return };
        let place = place();
        if self.places.len() < LISTED {
            self.places.push(json!({"place": place, "character": code_point(first)}));
        }
        self.first.get_or_insert((place, first));
        self.count += 1 + found.count() as u64;
    }

    /// Examines a text whose lines are not numbered in the reply.
    pub(super) fn of_text(text: &str) -> InvisibleCharacters {
        let mut hidden = InvisibleCharacters::default();
        for line in text.lines() {
            hidden.examine(line, || "in this text".to_owned());
        }
        hidden
    }

    /// The note as a line. Empty if there are no invisible characters.
    pub(super) fn note(&self) -> String {
        let Some((place, c)) = &self.first else { return String::new() };
        let name = invisible_name(*c).unwrap_or_default();
        let more = match self.count - 1 {
            0 => String::new(),
            more => format!("; {}", counted(more, "more such character")),
        };
        format!("[{place}: {} {name}{more}]\n", code_point(*c))
    }

    /// Adds the metadata.
    pub(super) fn facts(self, reply: Reply) -> Reply {
        match self.count {
            0 => reply,
            count => {
                reply.with("invisible_characters", json!({"count": count, "places": self.places}))
            }
        }
    }
}

fn code_point(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}
