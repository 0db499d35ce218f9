//! Two epoll threads for all commands: one appends output to the buffers and handles messages of shims, the
//! other supervises system calls and may take longer.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};

use crate::command::Stream;
use crate::fd_passing;
use crate::gateway::{Gateway, NetworkExit};
use crate::guard::Guard;
use crate::job::Job;
use crate::sandbox::network_namespace::configure;
use crate::sandbox::{Confinement, Network};
use crate::shim_messages::{ShimMessage, take_message};
use crate::supervise::SupervisedCommand;
use crate::supervise::content_review::Staging;

/// Bytes that are read from one output before the others have their turn. More than a pipe holds.
const MAX_BYTES_PER_TURN: usize = 1 << 20;

/// Bytes per read. This is the capacity of a pipe.
const CHUNK_BYTES: usize = 256 << 10;

/// Events per `epoll_wait`.
const MAX_EVENTS: usize = 64;

/// The event of the stop request. No source has this number.
const STOP: u64 = 0;

/// An epoll thread. It starts with the first job, and ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Poller {
    name: &'static str,
    /// Called first on the thread.
    prepare: fn() -> io::Result<()>,
    running: Mutex<Option<PollerThread>>,
    staging: Mutex<Option<Arc<Staging>>>,
}

/// The confinement of a command, the guard that decides about its changes, and the thread that asks it.
#[derive(Debug)]
pub(crate) struct Supervision {
    pub(crate) confinement: Confinement,
    pub(crate) guard: Arc<dyn Guard>,
    pub(crate) poller: Arc<Poller>,
    /// The way to other machines, if the command may use it.
    pub(crate) gateway: Option<Arc<dyn Gateway>>,
    /// The way out of the session's network namespace, if the command is in it.
    pub(crate) exit: Option<Arc<dyn NetworkExit>>,
}

#[derive(Debug)]
struct PollerThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    epoll: OwnedFd,
    stop: OwnedFd,
    sources: Mutex<Sources>,
}

#[derive(Debug, Default)]
struct Sources {
    last: u64,
    by_number: HashMap<u64, Arc<Source>>,
}

/// A source of events: a command's output, messages of its shim, its supervised system calls, or closed files
/// that are waiting for a review.
#[derive(Debug)]
enum Source {
    Output(Arc<OwnedFd>, Stream, Arc<Job>),
    Shim(ShimChannel),
    Calls(SupervisedCommand),
    ClosedFiles(Arc<Staging>),
}

/// The connection to a shim.
#[derive(Debug)]
struct ShimChannel {
    control: UnixStream,
    buffer: Mutex<Vec<u8>>,
    job: Arc<Job>,
    /// Drained before the exit of the shell is handled.
    outputs: Vec<(Arc<OwnedFd>, Stream)>,
    supervision: Option<Supervision>,
}

impl Poller {
    /// Creates a poller. Its thread has this name and calls `prepare` first.
    pub(crate) fn new(name: &'static str, prepare: fn() -> io::Result<()>) -> Poller {
        Poller { name, prepare, running: Mutex::default(), staging: Mutex::default() }
    }

    /// Starts to handle the output and the shim of a job.
    pub(crate) fn watch_job(
        &self,
        job: &Arc<Job>,
        outputs: Vec<(OwnedFd, Stream)>,
        control: UnixStream,
        supervision: Option<Supervision>,
    ) -> io::Result<()> {
        let shared = self.ensure_started()?;
        let outputs = outputs.into_iter().map(|(output, stream)| (Arc::new(output), stream));
        let outputs: Vec<_> = outputs.collect();
        for (output, stream) in &outputs {
            shared.add(Source::Output(output.clone(), *stream, job.clone()))?;
        }
        let (job, buffer) = (job.clone(), Mutex::default());
        shared.add(Source::Shim(ShimChannel { control, buffer, job, outputs, supervision }))
    }

    /// Starts to perform the supervised calls of a command.
    fn supervise(&self, supervised: SupervisedCommand) -> io::Result<()> {
        self.ensure_started()?.add(Source::Calls(supervised))
    }

    /// The files of all commands that are reviewed when they are closed.
    fn staging(&self) -> io::Result<Arc<Staging>> {
        let mut staging = self.staging.lock();
        if let Some(staging) = &*staging {
            return Ok(staging.clone());
        }
        let made = Arc::new(Staging::new()?);
        self.ensure_started()?.add(Source::ClosedFiles(made.clone()))?;
        Ok(staging.insert(made).clone())
    }

    fn ensure_started(&self) -> io::Result<Arc<Shared>> {
        let mut running = self.running.lock();
        if let Some(running) = &*running {
            return Ok(running.shared.clone());
        }
        let started = PollerThread::start(self.name, self.prepare)?;
        Ok(running.insert(started).shared.clone())
    }
}

impl PollerThread {
    fn start(name: &str, prepare: fn() -> io::Result<()>) -> io::Result<PollerThread> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        let shared = Arc::new(Shared { epoll, stop, sources: Mutex::default() });
        // Weak, so that the thread ends with its owner even if the stop request cannot be sent.
        let weak = Arc::downgrade(&shared);
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || {
            if prepare().is_ok() {
                poll_loop(&weak);
            }
        });
        let thread = Some(thread?);
        Ok(PollerThread { shared, thread })
    }
}

impl Drop for PollerThread {
    fn drop(&mut self) {
        let _ = write(&self.shared.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn poll_loop(shared: &Weak<Shared>) {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut events = Vec::with_capacity(MAX_EVENTS);
    while let Some(shared) = shared.upgrade() {
        events.clear();
        match epoll::wait(&shared.epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        if !events.iter().all(|event: &Event| shared.handle_event(event.data.u64(), &mut chunk)) {
            return;
        }
    }
}

impl Shared {
    fn add(&self, source: Source) -> io::Result<()> {
        let source = Arc::new(source);
        let mut sources = self.sources.lock();
        sources.last += 1;
        let number = sources.last;
        sources.by_number.insert(number, source.clone());
        drop(sources);
        let data = EventData::new_u64(number);
        let added = match &*source {
            Source::Output(output, ..) => epoll::add(&self.epoll, output, data, EventFlags::IN),
            Source::Shim(shim) => epoll::add(&self.epoll, &shim.control, data, EventFlags::IN),
            Source::Calls(calls) => epoll::add(&self.epoll, calls, data, EventFlags::IN),
            Source::ClosedFiles(files) => epoll::add(&self.epoll, files, data, EventFlags::IN),
        };
        Ok(added.inspect_err(|_| self.remove(number))?)
    }

    fn remove(&self, number: u64) {
        self.sources.lock().by_number.remove(&number);
    }

    /// Handles an event of a source. Returns whether the thread should continue.
    fn handle_event(&self, number: u64, chunk: &mut [u8]) -> bool {
        if number == STOP {
            return false;
        }
        let Some(source) = self.sources.lock().by_number.get(&number).cloned() else { return true };
        let open = match &*source {
            Source::Output(output, stream, job) => read_output(output, *stream, job, chunk),
            Source::Shim(shim) => shim.read_messages(chunk),
            Source::Calls(calls) => calls.handle_pending(),
            Source::ClosedFiles(files) => {
                files.publish();
                true
            }
        };
        if !open {
            match &*source {
                Source::Output(output, stream, job) => {
                    let _ = epoll::delete(&self.epoll, output);
                    job.stream_closed(*stream);
                }
                Source::Shim(shim) => {
                    let _ = epoll::delete(&self.epoll, &shim.control);
                    shim.job.on_shim_exit();
                }
                Source::Calls(calls) => {
                    let _ = epoll::delete(&self.epoll, calls);
                    calls.finish();
                }
                Source::ClosedFiles(_) => {}
            }
            self.remove(number);
        }
        true
    }
}

/// Moves up to [`MAX_BYTES_PER_TURN`] bytes into the buffer of the job. Returns whether there may be more.
fn read_output(output: &OwnedFd, stream: Stream, job: &Job, chunk: &mut [u8]) -> bool {
    let mut moved = 0;
    while moved < MAX_BYTES_PER_TURN {
        match read(output, &mut *chunk) {
            Ok(0) => return false,
            Ok(count) => {
                job.append_output(stream, chunk.get(..count).unwrap_or_default());
                moved += count;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
    true
}

impl ShimChannel {
    /// Handles the messages that have arrived. Returns whether there may be more.
    fn read_messages(&self, chunk: &mut [u8]) -> bool {
        let mut buffer = self.buffer.lock();
        let mut descriptors = Vec::new();
        loop {
            let open = match fd_passing::receive(&self.control, chunk) {
                Ok((0, _)) => false,
                Ok((count, received_descriptors)) => {
                    descriptors.extend(received_descriptors);
                    buffer.extend_from_slice(chunk.get(..count).unwrap_or_default());
                    true
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => false,
            };
            while let Ok(Some(message)) = take_message(&mut buffer) {
                match (message, &self.supervision) {
                    (ShimMessage::SupervisionReady, Some(supervision)) => {
                        let descriptors = std::mem::take(&mut descriptors);
                        start_supervision(descriptors, &self.job, supervision);
                    }
                    (message, _) => {
                        if matches!(message, ShimMessage::Exited { .. }) {
                            self.drain_output(chunk);
                        }
                        self.job.handle_message(message);
                    }
                }
            }
            if !open {
                return false;
            }
        }
    }

    /// The exit message and the output arrive on different channels. All output of the shell is in the pipe
    /// by now, so it is read before the exit is handled. A process that the shell left behind may keep the
    /// pipe open and write more.
    fn drain_output(&self, chunk: &mut [u8]) {
        for (output, stream) in &self.outputs {
            if !read_output(output, *stream, &self.job, chunk) {
                self.job.stream_closed(*stream);
            }
        }
    }
}

/// Starts supervision. If that fails, the supervised calls of the command fail.
fn start_supervision(descriptors: Vec<OwnedFd>, job: &Arc<Job>, supervision: &Supervision) {
    let Supervision { confinement, guard, poller, gateway, exit } = supervision;
    let mut descriptors = descriptors.into_iter();
    let calls = descriptors.next().ok_or(io::ErrorKind::UnexpectedEof.into());
    let started = calls.and_then(|calls| {
        let (job, guard, staging) = (job.clone(), guard.clone(), poller.staging()?);
        let socket_table = descriptors.next();
        // Where it cannot be configured, the network stays off.
        let own = gateway.as_ref().zip(configure(descriptors).ok().flatten());
        let own = own.map(|(gateway, sockets)| gateway.open(sockets)).transpose()?;
        let is_listed = confinement.sandbox.network == Network::List;
        let exit = own.or_else(|| exit.clone()).filter(|_| is_listed);
        let supervised =
            SupervisedCommand::new(calls, job, confinement, guard, socket_table, staging);
        Ok(supervised.with_exit(exit))
    });
    if let Err(error) = started.and_then(|supervised| poller.supervise(supervised)) {
        guard.supervision_failed(&error);
    }
}
