//! Errors in the messages of a server. Other diagnostics are not kept.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

/// Errors that are kept of one text. With more, nothing can be said about new ones.
pub const MAX_ERRORS: usize = 2_000;

/// Bytes of a message that are kept. Some compilers print whole types.
const MAX_MESSAGE_BYTES: usize = 2_000;

/// Bytes of a code that are kept.
const MAX_CODE_BYTES: usize = 100;

/// An error in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its line, from 0. Lines end with `\n`, `\r\n` or `\r`.
    pub line: u32,
    /// The code of the rule, such as `F821`.
    pub code: Option<String>,
    /// The message.
    pub message: String,
}

/// The errors of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Errors {
    /// At most [`MAX_ERRORS`], in the order of the server.
    pub errors: Vec<Diagnostic>,
    /// Whether there were more.
    pub is_cut: bool,
}

#[derive(Deserialize)]
struct RawDiagnostic {
    range: Range,
    /// Servers may leave it to the client, which then takes it for an error.
    severity: Option<u8>,
    code: Option<Code>,
    message: Message,
}

#[derive(Deserialize)]
struct Range {
    start: Position,
}

#[derive(Deserialize)]
struct Position {
    line: u32,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Code {
    Number(i64),
    Text(String),
}

/// A text, or since version 3.18 markup.
#[derive(Deserialize)]
#[serde(untagged)]
enum Message {
    Text(String),
    Markup { value: String },
}

/// The severity of errors.
const ERROR: u8 = 1;

impl RawDiagnostic {
    fn is_error(&self) -> bool {
        self.severity.is_none_or(|severity| severity == ERROR)
    }

    fn into_diagnostic(self) -> Diagnostic {
        let code = self.code.map(|code| match code {
            Code::Number(number) => number.to_string(),
            Code::Text(text) => cut(text, MAX_CODE_BYTES),
        });
        let message = match self.message {
            Message::Text(text) | Message::Markup { value: text } => text,
        };
        let message = cut(without_background(&message), MAX_MESSAGE_BYTES);
        Diagnostic { line: self.range.start.line, code, message }
    }
}

/// A message without the lines of background that ty adds to it, such as the searched directories.
fn without_background(message: &str) -> String {
    let lines = message.lines().take_while(|line| !line.starts_with("info: "));
    lines.collect::<Vec<_>>().join("\n")
}

/// At most this many bytes of a text.
fn cut(mut text: String, max: usize) -> String {
    if text.len() > max {
        let end = (0..=max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.shrink_to_fit();
    }
    text
}

impl<'de> Deserialize<'de> for Errors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Errors, D::Error> {
        deserializer.deserialize_seq(ErrorsVisitor)
    }
}

struct ErrorsVisitor;

impl<'de> Visitor<'de> for ErrorsVisitor {
    type Value = Errors;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of diagnostics")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Errors, A::Error> {
        let mut errors = Errors::default();
        while let Some(one) = list.next_element::<RawDiagnostic>()? {
            if !one.is_error() {
                continue;
            }
            if errors.errors.len() >= MAX_ERRORS {
                errors.is_cut = true;
            } else {
                errors.errors.push(one.into_diagnostic());
            }
        }
        Ok(errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_are_kept() {
        let list = r#"[
            {"range":{"start":{"line":3,"character":1},"end":{}},"severity":1,"code":"F821","message":"a"},
            {"range":{"start":{"line":4}},"severity":2,"message":"b"},
            {"range":{"start":{"line":5}},"code":2304,"message":{"kind":"markdown","value":"c"},"data":[1]}
        ]"#;
        let errors: Errors = serde_json::from_str(list).unwrap();
        let shown: Vec<(u32, Option<&str>, &str)> = errors
            .errors
            .iter()
            .map(|error| (error.line, error.code.as_deref(), error.message.as_str()))
            .collect();
        assert_eq!(shown, [(3, Some("F821"), "a"), (5, Some("2304"), "c")]);
        assert!(!errors.is_cut);
    }

    #[test]
    fn many_and_long_errors_are_bounded() {
        let message = "ä".repeat(5_000);
        let one = format!(r#"{{"range":{{"start":{{"line":0}}}},"message":"{message}"}}"#);
        let list = format!("[{}]", vec![one; MAX_ERRORS + 1].join(","));
        let errors: Errors = serde_json::from_str(&list).unwrap();
        assert!(errors.is_cut);
        assert_eq!(errors.errors.len(), MAX_ERRORS);
        assert_eq!(errors.errors[0].message.len(), MAX_MESSAGE_BYTES);
    }
}
