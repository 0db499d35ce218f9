//! One thread that moves what all commands write into their logs, and hears what their keepers say; and one
//! more that supervises the calls of all commands, and may take its time.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};

use crate::command::Stream;
use crate::fd_passing;
use crate::guard::Guard;
use crate::job::Job;
use crate::sandbox::Confinement;
use crate::supervise::Supervised;
use crate::supervise::review::Staging;
use crate::wire::{ShimMessage, take_notice};

/// What is read of one output before the others have their turn. More than a pipe holds.
const TURN_BYTES: usize = 1 << 20;

/// What is read at a time: all that is in a pipe.
const CHUNK: usize = 256 << 10;

/// Events that are fetched at a time.
const EVENTS: usize = 64;

/// The number that no source has: the wish that the thread end.
const STOP: u64 = 0;

/// The thread. It begins with the first job, and ends with this.
#[derive(Debug)]
pub(crate) struct Poller {
    name: &'static str,
    /// What the thread does first.
    prepare: fn() -> io::Result<()>,
    running: Mutex<Option<Running>>,
    staging: Mutex<Option<Arc<Staging>>>,
}

/// What a command is held to, who decides about its changes, and the thread that asks.
#[derive(Debug)]
pub(crate) struct Supervision {
    pub(crate) confinement: Confinement,
    pub(crate) guard: Arc<dyn Guard>,
    pub(crate) poller: Arc<Poller>,
}

#[derive(Debug)]
struct Running {
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

/// Something that is read from: a command's output, what its keeper says, its calls that wait for the
/// supervisor, or the files that commands have closed and that are to be reviewed.
#[derive(Debug)]
enum Source {
    Output(Arc<OwnedFd>, Stream, Arc<Job>),
    Keeper(ShimChannel),
    Calls(Supervised),
    ClosedFiles(Arc<Staging>),
}

/// What is needed to hear a keeper.
#[derive(Debug)]
struct ShimChannel {
    control: UnixStream,
    received: Mutex<Vec<u8>>,
    job: Arc<Job>,
    /// Read to its end, or as far as there is something, before the exit of the shell is told.
    outputs: Vec<(Arc<OwnedFd>, Stream)>,
    supervision: Option<Supervision>,
}

impl Poller {
    /// A thread to be, of this name, and what it does first.
    pub(crate) fn new(name: &'static str, prepare: fn() -> io::Result<()>) -> Poller {
        Poller { name, prepare, running: Mutex::default(), staging: Mutex::default() }
    }

    /// Looks after a job from now on.
    pub(crate) fn watch(
        &self,
        job: &Arc<Job>,
        (output, errors): (OwnedFd, Option<OwnedFd>),
        control: UnixStream,
        supervision: Option<Supervision>,
    ) -> io::Result<()> {
        let shared = self.begun()?;
        let errors = errors.map(|errors| (Arc::new(errors), Stream::Errors));
        let outputs = [(Arc::new(output), Stream::Output)].into_iter().chain(errors);
        let outputs: Vec<_> = outputs.collect();
        for (output, stream) in &outputs {
            shared.add(Source::Output(output.clone(), *stream, job.clone()))?;
        }
        let (job, received) = (job.clone(), Mutex::default());
        shared.add(Source::Keeper(ShimChannel { control, received, job, outputs, supervision }))
    }

    /// Performs the calls of a command from now on.
    fn supervise(&self, supervised: Supervised) -> io::Result<()> {
        self.begun()?.add(Source::Calls(supervised))
    }

    /// The files of all commands that are reviewed when they are closed.
    fn staging(&self) -> io::Result<Arc<Staging>> {
        let mut staging = lock(&self.staging);
        if let Some(staging) = &*staging {
            return Ok(staging.clone());
        }
        let made = Arc::new(Staging::new()?);
        self.begun()?.add(Source::ClosedFiles(made.clone()))?;
        Ok(staging.insert(made).clone())
    }

    fn begun(&self) -> io::Result<Arc<Shared>> {
        let mut running = lock(&self.running);
        if let Some(running) = &*running {
            return Ok(running.shared.clone());
        }
        let begun = Running::begin(self.name, self.prepare)?;
        Ok(running.insert(begun).shared.clone())
    }
}

impl Running {
    fn begin(name: &str, prepare: fn() -> io::Result<()>) -> io::Result<Running> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        let shared = Arc::new(Shared { epoll, stop, sources: Mutex::default() });
        // Weak, so that it lasts no longer than who began it even if it could not be told.
        let seen = Arc::downgrade(&shared);
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || {
            if prepare().is_ok() {
                attend(&seen);
            }
        });
        let thread = Some(thread?);
        Ok(Running { shared, thread })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = write(&self.shared.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn attend(shared: &Weak<Shared>) {
    let mut chunk = vec![0; CHUNK];
    let mut events = Vec::with_capacity(EVENTS);
    while let Some(shared) = shared.upgrade() {
        events.clear();
        match epoll::wait(&shared.epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        if !events.iter().all(|event: &Event| shared.serve(event.data.u64(), &mut chunk)) {
            return;
        }
    }
}

impl Shared {
    fn add(&self, source: Source) -> io::Result<()> {
        let source = Arc::new(source);
        let mut sources = lock(&self.sources);
        sources.last += 1;
        let number = sources.last;
        sources.by_number.insert(number, source.clone());
        drop(sources);
        let data = EventData::new_u64(number);
        let added = match &*source {
            Source::Output(output, ..) => epoll::add(&self.epoll, output, data, EventFlags::IN),
            Source::Keeper(keeper) => {
                epoll::add(&self.epoll, &keeper.control, data, EventFlags::IN)
            }
            Source::Calls(calls) => epoll::add(&self.epoll, calls, data, EventFlags::IN),
            Source::ClosedFiles(files) => epoll::add(&self.epoll, files, data, EventFlags::IN),
        };
        Ok(added.inspect_err(|_| self.remove(number))?)
    }

    fn remove(&self, number: u64) {
        lock(&self.sources).by_number.remove(&number);
    }

    /// Reads what a source has; answers whether to go on at all.
    fn serve(&self, number: u64, chunk: &mut [u8]) -> bool {
        if number == STOP {
            return false;
        }
        let Some(source) = lock(&self.sources).by_number.get(&number).cloned() else { return true };
        let open = match &*source {
            Source::Output(output, stream, job) => read_output(output, *stream, job, chunk),
            Source::Keeper(keeper) => keeper.hear(chunk),
            Source::Calls(calls) => calls.attend(),
            Source::ClosedFiles(files) => {
                files.publish();
                true
            }
        };
        if !open {
            match &*source {
                Source::Output(output, stream, job) => {
                    let _ = epoll::delete(&self.epoll, output);
                    job.closed(*stream);
                }
                Source::Keeper(keeper) => {
                    let _ = epoll::delete(&self.epoll, &keeper.control);
                    keeper.job.keeper_gone();
                }
                Source::Calls(calls) => {
                    let _ = epoll::delete(&self.epoll, calls);
                    calls.over();
                }
                Source::ClosedFiles(_) => {}
            }
            self.remove(number);
        }
        true
    }
}

/// Moves some of an output into its log, and never less than a pipe holds, if it has that much; answers
/// whether there may be more.
fn read_output(output: &OwnedFd, stream: Stream, job: &Job, chunk: &mut [u8]) -> bool {
    let mut moved = 0;
    while moved < TURN_BYTES {
        match read(output, &mut *chunk) {
            Ok(0) => return false,
            Ok(count) => {
                job.wrote(stream, chunk.get(..count).unwrap_or_default());
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
    /// Hears what it says; answers whether it may say more.
    fn hear(&self, chunk: &mut [u8]) -> bool {
        let mut received = lock(&self.received);
        let mut descriptors = Vec::new();
        loop {
            let open = match fd_passing::receive(&self.control, chunk) {
                Ok((0, _)) => false,
                Ok((count, received_descriptors)) => {
                    descriptors.extend(received_descriptors);
                    received.extend_from_slice(chunk.get(..count).unwrap_or_default());
                    true
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => false,
            };
            while let Ok(Some(notice)) = take_notice(&mut received) {
                match (notice, &self.supervision) {
                    (ShimMessage::Supervised, Some(supervision)) => {
                        let descriptors = std::mem::take(&mut descriptors);
                        begin_to_supervise(descriptors, &self.job, supervision);
                    }
                    (notice, _) => {
                        if matches!(notice, ShimMessage::Exited { .. }) {
                            self.read_what_the_shell_wrote(chunk);
                        }
                        self.job.heard(notice);
                    }
                }
            }
            if !open {
                return false;
            }
        }
    }

    /// The notice of the exit and the output come by different ways. All that the shell wrote is in the pipe
    /// by now, so it is read before the exit is told. A process that the shell left behind may keep the pipe
    /// open, and write on.
    fn read_what_the_shell_wrote(&self, chunk: &mut [u8]) {
        for (output, stream) in &self.outputs {
            if !read_output(output, *stream, &self.job, chunk) {
                self.job.closed(*stream);
            }
        }
    }
}

/// Without a supervisor the calls of the command fail, as when it ends while they wait.
fn begin_to_supervise(descriptors: Vec<OwnedFd>, job: &Arc<Job>, supervision: &Supervision) {
    let Supervision { confinement, guard, poller } = supervision;
    let mut descriptors = descriptors.into_iter();
    let calls = descriptors.next().ok_or(io::ErrorKind::UnexpectedEof.into());
    let begun = calls.and_then(|calls| {
        let (job, guard, staging) = (job.clone(), guard.clone(), poller.staging()?);
        Ok(Supervised::new(calls, job, confinement, guard, descriptors.next(), staging))
    });
    if let Err(error) = begun.and_then(|supervised| poller.supervise(supervised)) {
        guard.unseen(&error);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
