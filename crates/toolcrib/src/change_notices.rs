//! Notices of files that others changed since the session saw them, once for each change.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_fs::{Content, ReadFile, Stamp};

use crate::changed_by::{Cause, cause};
use crate::reply::Reply;
use crate::runtime::Runtime;
use crate::seen_files::{Seen, ranges_text};
use crate::services::Services;
use crate::session::{Noticed, Session};

/// Files that a note names.
const MAX_NAMED: usize = 5;

/// Bytes that one check reads. The other files are checked after the next call.
const MAX_BYTES: u64 = 64 << 20;

/// A file that was changed since the session saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedFile {
    /// Its resolved path.
    pub path: PathBuf,
    /// Whether it was removed.
    pub is_removed: bool,
    /// The changed lines: first and last, from 1, in the file as it is now. Empty if only lines were removed, or if
    /// they are not known.
    pub lines: Vec<(u64, u64)>,
    /// Who changed it, if the journal knows: another session, and the ids of its changes.
    pub by: Option<String>,
}

impl Runtime {
    /// Returns the files that others changed since the session read or wrote them. Each change is returned once, here
    /// or in a reply. The session's own changes are not returned, nor are files that a running command of the session
    /// may be changing.
    ///
    /// ```
    /// # fn main() -> Result<(), toolcrib::Error> {
    /// # let runtime = toolcrib::Runtime::builder().root(env!("CARGO_MANIFEST_DIR")).build()?;
    /// let session = runtime.session();
    /// assert!(runtime.changes(&session).is_empty(), "it has seen no file");
    /// # Ok(())
    /// # }
    /// ```
    pub fn changes(&self, session: &Session) -> Vec<ChangedFile> {
        changes(self.services(), session)
    }
}

/// Adds a note about the files that others changed.
pub(crate) fn noted(services: &Services, session: &Session, reply: Reply) -> Reply {
    let changed = changes(services, session);
    if changed.is_empty() {
        return reply;
    }
    let shown = |one: &ChangedFile| services.paths.show(session.directory(), &one.path);
    let mut named: Vec<String> =
        changed.iter().take(MAX_NAMED).map(|one| one.described(&shown(one))).collect();
    if changed.len() > MAX_NAMED {
        named.push(format!("and {} more", changed.len() - MAX_NAMED));
    }
    let paths: Vec<Value> = changed.iter().map(|one| shown(one).into()).collect();
    reply
        .note(format!("[changed since this session saw it: {}]\n", named.join("; ")))
        .with("changed_files", paths)
}

impl ChangedFile {
    fn described(&self, shown: &str) -> String {
        let what = match (self.is_removed, self.lines.as_slice()) {
            (true, _) => " removed".to_owned(),
            (false, []) => String::new(),
            (false, lines) => format!(" {}", ranges_text(lines)),
        };
        let by = self.by.as_ref().map_or(String::new(), |by| format!(" by {by}"));
        format!("{shown}{what}{by}")
    }
}

fn changes(services: &Services, session: &Session) -> Vec<ChangedFile> {
    // Another call of the session may be changing files.
    let Some(mut notices) = session.notices() else { return Vec::new() };
    let workspace = services.paths.workspace.with(session.opened_roots().iter().cloned());
    let mut left = MAX_BYTES;
    let mut changed = Vec::new();
    for path in session.recently_seen() {
        let Some(seen) = session.seen(&path) else { continue };
        let known = notices.get(&path).filter(|known| known.seen == seen.hash).copied();
        let stamp = Stamp::at(&workspace.location(&path));
        if known.is_some_and(|known| known.stamp == stamp) {
            continue;
        }
        left = left.saturating_sub(stamp.map_or(0, |stamp| stamp.size));
        if left == 0 {
            break;
        }
        let Some(now) = current(services, session, &path, stamp.is_some()) else { continue };
        let hash = now.as_ref().map(|now| now.hash);
        let is_told = hash == known.map_or(Some(seen.hash), |known| known.hash);
        let is_as_seen = hash == Some(seen.hash);
        let cause = if is_told || is_as_seen {
            Cause::Session
        } else {
            cause(&services.history, session, &path, seen.hash, hash)
        };
        if matches!(cause, Cause::RunningCommand) {
            continue;
        }
        let stamp = stamp.map(Stamp::settled);
        notices.insert(path.clone(), Noticed { stamp, hash, seen: seen.hash });
        let by = match cause {
            Cause::Session | Cause::RunningCommand => continue,
            Cause::Recorded(by) => Some(by),
            Cause::Unknown => None,
        };
        let lines = now.as_ref().and_then(|now| seen.changed_ranges(now)).unwrap_or_default();
        changed.push(ChangedFile { path, is_removed: now.is_none(), lines, by });
    }
    changed
}

/// The content of a file as it is now: `Some(None)` if it was removed, `None` if it cannot be read.
fn current(
    services: &Services,
    session: &Session,
    path: &Path,
    exists: bool,
) -> Option<Option<Seen>> {
    if !exists {
        return Some(None);
    }
    let place = services.paths.resolve(session, session.directory(), path).ok()?;
    let file = ReadFile::open(&place).ok()?;
    let content = Content::from(file.read_all(services.limits.look_bytes).ok()?);
    Some(Some(Seen::of(&content)))
}
