//! Parameters of an undo.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use toolcrib_exec::is_running_since;
use toolcrib_fs::Entry;
use toolcrib_policy::Effect;

use crate::changed_by::is_by_session;
use crate::cx::Cx;
use crate::error::Error;
use crate::history::{ChangeLog, HistoryEntry};
use crate::path_access::resolve_any;
use crate::session::Session;

/// A change to undo, or a part of it.
#[derive(Debug, Clone)]
pub struct UndoSelection {
    /// Id of the change.
    pub id: u64,
    /// The part of it.
    pub part: UndoPart,
}

/// The part of a change that is undone.
#[derive(Debug, Clone, Default)]
pub enum UndoPart {
    /// All of it that is in effect.
    #[default]
    Whole,
    /// Its effect at these paths and below.
    Paths(Vec<String>),
    /// One hunk of the diff of a file.
    Hunk {
        /// The file.
        path: String,
        /// The number of the hunk in the diff, from 0.
        index: usize,
    },
}

/// Whose changes an undo without an id reverts.
#[derive(Debug)]
pub(crate) enum ChangesBy {
    /// Those of all sessions.
    All,
    /// The session's own. Other sessions, which may still work here, made these.
    Session { own: HashSet<u64>, others: Vec<u64> },
}

impl ChangesBy {
    /// A session that works beside others reverts its own changes. One that works alone also reverts changes from
    /// before it began: the same agent may have made them. At the command line every call has its own session.
    ///
    /// Another session works here if it has changed something since this one began, or if its process still runs. In this
    /// process only the first counts: a client of HTTP may have a session for each connection.
    pub(crate) fn of(session: &Session, log: &ChangeLog) -> ChangesBy {
        let is_own = |change: &&HistoryEntry| is_by_session(session, &change.entry);
        let is_recent = |change: &&HistoryEntry| change.entry.time_ms > session.began_ms();
        let ids = |changes: &mut dyn Iterator<Item = &HistoryEntry>| -> Vec<u64> {
            changes
                .filter(|change| !change.undone && change.undoes.is_empty())
                .map(|change| change.id)
                .collect()
        };
        let mut other_processes: HashMap<u32, bool> = HashMap::new();
        let mut runs_elsewhere = |entry: &Entry| {
            entry.process != std::process::id()
                && *other_processes
                    .entry(entry.process)
                    .or_insert_with(|| is_running_since(entry.process, entry.time_ms))
        };
        let is_beside = |change: &&HistoryEntry| is_recent(change) || runs_elsewhere(&change.entry);
        // The newest change of a process decides whether the process that runs is the one that made it.
        let mut others =
            ids(&mut log.changes.iter().rev().filter(|change| !is_own(change)).filter(is_beside));
        others.reverse();
        if others.is_empty() || session.is_for_one_call() {
            return ChangesBy::All;
        }
        let own = ids(&mut log.changes.iter().filter(is_own)).into_iter().collect();
        ChangesBy::Session { own, others }
    }

    /// The changes of other sessions that work here.
    pub(crate) fn others(&self) -> &[u64] {
        match self {
            ChangesBy::All => &[],
            ChangesBy::Session { others, .. } => others,
        }
    }

    pub(super) fn includes(&self, change: &HistoryEntry) -> bool {
        match self {
            ChangesBy::All => true,
            ChangesBy::Session { own, .. } => own.contains(&change.id),
        }
    }
}

#[derive(Debug)]
pub(crate) enum UndoRequest {
    /// The last changes. Only those of the session, if other sessions work here.
    Steps(usize),
    /// The last `steps` changes of a path, which may mean any of `paths`.
    StepsAt { steps: usize, paths: Vec<PathBuf>, shown: String },
    /// One change, or its effect at a path.
    One { id: u64, at: Option<(Vec<PathBuf>, String)> },
    /// All changes from this id on.
    Since(u64),
    /// The effect of one change at some paths.
    Paths { id: u64, paths: Vec<(Vec<PathBuf>, String)> },
    /// One hunk of a file of a change.
    Hunk { id: u64, at: (Vec<PathBuf>, String), index: usize },
}

/// The resolved paths that a path may mean, most likely first, and the path as replies show it: the path
/// itself, which may be a symlink, and its target.
pub(crate) fn real_paths(cx: &Cx<'_>, given: &str) -> Result<(Vec<PathBuf>, String), Error> {
    let given = Path::new(given);
    // Not `Effect::Read`: a deleted file must not resolve to one with a similar name.
    let resolve = |path: &Path| resolve_any(cx.paths(), cx.session(), Effect::Write, path);
    let followed = resolve(given);
    let mut paths = Vec::new();
    if let (Some(parent), Some(name)) = (given.parent(), given.file_name()) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        paths.extend(resolve(parent).map(|parent| parent.path().join(name)));
    }
    match followed {
        Ok(place) if !paths.contains(&place.path()) => paths.push(place.path()),
        Err(error) if paths.is_empty() => return Err(error.into()),
        _ => {}
    }
    let shown = paths.first().map(|path| cx.show_real(path)).unwrap_or_default();
    Ok((paths, shown))
}
