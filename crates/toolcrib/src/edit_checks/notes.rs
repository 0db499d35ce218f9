//! The notes of a reply about errors.

use std::path::PathBuf;

use serde_json::Value;
use toolcrib_text::{truncate_line, visible};

use crate::language_servers::{FoundError, PendingCheck};
use crate::output_notes::bracketed;
use crate::services::Services;
use crate::session::Session;

/// Errors that a reply names.
const MAX_ERRORS: usize = 5;

/// Characters of a message.
const MESSAGE_CHARS: usize = 200;

/// The new errors of a file.
pub(super) struct FileNote {
    pub(super) path: PathBuf,
    /// Each with the name of its server.
    errors: Vec<(String, FoundError)>,
}

impl FileNote {
    pub(super) fn new(path: PathBuf, server: &str, errors: Vec<FoundError>) -> FileNote {
        let mut note = FileNote { path, errors: Vec::new() };
        note.add(server, errors);
        note
    }

    /// Adds the errors of a server.
    pub(super) fn add(&mut self, server: &str, errors: Vec<FoundError>) {
        self.errors.extend(errors.into_iter().map(|error| (server.to_owned(), error)));
        self.errors.sort_by_key(|(_, error)| error.line);
    }
}

/// The notes about files with new errors, and the metadata.
pub(super) fn described(
    services: &Services,
    session: &Session,
    files: &[FileNote],
) -> (Vec<String>, Vec<Value>) {
    let (mut notes, mut facts, mut left) = (Vec::new(), Vec::new(), MAX_ERRORS);
    for file in files {
        let shown = services.paths.show(session.directory(), &file.path);
        let named = file.errors.len().min(left);
        left -= named;
        let mut parts = Vec::new();
        for (server, error) in file.errors.iter().take(named) {
            let words = words(server, error);
            parts.push(format!("line {}: {words}", error.line));
            facts.push(format!("{shown}:{}: {words}", error.line).into());
        }
        match (file.errors.len() - named, named) {
            (0, _) => {}
            (more, 0) => parts.push(more.to_string()),
            (more, _) => parts.push(format!("and {more} more")),
        }
        let noun = if file.errors.len() == 1 { "new error" } else { "new errors" };
        notes.push(bracketed(format!("{noun} in {shown}: {}", parts.join("; "))));
    }
    (notes, facts)
}

/// The message of an error, with the server and the code: `undefined name (ruff F821)`.
fn words(server: &str, error: &FoundError) -> String {
    let code = error.code.as_ref().map_or(String::new(), |code| format!(" {}", one_line(code)));
    format!("{} ({server}{code})", one_line(&error.message))
}

/// The beginning of a text of a server, in one line.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    truncate_line(&visible(words.join(" ").as_bytes()), MESSAGE_CHARS)
}

/// The note about checks that have not ended.
pub(super) fn later_note(
    services: &Services,
    session: &Session,
    unknown: &[PendingCheck],
) -> String {
    let later = if session.is_for_one_call() { "" } else { "; a later reply has them" };
    let named = named(services, session, unknown);
    bracketed(format!("errors not known yet: {named}{later}"))
}

/// The note about earlier edits that introduced no errors.
pub(super) fn no_errors_note(
    services: &Services,
    session: &Session,
    checks: &[PendingCheck],
) -> String {
    bracketed(format!("no new errors: {}", named(services, session, checks)))
}

/// Files, each with the servers: `a.py (ruff, ty), b.py (ty)`.
fn named(services: &Services, session: &Session, checks: &[PendingCheck]) -> String {
    let mut files: Vec<(String, Vec<&str>)> = Vec::new();
    for check in checks {
        let shown = services.paths.show(session.directory(), &check.path);
        match files.iter_mut().find(|(file, _)| *file == shown) {
            Some((_, servers)) => servers.push(&check.server.1),
            None => files.push((shown, vec![&check.server.1])),
        }
    }
    let files = files.iter().map(|(file, servers)| format!("{file} ({})", servers.join(", ")));
    files.collect::<Vec<_>>().join(", ")
}

/// A note of one sentence.
pub(super) fn one_note(sentence: &str) -> String {
    bracketed(format!("check: {sentence}"))
}
