//! One agent's stay: where it is, and what it was allowed.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use toolcrib_exec::Ending;
use toolcrib_fs::{ResolvedPath, Root};
use toolcrib_policy::{Policy, Proposal, SessionApprovals};

use crate::cancel::Cancel;
use crate::error::Error;
use crate::seen_files::Seen;
use crate::shell::SessionShell;
use crate::tmp_leftovers;

/// More files than a session works with. Should it see more, it starts to remember anew.
const MAX_SEEN: usize = 10_000;

/// More answers than a person gives. Beyond, each question is asked again.
const MAX_REMEMBERED: usize = 10_000;

/// More rules than a person agrees to. Beyond, each question is asked again.
const MAX_AGREED: usize = 100;

/// How long a wish to cancel may go unseen while another question is open.
const GLANCE: Duration = Duration::from_millis(50);

/// One agent's stay. Calls of one session may run at the same time; answers end with it, and so do the
/// commands that it started.
pub struct Session {
    id: u64,
    directory: ResolvedPath,
    remembered: Mutex<SessionApprovals>,
    refused: Mutex<SessionApprovals>,
    /// Rules that hold always, and were agreed to since the session began.
    agreed: Mutex<Vec<Proposal>>,
    seen: Mutex<HashMap<PathBuf, Seen>>,
    /// Files that were named as ones that run later.
    named: Mutex<HashSet<PathBuf>>,
    /// Whether somebody is being asked.
    asking: Mutex<bool>,
    answered: Condvar,
    shell: Option<SessionShell>,
    /// Its own directories, once they are needed.
    own_roots: OnceLock<Vec<Arc<Root>>>,
    changed_outside: Mutex<ChangedOutside>,
    notice: Option<NoticeSink>,
    one_call: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Whom a host lets know what a person should, when no reply is left to say it in.
pub(crate) type NoticeSink = Arc<dyn Fn(&str) + Send + Sync>;

/// What a session has changed outside the workspace.
#[derive(Debug, Default)]
struct ChangedOutside {
    /// The numbers of the changes in the journal.
    ids: HashSet<u64>,
    paths: HashSet<PathBuf>,
}

impl Session {
    pub(crate) fn new(
        id: u64,
        directory: ResolvedPath,
        shell: Option<SessionShell>,
        notice: Option<NoticeSink>,
    ) -> Self {
        Session {
            id,
            directory,
            remembered: Mutex::default(),
            refused: Mutex::default(),
            agreed: Mutex::default(),
            seen: Mutex::default(),
            named: Mutex::default(),
            asking: Mutex::default(),
            answered: Condvar::new(),
            shell,
            own_roots: OnceLock::new(),
            changed_outside: Mutex::default(),
            notice,
            one_call: false,
        }
    }

    /// Says that the session ends with its first call, so that no reply promises what comes after it.
    pub fn for_one_call(mut self) -> Session {
        self.one_call = true;
        self
    }

    pub(crate) fn is_for_one_call(&self) -> bool {
        self.one_call
    }

    /// Ends all commands that run; answers how many. They are given two seconds to end by themselves.
    pub fn end_commands(&self) -> usize {
        self.shell.as_ref().map_or(0, |shell| shell.jobs().kill_all(Ending::Polite))
    }

    /// Forgets the commands that ended so long ago, and their output; answers how many.
    pub fn forget_commands(&self, age: Duration) -> usize {
        self.shell.as_ref().map_or(0, |shell| shell.jobs().clean_up(age))
    }

    /// Its number, for records.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn directory(&self) -> &ResolvedPath {
        &self.directory
    }

    /// Its commands; nothing, where the host has no helper to run any.
    pub(crate) fn shell(&self) -> Option<&SessionShell> {
        self.shell.as_ref()
    }

    /// Its own directories, opened the first time.
    pub(crate) fn own_roots(&self, open: impl FnOnce() -> Vec<Arc<Root>>) -> &[Arc<Root>] {
        self.own_roots.get_or_init(open)
    }

    /// Its own directories, as far as they were opened.
    pub(crate) fn opened_roots(&self) -> &[Arc<Root>] {
        self.own_roots.get().map_or(&[], Vec::as_slice)
    }

    /// Files outside the workspace were changed.
    pub(crate) fn changed_outside(&self, id: Option<u64>, paths: Vec<PathBuf>) {
        let mut changed = lock(&self.changed_outside);
        if changed.paths.len() < MAX_SEEN {
            changed.ids.extend(id);
            changed.paths.extend(paths);
        }
    }

    /// Whether this change in the journal was made outside, by this session.
    pub(crate) fn made_outside(&self, id: u64) -> bool {
        lock(&self.changed_outside).ids.contains(&id)
    }

    /// Whether this session has changed a path outside, or something beneath it.
    pub(crate) fn has_changed_outside(&self, path: &Path) -> bool {
        lock(&self.changed_outside).paths.iter().any(|changed| changed.starts_with(path))
    }

    pub(crate) fn remembered(&self) -> SessionApprovals {
        lock(&self.remembered).clone()
    }

    /// Keeps an answer: for exactly what was asked.
    pub(crate) fn remember(&self, asked: SessionApprovals) {
        let mut all = lock(&self.remembered);
        if all.len() < MAX_REMEMBERED {
            all.extend(asked);
        }
    }

    /// Keeps a refusal that is for good.
    pub(crate) fn refuse(&self, asked: SessionApprovals) {
        let mut all = lock(&self.refused);
        if all.len() < MAX_REMEMBERED {
            all.extend(asked);
        }
    }

    /// Keeps rules that were agreed to.
    pub(crate) fn agree(&self, rules: Proposal) {
        let mut all = lock(&self.agreed);
        if all.len() < MAX_AGREED {
            all.push(rules);
        }
    }

    /// A policy, with the rules that were agreed to.
    pub(crate) fn policy(&self, policy: &Policy) -> Policy {
        lock(&self.agreed).iter().fold(policy.clone(), Policy::with_proposal)
    }

    /// Whether something of this was refused for good.
    pub(crate) fn has_refused(&self, asks: &SessionApprovals) -> bool {
        !lock(&self.refused).is_disjoint(asks)
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

    /// Whether a file is named for the first time; from then on it was.
    pub(crate) fn names_first(&self, path: &Path) -> bool {
        let mut named = lock(&self.named);
        if named.len() >= MAX_SEEN {
            named.clear();
        }
        named.insert(path.to_owned())
    }

    /// Waits until nobody is being asked, so that questions come one after the other.
    pub(crate) fn asking(&self, cancel: &Cancel) -> Result<Turn<'_>, Error> {
        let mut asking = lock(&self.asking);
        while *asking {
            cancel.check()?;
            let waited = self.answered.wait_timeout(asking, GLANCE);
            asking = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *asking = true;
        Ok(Turn { session: self })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let tmp = self.shell.as_ref().and_then(|shell| shell.jobs().existing_tmp());
        let left = tmp.and_then(|tmp| tmp_leftovers::in_directory(&tmp));
        if let (Some(left), Some(notice)) = (left, &self.notice) {
            notice(&left.sentence());
        }
    }
}

/// The turn to ask, until it is dropped.
pub(crate) struct Turn<'a> {
    session: &'a Session,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.session.asking) = false;
        self.session.answered.notify_one();
    }
}

/// What these locks guard is whole between any two statements, so a panic elsewhere spoils nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
