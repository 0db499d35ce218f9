//! Session state: approvals, seen files, commands.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use toolcrib_exec::Ending;
use toolcrib_fs::{ContentHash, ResolvedPath, Root, Stamp, unix_ms};
use toolcrib_policy::{Policy, Proposal, SessionApprovals};
use toolcrib_text::Encoding;

use crate::command_state::SessionShell;
use crate::language_servers::SessionChecks;
use crate::question_turns::QuestionTurns;
use crate::seen_files::Seen;
use crate::tmp_leftovers_note;

/// More files than a session uses. Beyond that, it forgets all of them.
const MAX_SEEN: usize = 10_000;

/// Files that are checked for changes after each call: a system call for each.
const MAX_CHECKED: usize = 200;

/// Contents of one file that count as seen after an undo.
const MAX_VERSIONS: usize = 16;

/// More answers than a person gives. Beyond that, each question is asked again.
const MAX_REMEMBERED: usize = 10_000;

/// More rules than a person accepts. Beyond that, each question is asked again.
const MAX_AGREED: usize = 100;

/// State of one agent: working directory, approvals, files read, exported variables, jobs.
///
/// Calls of one session may run at the same time. Dropping the session ends its commands and forgets its
/// approvals. Create it with [`crate::Runtime::session`].
///
/// ```
/// # fn main() -> Result<(), toolcrib::Error> {
/// let runtime = toolcrib::Runtime::builder().root(env!("CARGO_MANIFEST_DIR")).build()?;
/// let (first, second) = (runtime.session(), runtime.session());
/// assert_ne!(first.id(), second.id());
/// # Ok(())
/// # }
/// ```
pub struct Session {
    id: u64,
    directory: ResolvedPath,
    remembered: Mutex<SessionApprovals>,
    /// Approvals that end at a time.
    expiring: Mutex<Vec<(Instant, SessionApprovals)>>,
    refused: Mutex<SessionApprovals>,
    /// Permanent rules that were accepted during the session.
    agreed: Mutex<Vec<Proposal>>,
    /// The last problem with the operator's rules that a reply has named.
    rules_problem: Mutex<Option<Arc<str>>>,
    /// The rules of earlier calls.
    policies: Mutex<HashMap<PolicyVariant, SessionPolicy>>,
    seen: Mutex<HashMap<PathBuf, Seen>>,
    /// The contents of files that the session has seen completely, the last one first.
    seen_whole: Mutex<HashMap<PathBuf, VecDeque<ContentHash>>>,
    /// The files seen last, the last one first.
    recently_seen: Mutex<VecDeque<PathBuf>>,
    /// Changes of seen files that the session knows.
    notices: Mutex<HashMap<PathBuf, Noticed>>,
    /// Number of running calls.
    running_calls: AtomicUsize,
    /// Encodings in which the session has read or written files, if their content does not tell.
    encodings: Mutex<HashMap<PathBuf, Encoding>>,
    /// Files that a note has named as executed later.
    named: Mutex<HashSet<PathBuf>>,
    questions: QuestionTurns,
    shell: Option<SessionShell>,
    /// The session's own directories, opened on demand.
    own_roots: OnceLock<Vec<Arc<Root>>>,
    changed_outside: Mutex<ChangedOutside>,
    notice: Option<NoticeSink>,
    /// Checks of edited files, if language servers make them.
    checks: Option<SessionChecks>,
    began: SystemTime,
    one_call: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A state of a file that the session knows, besides the content that it saw.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noticed {
    /// `None` if the file was removed.
    pub(crate) stamp: Option<Stamp>,
    pub(crate) hash: Option<ContentHash>,
    /// The content that the session had seen.
    pub(crate) seen: ContentHash,
}

/// A kind of call that has rules of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PolicyVariant {
    pub(crate) tool: String,
    /// Whether its command runs in a sandbox.
    pub(crate) is_confined: bool,
    /// Whether that sandbox has a loopback of its own.
    pub(crate) has_own_loopback: bool,
}

/// The rules for one kind of call.
struct SessionPolicy {
    /// The rules of the runtime. A session can be used with several runtimes.
    base: Arc<Policy>,
    /// The numbers of accepted rules and of own directories that they include.
    made_with: (usize, usize),
    policy: Arc<Policy>,
}

/// Receives messages to the user that belong to no reply.
pub(crate) type NoticeSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Changes outside the workspace.
#[derive(Debug, Default)]
struct ChangedOutside {
    /// Ids in the journal.
    ids: HashSet<u64>,
    paths: HashSet<PathBuf>,
}

impl Session {
    pub(crate) fn new(
        id: u64,
        directory: ResolvedPath,
        shell: Option<SessionShell>,
        notice: Option<NoticeSink>,
        checks: Option<SessionChecks>,
    ) -> Self {
        Session {
            id,
            directory,
            remembered: Mutex::default(),
            expiring: Mutex::default(),
            refused: Mutex::default(),
            agreed: Mutex::default(),
            rules_problem: Mutex::default(),
            policies: Mutex::default(),
            seen: Mutex::default(),
            seen_whole: Mutex::default(),
            recently_seen: Mutex::default(),
            notices: Mutex::default(),
            running_calls: AtomicUsize::new(0),
            encodings: Mutex::default(),
            named: Mutex::default(),
            questions: QuestionTurns::default(),
            shell,
            own_roots: OnceLock::new(),
            changed_outside: Mutex::default(),
            notice,
            checks,
            began: SystemTime::now(),
            one_call: false,
        }
    }

    /// Marks the session as ending after its first call, so that no reply refers to later calls.
    pub fn for_one_call(mut self) -> Session {
        self.one_call = true;
        self
    }

    /// When the session began, in milliseconds since 1970, as the journal counts.
    pub(crate) fn began_ms(&self) -> u64 {
        unix_ms(self.began)
    }

    pub(crate) fn is_for_one_call(&self) -> bool {
        self.one_call
    }

    /// Ends all running commands and returns their number. Sends SIGTERM, and SIGKILL after two seconds.
    pub fn end_commands(&self) -> usize {
        self.shell.as_ref().map_or(0, |shell| shell.jobs().kill_all(Ending::Polite))
    }

    /// Forgets the commands that ended at least `age` ago, with their output. Returns their number.
    pub fn forget_commands(&self, age: Duration) -> usize {
        self.shell.as_ref().map_or(0, |shell| shell.jobs().clean_up(age))
    }

    /// Returns the id of the session, for records. Ids are unique within a runtime.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn directory(&self) -> &ResolvedPath {
        &self.directory
    }

    /// The session's commands. `None` if the host has no helper.
    pub(crate) fn shell(&self) -> Option<&SessionShell> {
        self.shell.as_ref()
    }

    /// The session's own directories, opened by the first call.
    pub(crate) fn own_roots(&self, open: impl FnOnce() -> Vec<Arc<Root>>) -> &[Arc<Root>] {
        self.own_roots.get_or_init(open)
    }

    /// The session's own directories, if they are open.
    pub(crate) fn opened_roots(&self) -> &[Arc<Root>] {
        self.own_roots.get().map_or(&[], Vec::as_slice)
    }

    /// Records changes outside the workspace.
    pub(crate) fn changed_outside(&self, id: Option<u64>, paths: Vec<PathBuf>) {
        let mut changed = self.changed_outside.lock();
        if changed.paths.len() < MAX_SEEN {
            changed.ids.extend(id);
            changed.paths.extend(paths);
        }
    }

    /// Whether this session made the change with this id outside the workspace.
    pub(crate) fn made_outside(&self, id: u64) -> bool {
        self.changed_outside.lock().ids.contains(&id)
    }

    /// Whether this session has changed a path outside, or a path below it.
    pub(crate) fn has_changed_outside(&self, path: &Path) -> bool {
        self.changed_outside.lock().paths.iter().any(|changed| changed.starts_with(path))
    }

    /// The approvals that hold now.
    pub(crate) fn remembered(&self) -> SessionApprovals {
        let mut all = self.remembered.lock().clone();
        let mut expiring = self.expiring.lock();
        if !expiring.is_empty() {
            let now = Instant::now();
            expiring.retain(|(end, _)| *end > now);
            all.extend(expiring.iter().flat_map(|(_, asked)| asked.iter().cloned()));
        }
        all
    }

    /// Remembers an approval of exactly these accesses.
    pub(crate) fn remember(&self, asked: SessionApprovals) {
        let mut all = self.remembered.lock();
        if all.len() < MAX_REMEMBERED {
            all.extend(asked);
        }
        self.questions.note_change();
    }

    /// Remembers an approval of exactly these accesses for some time.
    pub(crate) fn remember_for(&self, asked: SessionApprovals, time: Duration) {
        let mut all = self.expiring.lock();
        if let Some(end) = Instant::now().checked_add(time)
            && all.len() < MAX_REMEMBERED
        {
            all.push((end, asked));
        }
        self.questions.note_change();
    }

    /// Remembers a permanent denial.
    pub(crate) fn refuse(&self, asked: SessionApprovals) {
        let mut all = self.refused.lock();
        if all.len() < MAX_REMEMBERED {
            all.extend(asked);
        }
        self.questions.note_change();
    }

    /// The accesses that were permanently denied.
    pub(crate) fn refused(&self) -> SessionApprovals {
        self.refused.lock().clone()
    }

    /// Remembers accepted rules.
    pub(crate) fn agree(&self, rules: Proposal) {
        let mut all = self.agreed.lock();
        if all.len() < MAX_AGREED {
            all.push(rules);
        }
        self.questions.note_change();
    }

    /// Whether a reply of this session has not named this problem with the rules yet.
    pub(crate) fn is_new_rules_problem(&self, problem: &Arc<str>) -> bool {
        let told = self.rules_problem.lock().replace(problem.clone());
        told.as_ref() != Some(problem)
    }

    /// The rules for a kind of call, with the session's own directories and the rules that it has accepted. `base` are
    /// the rules of the runtime.
    pub(crate) fn policy(&self, variant: PolicyVariant, base: Arc<Policy>) -> Arc<Policy> {
        let (agreed, own) = (self.agreed.lock(), self.opened_roots());
        if !variant.is_confined && own.is_empty() && agreed.is_empty() {
            return base;
        }
        let mut known = self.policies.lock();
        let made_with = (agreed.len(), own.len());
        if let Some(policy) = known.get(&variant)
            && policy.made_with == made_with
            && Arc::ptr_eq(&policy.base, &base)
        {
            return policy.policy.clone();
        }
        let own = own.iter().flat_map(|root| root.spellings());
        let policy = Policy::clone(&base).confined(variant.is_confined).inside(own);
        let policy = policy.own_loopback(variant.has_own_loopback);
        let policy = Arc::new(agreed.iter().fold(policy, Policy::with_proposal));
        known.insert(variant, SessionPolicy { base, made_with, policy: policy.clone() });
        policy
    }

    /// Whether any of these accesses was permanently denied.
    pub(crate) fn has_refused(&self, asks: &SessionApprovals) -> bool {
        !self.refused.lock().is_disjoint(asks)
    }

    /// The content that the session last saw of a file.
    pub(crate) fn seen(&self, path: &Path) -> Option<Seen> {
        self.seen.lock().get(path).cloned()
    }

    pub(crate) fn remember_seen(&self, path: PathBuf, seen: Seen) {
        let mut recent = self.recently_seen.lock();
        recent.retain(|known| *known != path);
        recent.push_front(path.clone());
        recent.truncate(MAX_CHECKED);
        drop(recent);
        if seen.is_whole() {
            self.remember_whole(&path, seen.hash);
        }
        let mut all = self.seen.lock();
        if all.len() >= MAX_SEEN {
            all.clear();
        }
        all.insert(path, seen);
    }

    fn remember_whole(&self, path: &Path, hash: ContentHash) {
        let mut all = self.seen_whole.lock();
        if all.len() >= MAX_SEEN {
            all.clear();
        }
        let versions = all.entry(path.to_owned()).or_default();
        versions.retain(|known| *known != hash);
        versions.push_front(hash);
        versions.truncate(MAX_VERSIONS);
    }

    /// Whether the session has seen this content of a file completely, at any time.
    pub(crate) fn has_seen_whole(&self, path: &Path, hash: ContentHash) -> bool {
        self.seen_whole.lock().get(path).is_some_and(|versions| versions.contains(&hash))
    }

    pub(crate) fn forget(&self, path: &Path) {
        self.seen.lock().remove(path);
    }

    /// The files whose changes are noticed, the last seen first.
    pub(crate) fn recently_seen(&self) -> Vec<PathBuf> {
        self.recently_seen.lock().iter().cloned().collect()
    }

    /// The known changes of seen files. `None` while another call runs or checks for changes.
    pub(crate) fn notices(&self) -> Option<MutexGuard<'_, HashMap<PathBuf, Noticed>>> {
        if self.running_calls.load(Ordering::Acquire) > 0 {
            return None;
        }
        let mut notices = self.notices.try_lock()?;
        if notices.len() >= MAX_SEEN {
            notices.clear();
        }
        Some(notices)
    }

    /// Counts a call as running until the value is dropped.
    pub(crate) fn begin_call(&self) -> RunningCall<'_> {
        self.running_calls.fetch_add(1, Ordering::AcqRel);
        RunningCall { session: self }
    }

    /// The encoding in which the session has read or written a file, if only statistics tell it, or if its
    /// content looks like another one.
    pub(crate) fn encoding(&self, path: &Path) -> Option<Encoding> {
        self.encodings.lock().get(path).copied()
    }

    /// Remembers the encoding that was detected, or used again, for a file.
    pub(crate) fn remember_encoding(&self, path: &Path, encoding: Encoding) {
        let is_known = self.encoding(path) == Some(encoding);
        self.set_encoding(path, encoding, is_known || encoding.is_guessed());
    }

    /// Remembers the encoding in which a file was written.
    pub(crate) fn remember_written(&self, path: &Path, encoding: Encoding, content: &[u8]) {
        let is_evident = !encoding.is_guessed() && Encoding::of(content) == encoding;
        self.set_encoding(path, encoding, !is_evident);
    }

    fn set_encoding(&self, path: &Path, encoding: Encoding, keep: bool) {
        let mut all = self.encodings.lock();
        if !keep {
            all.remove(path);
            return;
        }
        if all.len() >= MAX_SEEN {
            all.clear();
        }
        all.insert(path.to_owned(), encoding);
    }

    /// Whether a file was named.
    pub(crate) fn is_named(&self, path: &Path) -> bool {
        self.named.lock().contains(path)
    }

    /// Returns whether a file is named for the first time, and marks it as named.
    pub(crate) fn mark_named(&self, path: &Path) -> bool {
        let mut named = self.named.lock();
        if named.len() >= MAX_SEEN {
            named.clear();
        }
        named.insert(path.to_owned())
    }

    /// Checks of edited files, if language servers make them.
    pub(crate) fn checks(&self) -> Option<&SessionChecks> {
        self.checks.as_ref()
    }

    /// The order of its questions.
    pub(crate) fn questions(&self) -> &QuestionTurns {
        &self.questions
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let tmp = self.shell.as_ref().and_then(|shell| shell.jobs().existing_tmp());
        let left = tmp.and_then(|tmp| tmp_leftovers_note::in_directory(&tmp));
        if let (Some(left), Some(notice)) = (left, &self.notice) {
            notice(&left.sentence());
        }
    }
}

/// A running call of a session.
pub(crate) struct RunningCall<'a> {
    session: &'a Session,
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.session.running_calls.fetch_sub(1, Ordering::AcqRel);
        self.session.questions.note_change();
    }
}
