//! Who changed a file, as far as it is known.

use std::path::Path;

use toolcrib_fs::{ContentHash, Entry};

use crate::cx::Cx;
use crate::names::Name;

/// Who made a file say what it says, in words: a command or call of this session, or another session. Nothing,
/// if the journal does not tell: then it was another program.
pub(crate) fn author(cx: &Cx<'_>, path: &Path, hash: ContentHash) -> Option<String> {
    recorded(cx, path, hash).or_else(|| {
        let shell = cx.session().shell()?.changing(path)?;
        Some(format!("this session's command {shell}, which still runs"))
    })
}

fn recorded(cx: &Cx<'_>, path: &Path, hash: ContentHash) -> Option<String> {
    let entries = cx.runtime().journal()?.entries().ok()?;
    let made = |entry: &&Entry| {
        let mut files = entry.files.iter();
        files.any(|file| {
            file.after.is_some_and(|after| after.hash == hash && !after.link) && file.path() == path
        })
    };
    let entry = entries.iter().rev().find(made)?;
    let (id, about) = (entry.id, &entry.about);
    let is_ours = entry.process == std::process::id() && about.session == Some(cx.session().id());
    Some(match (&about.shell, is_ours) {
        (_, false) => format!("another session (change {id})"),
        (Some(shell), true) => format!("this session's command {shell} (change {id})"),
        (None, true) => format!("this session's {} (change {id})", Name::tool(&about.tool)),
    })
}
