//! The right to write one workspace, among all machines.
//!
//! The time of a lease is that of the server. This machine counts from the moment before it asked, with a clock that also
//! runs while the machine sleeps, and stops writing some seconds early. So a lease that the server has given to another
//! machine is never used here, unless a single change takes longer than that.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use toolcrib::{CallCommand, SharedHolder, WeakCallCommand, WriteGate};

use crate::clock::since_boot;

/// The time of a lease.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// Writing ends this much before the lease.
const MARGIN: Duration = Duration::from_secs(7);

/// The time between two renewals.
pub(crate) const RENEWAL: Duration = Duration::from_secs(8);

/// Commands that are remembered, so that they can be stopped.
const MAX_COMMANDS: usize = 4_096;

/// The lease of a workspace.
pub struct Lease {
    /// The name of the workspace in the store.
    pub(crate) workspace: String,
    /// This machine, to the store.
    pub(crate) holder: String,
    pub(crate) processes: SharedHolder,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    held: Held,
    /// Whether the store has answered once.
    is_known: bool,
    commands: Vec<WeakCallCommand>,
    /// When the store is asked next.
    due: Duration,
}

enum Held {
    /// Not, and why.
    No(String),
    /// Until this time, with this fence.
    Until(Duration, u64),
}

/// The answer of the store about a lease.
pub(crate) enum Granted {
    Yes {
        fence: u64,
    },
    /// Another machine has it, for some seconds.
    To {
        node: String,
        seconds: f64,
    },
}

impl Lease {
    pub(crate) fn new(workspace: &str, holder: String, processes: SharedHolder) -> Lease {
        let state = State {
            held: Held::No("the store has not granted it yet".to_owned()),
            is_known: false,
            commands: Vec::new(),
            due: Duration::ZERO,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Lease { workspace: workspace.to_owned(), holder, processes, state, changed }
    }

    /// Whether the store is to be asked now.
    pub(crate) fn is_due(&self) -> bool {
        self.state.lock().due <= since_boot()
    }

    /// Ends writing. Returns the fence if the lease was granted and may not have ended on the server.
    pub(crate) fn give_back(&self) -> Option<u64> {
        let given_back = Held::No("it was given back".to_owned());
        match std::mem::replace(&mut self.state.lock().held, given_back) {
            Held::Until(_, fence) => Some(fence),
            Held::No(_) => {
                self.processes.leave();
                None
            }
        }
    }

    /// Takes the answer to a request that was sent at a time. Returns a sentence if somebody should know.
    pub(crate) fn answered(&self, asked: Duration, granted: &Granted) -> Option<String> {
        let mut state = self.state.lock();
        let had = state.writes_until(asked);
        let notice = match granted {
            Granted::Yes { fence } => {
                state.held = Held::Until(asked + LEASE.saturating_sub(MARGIN), *fence);
                state.due = asked + RENEWAL;
                let name = &self.workspace;
                (!had).then(|| {
                    format!("this machine has the lease of {name} and may write it, fence {fence}")
                })
            }
            Granted::To { node, seconds } => {
                let why = format!("another machine, {node}, has it");
                state.held = Held::No(why.clone());
                // Soon after it ends, and not much later than it may be given back.
                let wait = Duration::try_from_secs_f64(seconds.max(0.0) + 0.2).unwrap_or(RENEWAL);
                state.due = since_boot() + wait.min(RENEWAL / 4);
                (had || !state.is_known)
                    .then(|| format!("the lease of {} is not here: {why}", self.workspace))
            }
        };
        state.is_known = true;
        drop(state);
        self.changed.notify_all();
        notice
    }

    /// The store could not be asked. A granted lease still holds until its end.
    pub(crate) fn failed(&self, why: &str, next: Duration) {
        let mut state = self.state.lock();
        state.due = since_boot() + next;
        if !state.writes_until(since_boot()) {
            state.held = Held::No(format!("the store cannot be asked for it: {why}"));
        }
        state.is_known = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until the store has answered once, or could not be asked, at most for a time.
    pub(crate) fn wait_until_known(&self, most: Duration) {
        let mut state = self.state.lock();
        while !state.is_known {
            if self.changed.wait_for(&mut state, most).timed_out() {
                return;
            }
        }
    }

    /// Stops the running commands if the workspace may not be written any more. Returns how many.
    pub(crate) fn stop_commands_if_ended(&self) -> usize {
        let commands = {
            let mut state = self.state.lock();
            if state.writes_until(since_boot()) || state.commands.is_empty() {
                return 0;
            }
            std::mem::take(&mut state.commands)
        };
        commands.iter().filter_map(WeakCallCommand::upgrade).filter(CallCommand::stop).count()
    }
}

impl State {
    fn writes_until(&self, now: Duration) -> bool {
        matches!(self.held, Held::Until(until, _) if now < until)
    }
}

impl WriteGate for Lease {
    fn check(&self) -> Result<(), String> {
        let state = self.state.lock();
        match &state.held {
            Held::Until(until, _) if since_boot() < *until => Ok(()),
            Held::Until(..) => Err("its lease could not be renewed in time".to_owned()),
            Held::No(why) => Err(format!("this machine does not have its lease: {why}")),
        }
    }

    fn command_started(&self, command: CallCommand) {
        let mut state = self.state.lock();
        state.commands.retain(|known| known.upgrade().is_some_and(|known| known.is_running()));
        // With more running commands than any limit allows, the oldest is not known any more.
        let excess = (state.commands.len() + 1).saturating_sub(MAX_COMMANDS);
        state.commands.drain(..excess);
        state.commands.push(command.downgrade());
        drop(state);
        self.stop_commands_if_ended();
    }
}
