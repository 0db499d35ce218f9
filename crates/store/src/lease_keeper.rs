//! The threads that take, renew and give back the leases of this process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use toolcrib::SharedHolder;

use crate::clock::since_boot;
use crate::connection::{Connection, column, number};
use crate::error::StoreError;
use crate::lease::{Granted, LEASE, Lease};
use crate::schema::identify;
use crate::url::StoreUrl;

/// How often the threads look at the leases.
const TICK: Duration = Duration::from_millis(200);

/// The time limit for asking: several attempts fit into a lease.
const PATIENCE: Duration = Duration::from_secs(4);

/// The time before the next attempt after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// The time that opening a workspace waits for its lease.
const FIRST_ANSWER: Duration = Duration::from_secs(6);

/// The time that the end of the program waits for leases to be given back.
const LAST_RELEASE: Duration = Duration::from_secs(3);

/// Keeps the leases of a process. Dropping it gives them back.
pub struct LeaseKeeper {
    shared: Arc<Shared>,
}

struct Shared {
    url: StoreUrl,
    /// The state directory.
    directory: PathBuf,
    /// The name of this machine, for people.
    node: String,
    notice: Box<dyn Fn(&str) + Send + Sync>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    leases: Vec<Arc<Lease>>,
    /// With their fences.
    released: Vec<(Arc<Lease>, u64)>,
    is_ending: bool,
    has_ended: bool,
}

/// As long as this exists, the lease is kept.
pub struct HeldLease {
    lease: Arc<Lease>,
    shared: Arc<Shared>,
}

impl HeldLease {
    /// The lease, which decides on writing.
    pub fn lease(&self) -> Arc<Lease> {
        self.lease.clone()
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.leases.retain(|one| !Arc::ptr_eq(one, &self.lease));
        let fence = self.lease.give_back();
        // Before another machine can have the lease.
        self.lease.stop_commands_if_ended();
        state.released.extend(fence.map(|fence| (self.lease.clone(), fence)));
        self.shared.changed.notify_all();
    }
}

impl LeaseKeeper {
    /// Starts the threads. `notice` gets a sentence when a lease is granted or lost.
    ///
    /// # Errors
    ///
    /// Fails if a thread cannot be started.
    pub fn start(
        url: StoreUrl,
        directory: PathBuf,
        node: &str,
        notice: impl Fn(&str) + Send + Sync + 'static,
    ) -> std::io::Result<LeaseKeeper> {
        let (node, notice) = (node.chars().take(50).collect(), Box::new(notice));
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { url, directory, node, notice, state, changed });
        let keeper = shared.clone();
        std::thread::Builder::new().name("leases".to_owned()).spawn(move || {
            Keeping { shared: &keeper, connection: None }.run();
            keeper.state.lock().has_ended = true;
            keeper.changed.notify_all();
        })?;
        // Apart, since the first one may wait for the server.
        let watcher = shared.clone();
        std::thread::Builder::new().name("lease ends".to_owned()).spawn(move || watcher.watch())?;
        Ok(LeaseKeeper { shared })
    }

    /// Takes the lease of a workspace, and keeps trying if another machine has it. Waits some seconds for the first answer.
    ///
    /// # Errors
    ///
    /// Fails if the state directory cannot be written.
    pub fn hold(&self, workspace: &str) -> Result<HeldLease, StoreError> {
        let processes = SharedHolder::join(&self.shared.directory, workspace);
        let processes = processes.map_err(StoreError::local)?;
        let holder = processes.machine().to_owned();
        let lease = Arc::new(Lease::new(workspace, holder, processes));
        self.shared.state.lock().leases.push(lease.clone());
        self.shared.changed.notify_all();
        lease.wait_until_known(FIRST_ANSWER);
        Ok(HeldLease { lease, shared: self.shared.clone() })
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_ending = true;
        self.shared.changed.notify_all();
        let until = Instant::now() + LAST_RELEASE;
        while !state.has_ended && !self.shared.changed.wait_until(&mut state, until).timed_out() {}
    }
}

impl Shared {
    /// Stops commands when the leases of their workspaces end.
    fn watch(&self) {
        loop {
            let leases = {
                let mut state = self.state.lock();
                if state.is_ending {
                    return;
                }
                self.changed.wait_for(&mut state, TICK);
                state.leases.clone()
            };
            for lease in leases {
                match lease.stop_commands_if_ended() {
                    0 => {}
                    count => (self.notice)(&format!(
                        "{count} commands in {} were stopped, because its lease ended",
                        lease.workspace
                    )),
                }
            }
        }
    }
}

/// The state of the thread that asks the store.
struct Keeping<'s> {
    shared: &'s Shared,
    connection: Option<Connection>,
}

impl Keeping<'_> {
    fn run(&mut self) {
        loop {
            let (leases, released, is_ending) = {
                let mut state = self.shared.state.lock();
                let is_due = |state: &State| state.leases.iter().any(|lease| lease.is_due());
                if !state.is_ending && state.released.is_empty() && !is_due(&state) {
                    self.shared.changed.wait_for(&mut state, TICK);
                }
                (state.leases.clone(), std::mem::take(&mut state.released), state.is_ending)
            };
            released.iter().for_each(|(lease, fence)| self.release(lease, *fence));
            if is_ending {
                for lease in leases {
                    lease.give_back().into_iter().for_each(|fence| self.release(&lease, fence));
                }
                return;
            }
            for lease in leases.iter().filter(|lease| lease.is_due()) {
                self.renew(lease);
            }
        }
    }

    fn renew(&mut self, lease: &Lease) {
        let asked = since_boot();
        match self.with_connection(|connection, node| take(connection, lease, node)) {
            Ok(granted) => {
                lease.answered(asked, &granted).iter().for_each(|text| (self.shared.notice)(text));
            }
            Err(error) => lease.failed(&error.to_string(), RETRY),
        }
    }

    /// Gives a lease back, unless another process of this machine uses it.
    fn release(&mut self, lease: &Lease, fence: u64) {
        if lease.processes.is_last() {
            // If it fails, the lease ends by itself.
            let _ = self.with_connection(|connection, _| {
                let parameters = [lease.workspace.as_str(), &lease.holder, &fence.to_string()];
                connection.query("SELECT toolcrib.release_lease($1, $2, $3::bigint)", &parameters)
            });
        }
        lease.processes.leave();
    }

    fn with_connection<T>(
        &mut self,
        ask: impl FnOnce(&mut Connection, &str) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let mut connection = Connection::open_within(&self.shared.url, PATIENCE)?;
                identify(&mut connection)?;
                connection
            }
        };
        let answer = ask(&mut connection, &self.shared.node);
        if !answer.as_ref().is_err_and(StoreError::ends_connection) {
            self.connection = Some(connection);
        }
        answer
    }
}

fn take(connection: &mut Connection, lease: &Lease, node: &str) -> Result<Granted, StoreError> {
    let rows = connection.query(
        "SELECT is_held, fence, node, seconds_left FROM toolcrib.take_lease($1, $2, $3, $4::integer)",
        &[&lease.workspace, &lease.holder, node, &LEASE.as_secs().to_string()],
    )?;
    let row = rows.first().ok_or_else(|| StoreError::connection("the server sent no lease"))?;
    if column(row, 0)? == "t" {
        return Ok(Granted::Yes { fence: number(row, 1)? });
    }
    let node = toolcrib::visible_name(column(row, 2)?.as_bytes());
    Ok(Granted::To { node: node.chars().take(60).collect(), seconds: number(row, 3)? })
}
