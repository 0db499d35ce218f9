//! The checks of a session whose results it has not been told.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_fs::ContentHash;

use super::LanguageServers;
use super::check::{CheckResult, FoundError};

/// Results that a session waits for. Beyond them, the oldest are forgotten.
const MAX_PENDING: usize = 100;

/// Texts that are kept because nobody knows the errors since.
const MAX_BASELINES: usize = 100;

/// Files whose told lines are known. Beyond them, an error may be told twice.
const MAX_TOLD_FILES: usize = 100;

/// A check that was made for the session.
#[derive(Debug, Clone)]
pub(crate) struct PendingCheck {
    pub(crate) path: PathBuf,
    /// The number and name of the server.
    pub(crate) server: (usize, String),
    /// The content that is checked.
    pub(crate) now: ContentHash,
    pub(crate) result: Arc<CheckResult>,
}

/// The last text whose errors the session knows, and the content after the last edit.
#[derive(Debug, Clone)]
struct Baseline {
    was: Option<Arc<str>>,
    now: ContentHash,
}

/// The checks of a session.
pub(crate) struct SessionChecks {
    servers: Arc<LanguageServers>,
    pending: Mutex<Vec<PendingCheck>>,
    baselines: Mutex<HashMap<(usize, PathBuf), Baseline>>,
    told_lines: Mutex<HashMap<PathBuf, ToldLines>>,
    told: Mutex<HashSet<String>>,
}

/// The lines of a content whose errors the session was told.
#[derive(Debug)]
struct ToldLines {
    content: ContentHash,
    lines: HashSet<u64>,
}

impl SessionChecks {
    pub(crate) fn new(servers: Arc<LanguageServers>) -> SessionChecks {
        servers.begin_session();
        SessionChecks {
            servers,
            pending: Mutex::default(),
            baselines: Mutex::default(),
            told_lines: Mutex::default(),
            told: Mutex::default(),
        }
    }

    pub(crate) fn servers(&self) -> &LanguageServers {
        &self.servers
    }

    /// The text with which an edit from `was` to `now` is compared: an earlier one, if the errors of the edits since are
    /// not known.
    pub(crate) fn baseline(
        &self,
        server: usize,
        path: &Path,
        was: (Option<Arc<str>>, Option<ContentHash>),
        now: ContentHash,
    ) -> Option<Arc<str>> {
        let mut baselines = self.baselines.lock();
        if baselines.len() >= MAX_BASELINES {
            baselines.clear();
        }
        let known = baselines.remove(&(server, path.to_owned()));
        let earlier = known.filter(|known| Some(known.now) == was.1);
        let was = earlier.map_or(was.0, |earlier| earlier.was);
        baselines.insert((server, path.to_owned()), Baseline { was: was.clone(), now });
        was
    }

    /// Adds a check whose result is to be told later. Earlier ones of the same file and server are obsolete.
    pub(crate) fn add(&self, check: PendingCheck) {
        let mut pending = self.pending.lock();
        pending.retain(|one| one.path != check.path || one.server != check.server);
        if pending.len() >= MAX_PENDING {
            pending.remove(0);
        }
        pending.push(check);
    }

    /// Whether a result of this server is awaited.
    pub(crate) fn awaits(&self, server: usize) -> bool {
        let pending = self.pending.lock();
        pending.iter().any(|one| one.server.0 == server && one.result.get().is_none())
    }

    /// Takes the checks whose results are known.
    pub(crate) fn take_known(&self) -> Vec<PendingCheck> {
        let mut pending = self.pending.lock();
        let is_known = |check: &mut PendingCheck| check.result.get().is_some();
        pending.extract_if(.., is_known).collect()
    }

    /// The errors of this content are known to the session.
    pub(crate) fn is_told(&self, check: &PendingCheck) {
        let mut baselines = self.baselines.lock();
        let key = (check.server.0, check.path.clone());
        if baselines.get(&key).is_some_and(|baseline| baseline.now == check.now) {
            baselines.remove(&key);
        }
    }

    /// The errors on lines for which no other server has reported one in this content: two servers report the same error
    /// in their own words. The caller tells them.
    pub(crate) fn without_told_lines(
        &self,
        check: &PendingCheck,
        mut errors: Vec<FoundError>,
    ) -> Vec<FoundError> {
        let mut told = self.told_lines.lock();
        if told.len() >= MAX_TOLD_FILES {
            told.clear();
        }
        let nothing = || ToldLines { content: check.now, lines: HashSet::new() };
        let file = told.entry(check.path.clone()).or_insert_with(nothing);
        if file.content != check.now {
            *file = nothing();
        }
        errors.retain(|error| !file.lines.contains(&error.line));
        file.lines.extend(errors.iter().map(|error| error.line));
        errors
    }

    /// Returns whether something is said for the first time.
    pub(crate) fn says_first(&self, what: &str) -> bool {
        self.told.lock().insert(what.to_owned())
    }
}

impl Drop for SessionChecks {
    fn drop(&mut self) {
        self.servers.end_session();
    }
}
