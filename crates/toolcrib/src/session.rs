//! One agent's stay: where it is, and what it was allowed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_fs::Place;
use toolcrib_policy::Remembered;

use crate::seen::Seen;
use crate::shell::SessionShell;

/// More files than a session works with. Should it see more, it starts to remember anew.
const MAX_SEEN: usize = 10_000;

/// More answers than a person gives. Beyond, each question is asked again.
const MAX_REMEMBERED: usize = 10_000;

/// One agent's stay. Calls of one session may run at the same time; answers end with it, and so do the
/// commands that it started.
#[derive(Debug)]
pub struct Session {
    id: u64,
    directory: Place,
    remembered: Mutex<Remembered>,
    seen: Mutex<HashMap<PathBuf, Seen>>,
    asking: Mutex<()>,
    shell: Option<SessionShell>,
}

impl Session {
    pub(crate) fn new(id: u64, directory: Place, shell: Option<SessionShell>) -> Self {
        let (remembered, seen, asking) = (Mutex::default(), Mutex::default(), Mutex::default());
        Session { id, directory, remembered, seen, asking, shell }
    }

    /// Its number, for records.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn directory(&self) -> &Place {
        &self.directory
    }

    /// Its commands; nothing, where the host has no helper to run any.
    pub(crate) fn shell(&self) -> Option<&SessionShell> {
        self.shell.as_ref()
    }

    pub(crate) fn remembered(&self) -> Remembered {
        lock(&self.remembered).clone()
    }

    /// Keeps an answer: for exactly what was asked.
    pub(crate) fn remember(&self, asked: Remembered) {
        let mut all = lock(&self.remembered);
        if all.len() < MAX_REMEMBERED {
            all.extend(asked);
        }
    }

    /// What the session last saw of a file.
    pub(crate) fn seen(&self, path: &Path) -> Option<Seen> {
        lock(&self.seen).get(path).cloned()
    }

    pub(crate) fn saw(&self, path: PathBuf, seen: Seen) {
        let mut all = lock(&self.seen);
        if all.len() >= MAX_SEEN {
            all.clear();
        }
        all.insert(path, seen);
    }

    pub(crate) fn forget(&self, path: &Path) {
        lock(&self.seen).remove(path);
    }

    /// Held while somebody is asked, so that questions come one after the other.
    pub(crate) fn asking(&self) -> MutexGuard<'_, ()> {
        lock(&self.asking)
    }
}

/// What these locks guard is whole between any two statements, so a panic elsewhere spoils nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
