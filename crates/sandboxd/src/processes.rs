//! The running processes, by the numbers that clients know.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tonic::Status;
use toolcrib::backend::{
    Exec, ExecEvent, Executed, OutputStream, ProcessControl, ProcessSignal, ProcessStdin, Program,
};
use toolcrib::{Cancel, Error};

use crate::error_status::grpc_status;
use crate::messages::{Event, ExitEvent, InitEvent, ProcessConfig};
use crate::process_events::ProcessEvents;
use crate::workspace::Workspace;
use crate::workspace_path::{BadPath, workspace_path};

/// Processes at the same time. Each has a thread.
pub(crate) const MAX_PROCESSES: usize = 64;

/// Writes to stdin at the same time. Each has a thread while the process does not read.
pub(crate) const MAX_WRITES: usize = 64;

/// Events that wait for their client. A process whose client does not read waits, too.
const MAX_WAITING_EVENTS: usize = 16;

/// The first value after the numbers of processes ended by signals: 128, as in a shell.
const SIGNAL_EXIT_CODES: i32 = 128;

/// What reads and writes a process.
pub(crate) struct Running {
    pub(crate) control: Arc<ProcessControl>,
    cancel: Arc<Cancel>,
}

/// All running processes of a server.
pub(crate) struct Processes {
    workspace: Arc<Workspace>,
    running: Mutex<Numbered>,
    places: Arc<Semaphore>,
    writes: Arc<Semaphore>,
}

#[derive(Default)]
struct Numbered {
    last: i32,
    running: HashMap<i32, Arc<Running>>,
}

/// A process to start.
pub(crate) struct Start {
    pub(crate) config: Option<ProcessConfig>,
    pub(crate) stdin: ProcessStdin,
    /// The time after which it is killed.
    pub(crate) timeout: Option<Duration>,
}

impl Processes {
    pub(crate) fn new(workspace: Arc<Workspace>) -> Processes {
        Processes {
            workspace,
            running: Mutex::default(),
            places: Arc::new(Semaphore::new(MAX_PROCESSES)),
            writes: Arc::new(Semaphore::new(MAX_WRITES)),
        }
    }

    /// Starts a process. Its events tell whether it could be started.
    pub(crate) fn start(self: &Arc<Self>, start: Start) -> Result<ProcessEvents, Status> {
        let exec = self.exec_of(start)?;
        let place = self.places.clone().try_acquire_owned().map_err(|_| {
            Status::resource_exhausted(format!("{MAX_PROCESSES} processes run already"))
        })?;
        let cancel = Arc::new(Cancel::new());
        let (sender, receiver) = mpsc::channel(MAX_WAITING_EVENTS);
        let events = ProcessEvents::new(receiver, cancel.clone());
        let processes = self.clone();
        tokio::task::spawn_blocking(move || processes.run(exec, &cancel, &sender, place));
        Ok(events)
    }

    fn exec_of(&self, start: Start) -> Result<Exec, Status> {
        let config = start.config.unwrap_or_default();
        if config.command.first().is_none_or(String::is_empty) {
            return Err(Status::invalid_argument("the command is empty"));
        }
        let texts = config.command.iter().chain(config.env_vars.values());
        if texts.chain(config.env_vars.keys()).any(|text| text.contains('\0')) {
            return Err(Status::invalid_argument("a word of the command or a variable has a NUL"));
        }
        let directory = config.cwd.filter(|cwd| !cwd.is_empty());
        let directory: Option<PathBuf> = directory
            .map(|cwd| workspace_path(self.workspace.roots(), &cwd).map_err(bad_directory))
            .transpose()?;
        Ok(Exec {
            directory,
            environment: BTreeMap::from_iter(config.env_vars),
            stdin: start.stdin,
            timeout: start.timeout,
            ..Exec::new(Program::Arguments(config.command))
        })
    }

    /// Runs a process on this thread until it has ended.
    fn run(
        &self,
        exec: Exec,
        cancel: &Arc<Cancel>,
        events: &mpsc::Sender<Result<Event, Status>>,
        place: OwnedSemaphorePermit,
    ) {
        let running = Arc::new(Running { control: exec.control.clone(), cancel: cancel.clone() });
        let number = Mutex::new(None);
        let executed = self.workspace.with_backend(cancel, |backend| {
            backend.exec(exec, &|event| {
                let event = match event {
                    ExecEvent::Started => {
                        // Known before the client hears of it, which may use it at once.
                        let process_id = self.running.lock().add(running.clone());
                        *number.lock() = Some(process_id);
                        Event::Init(InitEvent { process_id })
                    }
                    ExecEvent::Output(OutputStream::Stdout, bytes) => Event::Stdout(bytes.to_vec()),
                    ExecEvent::Output(OutputStream::Stderr, bytes) => Event::Stderr(bytes.to_vec()),
                };
                if events.blocking_send(Ok(event)).is_err() {
                    cancel.cancel();
                }
            })
        });
        if let Some(number) = number.into_inner() {
            self.running.lock().running.remove(&number);
        }
        drop(place);
        // Without a client, nobody wants to know.
        let _ = events.blocking_send(last_event(executed));
    }

    /// A running process.
    pub(crate) fn get(&self, number: i32) -> Result<Arc<Running>, Status> {
        let running = self.running.lock().running.get(&number).cloned();
        running.ok_or_else(|| Status::not_found(format!("there is no process {number}")))
    }

    /// The permission to write to a stdin, which may block.
    pub(crate) fn begin_write(&self) -> Result<OwnedSemaphorePermit, Status> {
        let write = self.writes.clone().try_acquire_owned();
        write.map_err(|_| Status::resource_exhausted("too many writes to stdin are unfinished"))
    }

    /// Asks all processes to end.
    pub(crate) fn terminate_all(&self) {
        for running in self.all() {
            let _ = running.control.signal(ProcessSignal::Terminate);
        }
    }

    /// Kills all processes.
    pub(crate) fn cancel_all(&self) {
        self.all().iter().for_each(|running| running.cancel.cancel());
    }

    /// Whether none runs or is about to.
    pub(crate) fn is_idle(&self) -> bool {
        self.places.available_permits() == MAX_PROCESSES
    }

    fn all(&self) -> Vec<Arc<Running>> {
        self.running.lock().running.values().cloned().collect()
    }
}

impl Numbered {
    /// Gives a process the next number.
    fn add(&mut self, running: Arc<Running>) -> i32 {
        // Fewer processes run than there are numbers, so one is free.
        loop {
            self.last = self.last.checked_add(1).unwrap_or(1);
            if !self.running.contains_key(&self.last) {
                self.running.insert(self.last, running);
                return self.last;
            }
        }
    }
}

fn last_event(executed: Result<Executed, Error>) -> Result<Event, Status> {
    let executed = executed.map_err(|error| grpc_status(&error))?;
    if executed.timed_out {
        return Err(Status::deadline_exceeded(
            "the process was killed at the deadline of the call",
        ));
    }
    let of_signal = executed.signal.map(|signal| SIGNAL_EXIT_CODES + signal);
    let exit_code = executed.exit_code.or(of_signal).unwrap_or(-1);
    Ok(Event::Exit(ExitEvent { exit_code }))
}

fn bad_directory(problem: BadPath) -> Status {
    match problem {
        BadPath::Escapes => Status::permission_denied("cwd leads out of the workspace"),
        BadPath::Invalid => Status::invalid_argument("cwd is not a path"),
    }
}
