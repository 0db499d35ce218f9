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

    /// Adds the errors of a server. Two servers report the same error in their own words, so a line has the errors of
    /// the first one only.
    pub(super) fn add(&mut self, server: &str, errors: Vec<FoundError>) {
        let is_taken =
            |error: &FoundError| self.errors.iter().any(|(_, one)| one.line == error.line);
        let new: Vec<FoundError> = errors.into_iter().filter(|error| !is_taken(error)).collect();
        self.errors.extend(new.into_iter().map(|error| (server.to_owned(), error)));
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
    let message: Vec<&str> = error.message.split_whitespace().collect();
    let message = truncate_line(&visible(message.join(" ").as_bytes()), MESSAGE_CHARS);
    let code = error.code.as_ref().map_or(String::new(), |code| {
        format!(" {}", truncate_line(&visible(code.as_bytes()), MESSAGE_CHARS))
    });
    format!("{message} ({server}{code})")
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
