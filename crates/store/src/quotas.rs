//! Enforces the limits of a tenant in this process. No call waits for the store: a thread reports the use of this
//! process, and reads the limits and the use of others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use toolcrib::{CallCommand, CommandPlace, OverQuota, Quota, now_ms, random_bytes};
use toolcrib_net::Backoff;

use crate::clock::since_boot;
use crate::connection::Connection;
use crate::error::StoreError;
use crate::quota_count::QuotaCount;
use crate::quota_rows::{self, MAX_REPORTED, QuotaName, TenantQuota};
use crate::schema::identify;
use crate::url::StoreUrl;

/// How often the store is told and asked.
const INTERVAL: Duration = Duration::from_secs(3);

/// How often the time of running commands is counted.
const TICK: Duration = Duration::from_secs(1);

/// The time limit for a statement, and for connecting.
const PATIENCE: Duration = Duration::from_secs(4);

/// The longest time before the next attempt after a failure.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The time that the start of a program waits for the limits.
const FIRST_ANSWER: Duration = Duration::from_secs(2);

/// The time that the end of the program waits for the last report.
const LAST_REPORT: Duration = Duration::from_secs(2);

/// The limits of a process. Dropping it reports the last use.
pub struct Quotas {
    shared: Arc<Shared>,
}

struct Shared {
    url: StoreUrl,
    /// This process, to the store.
    process: String,
    notice: Box<dyn Fn(&str) + Send + Sync>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    count: QuotaCount,
    /// The time of the database when this machine was started.
    boot: Duration,
    running: Vec<RunningCommand>,
    /// Whether the store was asked once.
    is_known: bool,
    is_ending: bool,
    has_ended: bool,
}

/// A command that counts while one of its processes runs.
struct RunningCommand {
    workspace: Arc<str>,
    command: CallCommand,
    began: Instant,
    counted: Duration,
}

impl State {
    /// The time of the database.
    fn now(&self) -> Duration {
        self.boot + since_boot()
    }

    /// Counts the time of running commands, and forgets those that have ended. All end with this process.
    fn measure(&mut self) {
        let now = self.now();
        let State { count, running, is_ending, .. } = self;
        running.retain_mut(|one| {
            let runs = one.command.has_processes() && !*is_ending;
            // The end of the last process is not known to the moment, but that of the shell is.
            let lasted = if runs { one.began.elapsed() } else { one.command.duration() };
            let more = lasted.saturating_sub(one.counted);
            one.counted += more;
            count.add_command_time(&one.workspace, more, now);
            if !runs {
                count.end_command(&one.workspace, now);
            }
            runs
        });
    }
}

impl Quotas {
    /// Starts the thread, and waits a moment for the limits. A store that cannot be asked is no error: without limits nothing is
    /// limited. `notice` gets a sentence when the limits cannot be read, and when they can be again.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started.
    pub fn start(
        url: StoreUrl,
        notice: impl Fn(&str) + Send + Sync + 'static,
    ) -> std::io::Result<Quotas> {
        let process = random_bytes::<16>()?.map(|byte| format!("{byte:02x}")).concat();
        // Until the database has told its time.
        let boot = Duration::from_millis(now_ms()).saturating_sub(since_boot());
        let state = State {
            count: QuotaCount::default(),
            boot,
            running: Vec::new(),
            is_known: false,
            is_ending: false,
            has_ended: false,
        };
        let (notice, state, changed) = (Box::new(notice), Mutex::new(state), Condvar::new());
        let shared = Arc::new(Shared { url, process, notice, state, changed });
        let asking = shared.clone();
        std::thread::Builder::new().name("quotas".to_owned()).spawn(move || {
            asking.run();
            asking.state.lock().has_ended = true;
            asking.changed.notify_all();
        })?;
        let mut state = shared.state.lock();
        let until = Instant::now() + FIRST_ANSWER;
        while !state.is_known && !shared.changed.wait_until(&mut state, until).timed_out() {}
        drop(state);
        Ok(Quotas { shared })
    }

    /// The limits for a workspace by its name in the store.
    pub fn of_workspace(&self, name: &str) -> Arc<dyn Quota> {
        Arc::new(WorkspaceQuota { shared: self.shared.clone(), workspace: name.into() })
    }
}

impl Drop for Quotas {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_ending = true;
        self.shared.changed.notify_all();
        let until = Instant::now() + LAST_REPORT;
        while !state.has_ended && !self.shared.changed.wait_until(&mut state, until).timed_out() {}
    }
}

/// The limits for a workspace.
struct WorkspaceQuota {
    shared: Arc<Shared>,
    workspace: Arc<str>,
}

impl Quota for WorkspaceQuota {
    fn is_limited(&self) -> bool {
        self.shared.state.lock().count.is_limited()
    }

    fn check_call(&self, runs_command: &dyn Fn() -> bool) -> Result<(), OverQuota> {
        {
            let state = self.shared.state.lock();
            state.count.check_call(&self.workspace, state.now())?;
        }
        // Not under the lock, since it decodes the call.
        if runs_command() { self.check_command() } else { Ok(()) }
    }

    fn begin_call(&self) -> Result<(), OverQuota> {
        let mut state = self.shared.state.lock();
        let now = state.now();
        state.count.begin_call(&self.workspace, now)
    }

    fn check_command(&self) -> Result<(), OverQuota> {
        let mut state = self.shared.state.lock();
        state.measure();
        state.count.check_command(&self.workspace, state.now())
    }

    fn begin_command(&self) -> Result<Box<dyn CommandPlace>, OverQuota> {
        let mut state = self.shared.state.lock();
        state.measure();
        let now = state.now();
        state.count.begin_command(&self.workspace, now)?;
        let (shared, workspace) = (self.shared.clone(), self.workspace.clone());
        Ok(Box::new(Place { shared, workspace, command: None }))
    }
}

/// The place of a command that is about to start.
struct Place {
    shared: Arc<Shared>,
    workspace: Arc<str>,
    command: Option<CallCommand>,
}

impl CommandPlace for Place {
    fn started(mut self: Box<Self>, command: CallCommand) {
        self.command = Some(command);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        match self.command.take() {
            Some(command) => state.running.push(RunningCommand {
                workspace: self.workspace.clone(),
                command,
                began: Instant::now(),
                counted: Duration::ZERO,
            }),
            None => {
                let now = state.now();
                state.count.end_command(&self.workspace, now);
            }
        }
    }
}

impl Shared {
    fn run(&self) {
        let (mut connection, mut backoff) = (None, Backoff::default());
        let (mut due, mut has_read, mut has_problem) = (Instant::now(), false, false);
        loop {
            let is_ending = {
                let mut state = self.state.lock();
                let pause = due.saturating_duration_since(Instant::now()).min(TICK);
                if !state.is_ending && !pause.is_zero() {
                    self.changed.wait_for(&mut state, pause);
                }
                state.measure();
                state.is_ending
            };
            if !is_ending && Instant::now() < due {
                continue;
            }
            let exchanged = self.exchange(&mut connection);
            let is_limited = {
                let mut state = self.state.lock();
                state.is_known = true;
                if exchanged.is_err() {
                    state.count.report_again();
                }
                state.count.is_limited()
            };
            self.changed.notify_all();
            if is_ending {
                return;
            }
            let pause = match exchanged {
                Ok(()) => {
                    backoff.reset();
                    has_read = true;
                    if std::mem::take(&mut has_problem) {
                        (self.notice)("the quotas are being read from the store");
                    }
                    INTERVAL
                }
                Err(error) => {
                    connection = None;
                    // Without limits, nothing is lost meanwhile.
                    let matters = is_limited || !has_read;
                    if matters && !std::mem::replace(&mut has_problem, true) {
                        let meanwhile = if has_read {
                            "The last known ones hold."
                        } else {
                            "Nothing is limited until they are known."
                        };
                        (self.notice)(&format!(
                            "the quotas cannot be read from the store: {error}. {meanwhile}"
                        ));
                    }
                    backoff.next_wait().min(MAX_PAUSE)
                }
            };
            due = Instant::now() + pause;
        }
    }

    /// Reports the use of this process, and reads the limits and the use of others.
    fn exchange(&self, connection: &mut Option<Connection>) -> Result<(), StoreError> {
        let connection = match connection {
            Some(connection) => connection,
            none => {
                let mut opened = Connection::open_within(&self.url, PATIENCE)?;
                identify(&mut opened)?;
                // A report that a crash of the server loses is made again.
                opened.batch("SET synchronous_commit = off")?;
                none.insert(opened)
            }
        };
        let report = {
            let mut state = self.state.lock();
            let now = state.now();
            state.count.take_report(now)
        };
        // At least one, for the time.
        let mut time = None;
        for part in report.chunks(MAX_REPORTED).chain(report.is_empty().then_some(&[][..])) {
            let asked = since_boot();
            let seconds = quota_rows::report(connection, &self.process, part)?;
            time = Duration::try_from_secs_f64(seconds).ok().map(|time| (time, asked));
        }
        let limits = quota_rows::limits(connection, &self.process, false)?;
        let mut state = self.state.lock();
        if let Some((time, asked)) = time {
            state.boot = time.saturating_sub(asked);
        }
        let now = state.now();
        state.count.set_limits(&limits, now);
        Ok(())
    }
}

/// The limits that the role sees, with their use: a tenant its own, the owner all.
///
/// # Errors
///
/// Fails if the store cannot be asked.
pub fn quotas(url: &StoreUrl) -> Result<Vec<TenantQuota>, StoreError> {
    let mut connection = Connection::open(url)?;
    identify(&mut connection)?;
    let limits = quota_rows::limits(&mut connection, "", true)?;
    let quota = |one: quota_rows::ReadLimit| TenantQuota {
        tenant: one.tenant,
        workspace: Some(one.workspace).filter(|workspace| !workspace.is_empty()),
        name: one.name,
        value: one.value,
        used: match one.name {
            QuotaName::CommandSecondsPerDay => one.used / 1_000,
            QuotaName::CallsPerMinute | QuotaName::Commands => one.used,
        },
    };
    Ok(limits.into_iter().map(quota).collect())
}

/// Sets limits of a tenant or of one of its workspaces, as the owner of the tables. With `clears` the other limits of the same
/// tenant or workspace are removed.
///
/// # Errors
///
/// Fails if there is no such tenant, or if the server does not allow it. Nothing is changed then.
pub fn set_quotas(
    url: &StoreUrl,
    (tenant, workspace): (&str, Option<&str>),
    clears: bool,
    values: &[(QuotaName, u64)],
) -> Result<(), StoreError> {
    let mut connection = Connection::open(url)?;
    identify(&mut connection)?;
    if !quota_rows::has_tenant(&mut connection, tenant)? {
        return Err(StoreError::settings(
            "there is no such tenant: `toolcrib store add-tenant` makes one",
        ));
    }
    let whose = (tenant, workspace.unwrap_or_default());
    let set = |connection: &mut Connection| {
        connection.batch("BEGIN")?;
        if clears {
            quota_rows::clear(connection, whose)?;
        }
        for (name, value) in values {
            quota_rows::set(connection, whose, *name, *value)?;
        }
        connection.batch("COMMIT")
    };
    set(&mut connection).map_err(|error| {
        if error.has_code("42501") {
            return StoreError::settings(
                "only the owner of the store sets quotas, and this role is not the owner",
            );
        }
        error
    })
}
