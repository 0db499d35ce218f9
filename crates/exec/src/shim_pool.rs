//! A pool of one shim, started in advance.
//!
//! Starting a shim means starting a program of many megabytes, which took a third of the time of a small
//! command. So while commands arrive, one spare shim waits for its request. It has done nothing yet, knows no
//! command and no session, and exits when its socket closes, like any other. A spare that is not used for a
//! while is dropped.

use std::borrow::Cow;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::command::Command;
use crate::error::JobError;
use crate::launch::{IdleShim, Launched, Launcher};
use crate::sandbox::Confinement;
use crate::sandbox::namespaces::SessionNamespaces;
use crate::shim_messages::{self, Request};
use crate::streams::Streams;

/// The delay before a spare is started after a command has ended. A process that runs a single command does
/// not need one.
const DELAY_AFTER_END: Duration = Duration::from_millis(1);

/// The delay after the start of a command that has not ended by then, so that the start does not slow down
/// small commands.
const DELAY_AFTER_START: Duration = Duration::from_millis(50);

/// How long an unused spare is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts shims.
#[derive(Debug)]
pub(crate) struct ShimPool {
    shared: Arc<Shared>,
    /// Starts with the first command.
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Tells the pool that a command has ended.
#[derive(Debug)]
pub(crate) struct EndSignal(Arc<Shared>);

impl EndSignal {
    pub(crate) fn notify(&self) {
        self.0.on_command_end();
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
    /// When to start a spare.
    due: Option<Instant>,
    stop: bool,
}

#[derive(Debug)]
struct Spare {
    shim: IdleShim,
    since: Instant,
}

impl ShimPool {
    pub(crate) fn new(launcher: Launcher) -> ShimPool {
        let (state, changed) = (Mutex::default(), Condvar::new());
        ShimPool { shared: Arc::new(Shared { launcher, state, changed }), thread: Mutex::default() }
    }

    /// Starts a command, with or without a sandbox. The namespaces are those of its session.
    pub(crate) fn launch(
        &self,
        command: &Command,
        within: Option<(&Confinement, Option<&SessionNamespaces>)>,
    ) -> io::Result<(Launched, Streams)> {
        let confinement = within.map(|(confinement, _)| Cow::Borrowed(confinement));
        let request = shim_messages::encode(&Request::Run(Cow::Borrowed(command), confinement))?;
        let (streams, inside) = Streams::make(command)?;
        let namespaces = within.and_then(|(_, namespaces)| namespaces);
        let mut descriptors = inside.descriptors();
        descriptors.extend(namespaces.into_iter().flat_map(SessionNamespaces::descriptors));
        // A spare that was killed meanwhile accepts no request.
        let spare = self.shared.take();
        let launched = spare.and_then(|spare| spare.send_request(&request, &descriptors).ok());
        let launched = match launched {
            Some(launched) => launched,
            None => self.shared.launcher.start()?.send_request(&request, &descriptors)?,
        };
        self.start_thread();
        self.shared.changed.notify_all();
        Ok((launched, streams))
    }

    /// A handle that tells the pool when a command has ended.
    pub(crate) fn end_signal(&self) -> EndSignal {
        EndSignal(self.shared.clone())
    }

    /// Makes the namespaces of a session in a new shim, and the sockets for a gateway if `with_gateway`.
    pub(crate) fn make_namespaces(
        &self,
        with_gateway: bool,
    ) -> Result<(SessionNamespaces, Vec<OwnedFd>), JobError> {
        self.shared.launcher.make_namespaces(with_gateway)
    }

    /// Makes unbound sockets in the namespaces of a session.
    pub(crate) fn make_sockets(
        &self,
        namespaces: &SessionNamespaces,
    ) -> Result<Vec<OwnedFd>, JobError> {
        self.shared.launcher.make_sockets(namespaces)
    }

    /// Starts the thread. If that fails, no spare is started, which only costs time.
    fn start_thread(&self) {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            let named = std::thread::Builder::new().name("toolcrib-shims".to_owned());
            *thread = named.spawn(move || shared.maintain_spare()).ok();
        }
    }
}

impl Drop for ShimPool {
    fn drop(&mut self) {
        self.shared.state.lock().stop = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Takes the spare, if there is one. The caller wakes the thread later.
    fn take(&self) -> Option<IdleShim> {
        let mut state = self.state.lock();
        state.due.get_or_insert_with(|| Instant::now() + DELAY_AFTER_START);
        state.spare.take().map(|spare| spare.shim)
    }

    /// Schedules a spare after a command has ended.
    fn on_command_end(&self) {
        let mut state = self.state.lock();
        let soon = Instant::now() + DELAY_AFTER_END;
        if state.spare.is_none() && state.due.is_none_or(|due| due > soon) {
            state.due = Some(soon);
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Starts a spare when it is due, and drops it when it was unused for too long.
    fn maintain_spare(&self) {
        let mut state = self.state.lock();
        while !state.stop {
            let timeout = match (&state.spare, state.due) {
                (None, None) => Duration::MAX,
                (None, Some(due)) => due.saturating_duration_since(Instant::now()),
                (Some(spare), _) => IDLE_TIMEOUT.saturating_sub(spare.since.elapsed()),
            };
            if !timeout.is_zero() {
                self.changed.wait_for(&mut state, timeout);
                continue;
            }
            let (old, due) = (state.spare.take(), state.due.take());
            drop(state);
            drop(old);
            // If this fails, the next command reports the error.
            let started = due.and_then(|_| self.launcher.start().ok());
            state = self.state.lock();
            state.spare = started.map(|shim| Spare { shim, since: Instant::now() });
        }
    }
}
