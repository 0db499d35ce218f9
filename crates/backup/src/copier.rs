//! The thread that copies the workspaces of this process.
//!
//! The journal and the files are the queue. Calls never wait for this thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use toolcrib::{BackupSource, WriteGate, now_ms};
use toolcrib_net::Backoff;

use crate::copy::{Copy, Round};
use crate::error::{BackupError, BackupErrorKind};
use crate::objects::Objects;
use crate::segment::LeftOut;

/// How often it looks for new changes in the history. Looking costs one system call for each workspace.
const INTERVAL: Duration = Duration::from_secs(1);

/// How often it looks for changes by other programs, and by commands that still run.
const RESCAN: Duration = Duration::from_secs(20);

/// After a file that was changed so recently that a later change could not be noticed.
const RESCAN_SOON: Duration = Duration::from_secs(2);

/// It rests this many times as long as a round has taken, so that large workspaces do not keep a processor busy.
const REST: u32 = 4;

/// The time that the end of the program waits for the last changes.
const LAST_ROUND: Duration = Duration::from_secs(5);

/// Copies workspaces. Dropping it copies the remaining changes, within a few seconds.
pub struct Copier {
    shared: Arc<Shared>,
}

struct Shared {
    machine: String,
    notice: Box<dyn Fn(&str) + Send + Sync>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    added: Vec<Followed>,
    is_ending: bool,
    has_ended: bool,
}

/// A workspace that is copied.
struct Followed {
    copy: Copy,
    gate: Option<Arc<dyn WriteGate>>,
    is_closed: Arc<AtomicBool>,
    /// The history when it was copied last.
    log: Option<(u64, u64)>,
    /// When to look at the files again.
    next_scan: Instant,
    not_before: Instant,
    backoff: Backoff,
    has_problem: bool,
}

/// As long as this exists, a workspace is copied. After that, once more.
#[derive(Debug)]
pub struct FollowedWorkspace(Arc<AtomicBool>);

impl Drop for FollowedWorkspace {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Copier {
    /// Starts the thread. `machine` is the name of this machine in the backups. `notice` gets a sentence when copying begins to fail, and
    /// when it works again.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started.
    pub fn start(
        machine: &str,
        notice: impl Fn(&str) + Send + Sync + 'static,
    ) -> std::io::Result<Copier> {
        let (machine, notice) = (machine.to_owned(), Box::new(notice));
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { machine, notice, state, changed });
        let thread = shared.clone();
        std::thread::Builder::new().name("backup".to_owned()).spawn(move || {
            run(&thread);
            thread.state.lock().has_ended = true;
            thread.changed.notify_all();
        })?;
        Ok(Copier { shared })
    }

    /// Copies a workspace from now on. With a gate, only while it lets this machine write the workspace; then a backup that another
    /// machine has continued is continued here.
    pub fn follow(
        &self,
        source: BackupSource,
        objects: Objects,
        gate: Option<Arc<dyn WriteGate>>,
    ) -> FollowedWorkspace {
        let is_closed = Arc::new(AtomicBool::new(false));
        let now = Instant::now();
        let followed = Followed {
            copy: Copy::new(source, objects, &self.shared.machine),
            gate,
            is_closed: is_closed.clone(),
            log: None,
            next_scan: now,
            not_before: now,
            backoff: Backoff::default(),
            has_problem: false,
        };
        self.shared.state.lock().added.push(followed);
        FollowedWorkspace(is_closed)
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_ending = true;
        self.shared.changed.notify_all();
        let until = Instant::now() + LAST_ROUND;
        while !state.has_ended && !self.shared.changed.wait_until(&mut state, until).timed_out() {}
    }
}

fn run(shared: &Shared) {
    let mut all: Vec<Followed> = Vec::new();
    loop {
        let is_ending = {
            let mut state = shared.state.lock();
            if !state.is_ending && state.added.is_empty() {
                shared.changed.wait_for(&mut state, INTERVAL);
            }
            all.append(&mut state.added);
            state.is_ending
        };
        all.retain_mut(|one| {
            let is_last = is_ending || one.is_closed.load(Ordering::Acquire);
            one.step(shared, is_last);
            !is_last
        });
        if is_ending {
            return;
        }
    }
}

impl Followed {
    fn step(&mut self, shared: &Shared, is_last: bool) {
        let now = Instant::now();
        let log = self.copy.log_stamp();
        let is_due = log != self.log || now >= self.next_scan;
        if !is_last && (!is_due || now < self.not_before) {
            return;
        }
        if self.gate.as_ref().is_some_and(|gate| gate.check().is_err()) {
            // Another machine writes the workspace, and copies it.
            self.copy.forget();
            self.next_scan = now + INTERVAL;
            return;
        }
        let round = self.copy.round(self.gate.is_some());
        let rest = now.elapsed().saturating_mul(REST);
        let ended = Instant::now();
        match round {
            Ok(round) => {
                let soon = match round {
                    Round::ByAnother => false,
                    Round::UpToDate { soon } | Round::Added { soon } => soon,
                };
                self.log = log;
                self.next_scan = ended + rest.max(if soon { RESCAN_SOON } else { RESCAN });
                self.not_before = ended + rest.min(RESCAN);
                self.backoff.reset();
                if round != Round::ByAnother {
                    self.works(shared);
                }
            }
            Err(error) => {
                self.not_before = ended + self.backoff.next_wait();
                self.fails(shared, &error);
            }
        }
        if is_last {
            // Otherwise the next start reads all files again.
            let _ = self.copy.keep_files();
        }
    }

    /// Tells the first problem after a success.
    fn fails(&mut self, shared: &Shared, error: &BackupError) {
        self.copy.forget();
        self.copy.report(now_ms(), Some(error.to_string()), true);
        if !std::mem::replace(&mut self.has_problem, true) {
            let later = match error.kind() {
                BackupErrorKind::Foreign => "",
                _ => " Calls go on, and their changes are copied later.",
            };
            (shared.notice)(&format!(
                "the workspace is not being copied to its backup: {error}.{later}"
            ));
        }
    }

    fn works(&mut self, shared: &Shared) {
        if std::mem::replace(&mut self.has_problem, false) {
            (shared.notice)("the workspace is being copied to its backup again");
        }
    }
}

/// What [`copy_now`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// The number of the last segment.
    pub segment: u64,
    /// Whether it is new.
    pub is_new: bool,
    /// The files left out.
    pub left_out: LeftOut,
}

/// Copies a workspace once. `None` if another process of this machine does.
///
/// # Errors
///
/// Fails if the backup cannot be written.
pub fn copy_now(
    source: BackupSource,
    objects: Objects,
    machine: &str,
) -> Result<Option<Copied>, BackupError> {
    let mut copy = Copy::new(source, objects, machine);
    let round = match copy.round(false) {
        Err(error) => {
            copy.report(now_ms(), Some(error.to_string()), true);
            return Err(error);
        }
        Ok(round) => round,
    };
    if round == Round::ByAnother {
        return Ok(None);
    }
    copy.keep_files()?;
    let is_new = matches!(round, Round::Added { .. });
    Ok(Some(Copied { segment: copy.number(), is_new, left_out: copy.left_out() }))
}
