//! One agent's stay: where it is, and what it was allowed.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_fs::Place;
use toolcrib_policy::Effect;

/// One agent's stay. Calls of one session may run at the same time; answers end with it.
#[derive(Debug)]
pub struct Session {
    id: u64,
    directory: Place,
    remembered: Mutex<BTreeSet<Effect>>,
    asking: Mutex<()>,
}

impl Session {
    pub(crate) fn new(id: u64, directory: Place) -> Self {
        Session { id, directory, remembered: Mutex::default(), asking: Mutex::default() }
    }

    /// Its number, for records.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn directory(&self) -> &Place {
        &self.directory
    }

    pub(crate) fn remembered(&self) -> BTreeSet<Effect> {
        lock(&self.remembered).clone()
    }

    pub(crate) fn remember(&self, effects: impl IntoIterator<Item = Effect>) {
        lock(&self.remembered).extend(effects);
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
