//! Keepers, one of them started ahead.
//!
//! To start a keeper is to start a program of many megabytes: a third of what a small command took. So, while
//! commands come, one more keeper than is needed waits for its request: it has done nothing yet, knows of no
//! command and of no session, and ends when its socket closes, as any other does. One that nobody wants for a
//! while is let go.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::command::Command;
use crate::error::JobError;
use crate::launch::{Launched, Launcher, Shim};
use crate::sandbox::Confinement;
use crate::sandbox::namespaces::Space;
use crate::wire;

/// How long after a command is over the next keeper is started: a process that lives for one command needs
/// none.
const AFTER: Duration = Duration::from_millis(1);

/// The same after the beginning of one that is not over by then: it is not to be in the way of small ones.
const BEHIND: Duration = Duration::from_millis(50);

/// How long a keeper waits for somebody who wants it.
const IDLE: Duration = Duration::from_secs(60);

/// Starts keepers.
#[derive(Debug)]
pub(crate) struct Keepers {
    shared: Arc<Shared>,
    /// Begins with the first command.
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Hears that a command is over.
#[derive(Debug)]
pub(crate) struct EndSignal(Arc<Shared>);

impl EndSignal {
    pub(crate) fn tell(&self) {
        self.0.over();
    }
}

#[derive(Debug)]
struct Shared {
    launcher: Launcher,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    spare: Option<Spare>,
    /// When one is to be started.
    due: Option<Instant>,
    stop: bool,
}

#[derive(Debug)]
struct Spare {
    keeper: Shim,
    since: Instant,
}

impl Keepers {
    pub(crate) fn new(launcher: Launcher) -> Keepers {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Keepers { shared: Arc::new(Shared { launcher, state, changed }), thread: Mutex::default() }
    }

    /// Starts a command, in a sandbox or without one; `space` is the one of its session.
    pub(crate) fn launch(
        &self,
        command: &Command,
        within: Option<(&Confinement, Option<&Space>)>,
    ) -> io::Result<Launched> {
        let request = wire::encode_run(command, within.map(|(confinement, _)| confinement));
        let descriptors = within.and_then(|(_, space)| space).map(Space::descriptors);
        let descriptors = descriptors.as_ref().map_or(&[][..], |both| both.as_slice());
        // The spare shim has one pipe for both streams.
        let spare = if command.separate_streams { None } else { self.shared.take() };
        // One that somebody killed meanwhile takes no request.
        let launched = spare.and_then(|spare| spare.hand_over(&request, descriptors).ok());
        let launched = match launched {
            Some(launched) => launched,
            None => self
                .shared
                .launcher
                .start(command.separate_streams)?
                .hand_over(&request, descriptors)?,
        };
        self.begin();
        self.shared.changed.notify_all();
        Ok(launched)
    }

    /// Whom to tell that a command is over.
    pub(crate) fn over(&self) -> EndSignal {
        EndSignal(self.shared.clone())
    }

    /// Has a keeper make the namespaces of a session.
    pub(crate) fn make_space(&self) -> Result<Space, JobError> {
        self.shared.launcher.make_space()
    }

    /// Without a thread nothing is started ahead, and nothing is missed but time.
    fn begin(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = self.shared.clone();
            let named = std::thread::Builder::new().name("toolcrib-keepers".to_owned());
            *thread = named.spawn(move || shared.attend()).ok();
        }
    }
}

impl Drop for Keepers {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// The keeper that waits, if there is one. Who takes it wakes the thread when there is time for that.
    fn take(&self) -> Option<Shim> {
        let mut state = self.lock();
        state.due.get_or_insert_with(|| Instant::now() + BEHIND);
        state.spare.take().map(|spare| spare.keeper)
    }

    /// A command is over.
    fn over(&self) {
        let mut state = self.lock();
        let soon = Instant::now() + AFTER;
        if state.spare.is_none() && state.due.is_none_or(|due| due > soon) {
            state.due = Some(soon);
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Starts keepers when they are wanted, and lets them go when they are not.
    fn attend(&self) {
        let mut state = self.lock();
        while !state.stop {
            let patience = match (&state.spare, state.due) {
                (None, None) => Duration::MAX,
                (None, Some(due)) => due.saturating_duration_since(Instant::now()),
                (Some(spare), _) => IDLE.saturating_sub(spare.since.elapsed()),
            };
            if !patience.is_zero() {
                let waited = self.changed.wait_timeout(state, patience);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let (old, due) = (state.spare.take(), state.due.take());
            drop(state);
            drop(old);
            // If none can be started, whoever needs one will be told why.
            let started = due.and_then(|_| self.launcher.start(false).ok());
            state = self.lock();
            state.spare = started.map(|keeper| Spare { keeper, since: Instant::now() });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
