//! Which calls, commands and sessions changed a file.

use std::path::Path;

use toolcrib_fs::{ContentHash, Entry, FileChange, Version};

use crate::history::History;
use crate::message_names::Name;
use crate::phrases::counted;
use crate::session::Session;

/// Changes named in a reply.
const MAX_NAMED: usize = 5;

/// Describes the origin of a file's content since the session saw the content `seen`: commands and calls of this
/// session, and other sessions. `None` if the journal does not know it: then another program wrote the file.
pub(crate) fn authors(
    history: &History,
    session: &Session,
    path: &Path,
    seen: ContentHash,
    now: ContentHash,
) -> Option<String> {
    recorded(history, session, path, (seen, now)).or_else(|| {
        let shell = session.shell()?.job_changing(path)?;
        Some(format!("this session's command {shell}, which still runs"))
    })
}

/// Who changed a file since the session saw it.
pub(crate) enum Cause {
    /// Only the session itself.
    Session,
    /// A command of the session that still runs may be changing it.
    RunningCommand,
    /// Recorded changes, in words.
    Recorded(String),
    Unknown,
}

/// Who changed a file since the session saw the content `seen`. `now` is `None` if it was removed.
pub(crate) fn cause(
    history: &History,
    session: &Session,
    path: &Path,
    seen: ContentHash,
    now: Option<ContentHash>,
) -> Cause {
    if session.shell().and_then(|shell| shell.job_changing(path)).is_some() {
        return Cause::RunningCommand;
    }
    let Some(entries) = history.journal().and_then(|journal| journal.entries().ok()) else {
        return Cause::Unknown;
    };
    let made = |file: &FileChange| {
        let is_now = match now {
            Some(now) => is_version(file.after, now),
            None => file.after.is_none(),
        };
        is_now && file.path() == path
    };
    let last = entries.iter().rev().find(|entry| entry.files.iter().any(made));
    match (last, now) {
        (None, _) => Cause::Unknown,
        (Some(last), _) if is_by_session(session, last) => Cause::Session,
        (Some(_), Some(now)) => {
            recorded(history, session, path, (seen, now)).map_or(Cause::Unknown, Cause::Recorded)
        }
        (Some(last), None) => {
            Cause::Recorded(format!("{} (change {})", author(session, last), last.id))
        }
    }
}

/// Whether this session made a change.
pub(crate) fn is_by_session(session: &Session, entry: &Entry) -> bool {
    entry.process == std::process::id() && entry.about.session == Some(session.id())
}

/// The recorded changes that led from the content `seen` to `now`, first to last.
fn recorded(
    history: &History,
    session: &Session,
    path: &Path,
    (seen, now): (ContentHash, ContentHash),
) -> Option<String> {
    let entries = history.journal()?.entries().ok()?;
    let (mut changes, mut hash) = (Vec::new(), Some(now));
    for entry in entries.iter().rev() {
        let Some(after) = hash.filter(|&hash| hash != seen) else { break };
        let made = |file: &&FileChange| is_version(file.after, after) && file.path() == path;
        let Some(file) = entry.files.iter().find(made) else { continue };
        changes.push(entry);
        hash = file.before.map(|before| before.hash);
    }
    if changes.is_empty() {
        return None;
    }
    let is_all_known = hash.is_none_or(|hash| hash == seen);
    let mut authors: Vec<String> = Vec::new();
    if changes.len() > MAX_NAMED {
        authors.push(counted((changes.len() - MAX_NAMED) as u64, "earlier change"));
    } else if !is_all_known {
        authors.push("an unrecorded change".to_owned());
    }
    changes.truncate(MAX_NAMED);
    changes.reverse();
    for same in changes.chunk_by(|one, next| author(session, one) == author(session, next)) {
        let author = same.first().map(|entry| author(session, entry)).unwrap_or_default();
        let ids: Vec<String> = same.iter().map(|entry| entry.id.to_string()).collect();
        let noun = if ids.len() == 1 { "change" } else { "changes" };
        authors.push(format!("{author} ({noun} {})", ids.join(", ")));
    }
    Some(authors.join(", "))
}

fn is_version(version: Option<Version>, hash: ContentHash) -> bool {
    version.is_some_and(|version| version.hash == hash && !version.link)
}

/// The author of a change.
fn author(session: &Session, entry: &Entry) -> String {
    let about = &entry.about;
    match (&about.shell, is_by_session(session, entry)) {
        (_, false) if !about.undoes.is_empty() => {
            format!("{} in another session", Name::tool(&about.tool))
        }
        (_, false) => "another session".to_owned(),
        (Some(shell), true) => format!("this session's command {shell}"),
        (None, true) => format!("this session's {}", Name::tool(&about.tool)),
    }
}
