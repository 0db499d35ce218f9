//! Which call, command or session last changed a file.

use std::path::Path;

use toolcrib_fs::{ContentHash, Entry};

use crate::dialect_names::Name;
use crate::history::History;
use crate::session::Session;

/// Describes the origin of a file's content: a command or call of this session, or another session. `None` if
/// the journal does not know it: then another program wrote the file.
pub(crate) fn author(
    history: &History,
    session: &Session,
    path: &Path,
    hash: ContentHash,
) -> Option<String> {
    recorded(history, session, path, hash).or_else(|| {
        let shell = session.shell()?.job_changing(path)?;
        Some(format!("this session's command {shell}, which still runs"))
    })
}

/// Whether this session made a change.
pub(crate) fn is_by_session(session: &Session, entry: &Entry) -> bool {
    entry.process == std::process::id() && entry.about.session == Some(session.id())
}

fn recorded(
    history: &History,
    session: &Session,
    path: &Path,
    hash: ContentHash,
) -> Option<String> {
    let entries = history.journal()?.entries().ok()?;
    let made = |entry: &&Entry| {
        let mut files = entry.files.iter();
        files.any(|file| {
            file.after.is_some_and(|after| after.hash == hash && !after.link) && file.path() == path
        })
    };
    let entry = entries.iter().rev().find(made)?;
    let (id, about) = (entry.id, &entry.about);
    Some(match (&about.shell, is_by_session(session, entry)) {
        (_, false) if !about.undoes.is_empty() => {
            format!("{} in another session (change {id})", Name::tool(&about.tool))
        }
        (_, false) => format!("another session (change {id})"),
        (Some(shell), true) => format!("this session's command {shell} (change {id})"),
        (None, true) => format!("this session's {} (change {id})", Name::tool(&about.tool)),
    })
}
