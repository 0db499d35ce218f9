//! The supervisor: performs the calls of a command that change files by name, and those that connect sockets.
//!
//! # Theory of operation
//!
//! A filter in front of the command stops these calls ([`crate::sandbox`]), and the kernel hands each to one
//! thread of this process while the caller waits. The thread copies the arguments out of the caller's memory
//! ([`operation`]), resolves each path to open directories as the caller would ([`resolve`]), asks the
//! command's [`Guard`] about the real paths, performs the call on the open directories ([`perform`],
//! [`open`], [`socket`]), and returns the outcome to the caller. Only one thread decides and performs, so
//! nothing of this session changes in between.
//!
//! The kernel could be told to let the caller go on instead. It would then read the arguments once more from
//! memory that other threads of the command can write, and a decision would bind nobody. So a call is let go
//! on only if nothing depends on the decision.
//!
//! Calls are performed with the credentials of the command and without capabilities ([`caller`]), and in the
//! command's own mounts: what the kernel refuses to the command, it refuses here.

mod address;
mod blocking;
pub(crate) mod caller;
mod open;
pub(crate) mod operation;
mod perform;
mod resolve;
pub(crate) mod review;
pub(crate) mod sock_diag;
mod socket;

use std::collections::{HashSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstatvfs, openat2};
use rustix::io::Errno;

use self::blocking::Waiters;
use self::caller::{Caller, Credentials};
use self::operation::Operation;
use self::resolve::{Found, Resolver};
use self::review::Staging;
use self::sock_diag::Listening;
use crate::guard::{FileAccess, FileAction, Guard, GuardVerdict};
use crate::job::Job;
use crate::refusal::{DeniedAction, REFUSALS_TOLD, Refusal, Unwritable};
use crate::sandbox::level::Level;
use crate::sandbox::{
    Confinement, Network, Sandbox, Waiting, add_descriptor, answer_promptly, let_fail, let_happen,
    let_return, still_waits, take_waiting,
};

/// As many calls of one command are taken before others have their turn.
const TURN: usize = 64;

/// The supervised calls of one command.
#[derive(Debug)]
pub(crate) struct Supervised {
    /// Where the calls wait.
    calls: Arc<OwnedFd>,
    job: Arc<Job>,
    guard: Arc<dyn Guard>,
    sandbox: Sandbox,
    level: Level,
    /// The workspace and the caches, under their real names.
    shared: Vec<PathBuf>,
    /// The directory of the session, under its real name.
    tmp: PathBuf,
    /// The root of the files as the command sees them.
    root: OnceLock<OwnedFd>,
    credentials: OnceLock<Credentials>,
    sockets: Listening,
    waiters: Waiters,
    staging: Arc<Staging>,
    told: Mutex<HashSet<Refusal>>,
}

/// One call that waits.
struct Call<'a> {
    supervised: &'a Supervised,
    waiting: &'a Waiting,
    caller: Caller,
    credentials: Credentials,
    resolver: Resolver<'a>,
}

/// The outcome of a call.
enum Answer {
    Value(i64),
    Error(Errno),
    Descriptor {
        file: OwnedFd,
        close_on_exec: bool,
    },
    /// The kernel goes on with the call: nothing depends on a decision.
    Continue,
    /// Another thread answers.
    Later,
}

impl Supervised {
    pub(crate) fn new(
        calls: OwnedFd,
        job: Arc<Job>,
        confinement: &Confinement,
        guard: Arc<dyn Guard>,
        sockets: Option<OwnedFd>,
        staging: Arc<Staging>,
    ) -> Supervised {
        answer_promptly(&calls);
        let (sandbox, level) = (confinement.sandbox.clone(), confinement.level);
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        let shared: Vec<PathBuf> = confinement.written().filter_map(real).collect();
        let tmp = real(&sandbox.tmp).unwrap_or_default();
        let shares_network = sandbox.network == Network::All || !level.has_view();
        Supervised {
            calls: Arc::new(calls),
            job,
            guard,
            sandbox,
            level,
            shared,
            tmp,
            root: OnceLock::new(),
            credentials: OnceLock::new(),
            sockets: Listening::new(sockets, shares_network),
            waiters: Waiters::default(),
            staging,
            told: Mutex::default(),
        }
    }

    /// Answers the calls that wait now. Answers whether there may be more.
    ///
    /// A call that waits to be taken can be interrupted by a signal, which programs do not expect of most
    /// of these; one that was taken cannot. So all are taken as soon as they are there, also between two
    /// answers.
    pub(crate) fn attend(&self) -> bool {
        let (mut taken, mut queue) = (0, VecDeque::new());
        let mut ready;
        loop {
            ready = self.ready();
            while taken < TURN && ready.contains(PollFlags::IN) {
                taken += 1;
                // The thread that made the call may have ended already.
                queue.extend(take_waiting(&self.calls));
                ready = self.ready();
            }
            let Some(waiting) = queue.pop_front() else { break };
            // A file that was closed before this call was made is in its place before the call is.
            if self.staging.is_in_use() {
                self.staging.publish();
            }
            self.answer(&waiting);
        }
        !ready.contains(PollFlags::HUP) || ready.contains(PollFlags::IN)
    }

    /// No process of the command is left.
    pub(crate) fn over(&self) {
        self.staging.publish();
        self.guard.over();
    }

    fn answer(&self, waiting: &Waiting) {
        // A panic must not keep the command waiting for ever.
        let performed = catch_unwind(AssertUnwindSafe(|| self.perform(waiting)));
        let outcome = performed.unwrap_or_else(|_| {
            self.guard.unseen(&io::Error::other("the supervisor failed"));
            Err(Errno::IO)
        });
        reply(&self.calls, waiting, outcome);
    }

    fn perform(&self, waiting: &Waiting) -> rustix::io::Result<Answer> {
        let caller = Caller { thread: waiting.thread };
        let operation = Operation::read(waiting).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidFilename => Errno::NAMETOOLONG,
            _ => Errno::from_io_error(&error).unwrap_or(Errno::FAULT),
        })?;
        let Some(operation) = operation else { return Ok(Answer::Continue) };
        let root = match self.root.get() {
            Some(root) => root,
            None => {
                let root = caller.open_root()?;
                self.root.get_or_init(|| root)
            }
        };
        let credentials = match self.credentials.get() {
            Some(credentials) => *credentials,
            None => {
                let credentials = caller.credentials().ok_or(Errno::SRCH)?;
                *self.credentials.get_or_init(|| credentials)
            }
        };
        let keeper = (!self.level.has_view()).then(|| self.job.keeper());
        let resolver = Resolver { caller, root, credentials, keeper };
        let call = Call { supervised: self, waiting, caller, credentials, resolver };
        // Another thread may have got the number of one that has ended. Whatever was read is its own then.
        call.check_waiting()?;
        call.perform(operation)
    }

    /// Whether other programs find a file under this path, too: it is in the workspace, or in a cache.
    fn is_shared(&self, path: &Path) -> bool {
        self.shared.iter().any(|top| path.starts_with(top))
    }

    fn has_no_network(&self) -> bool {
        self.sandbox.network == Network::None
    }

    /// Tells what was refused, each once.
    fn tell(&self, refusal: Refusal) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() <= REFUSALS_TOLD && told.insert(refusal.clone()) {
            self.job.refused(refusal);
        }
    }

    /// Why a path cannot be written.
    fn why(&self, path: &Path) -> Unwritable {
        let is_hidden = |top: &PathBuf| {
            path.starts_with(top)
                || std::fs::canonicalize(top).is_ok_and(|top| path.starts_with(top))
        };
        if self.sandbox.hidden.iter().any(is_hidden) {
            Unwritable::Hidden
        } else if self.sandbox.read_only.iter().any(|held| path.starts_with(&held.path)) {
            Unwritable::ReadOnly
        } else {
            Unwritable::Outside
        }
    }

    fn ready(&self) -> PollFlags {
        let mut waiting = [PollFd::new(&*self.calls, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut waiting, Some(&now)) {
            Ok(_) => waiting[0].revents(),
            Err(_) => PollFlags::empty(),
        }
    }
}

impl AsFd for Supervised {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.calls.as_fd()
    }
}

impl Call<'_> {
    /// Fails if the caller has ended: then what is read of it may be another's.
    fn check_waiting(&self) -> rustix::io::Result<()> {
        let waits = still_waits(&self.supervised.calls, self.waiting);
        if waits { Ok(()) } else { Err(Errno::SRCH) }
    }

    /// Asks the guard.
    fn ask(&self, accesses: &[FileAccess]) -> rustix::io::Result<GuardVerdict> {
        for access in accesses {
            self.check_writable(deed(&access.action), &access.path)?;
        }
        let program = || self.caller.program();
        match self.supervised.guard.decide(accesses, &program) {
            GuardVerdict::Refuse { access, why } => {
                if let Some(access) = accesses.get(access) {
                    let deed = deed(&access.action);
                    self.supervised.tell(refusal(deed, access.path.clone(), why));
                }
                Err(Errno::ACCESS)
            }
            GuardVerdict::Renew(paths) => {
                paths.iter().try_for_each(|path| review::renew(self, path))?;
                Ok(GuardVerdict::Allow)
            }
            verdict => Ok(verdict),
        }
    }

    /// Fails for a name that something is mounted on. The kernel asks this of its own calls only for the
    /// mounts that the caller sees, and this process does not see those of the command.
    fn check_not_mounted(
        &self,
        deed: DeniedAction,
        found: &Found,
        path: &Path,
    ) -> rustix::io::Result<()> {
        if !found.is_mounted() {
            return Ok(());
        }
        let why = match self.supervised.why(path) {
            Unwritable::Outside => Unwritable::Holding,
            why => why,
        };
        self.supervised.tell(Refusal::Change(deed, path.to_owned(), why));
        Err(Errno::BUSY)
    }

    /// The same for calls that a review cannot allow.
    fn ask_without_review(&self, accesses: &[FileAccess]) -> rustix::io::Result<()> {
        match self.ask(accesses)? {
            GuardVerdict::Allow => Ok(()),
            GuardVerdict::Review | GuardVerdict::Refuse { .. } | GuardVerdict::Renew(_) => {
                if let Some(access) = accesses.last() {
                    let (deed, path) = (deed(&access.action), access.path.clone());
                    self.supervised.tell(refusal(deed, path, Unwritable::Protected));
                }
                Err(Errno::ACCESS)
            }
        }
    }

    /// Where no mount keeps a command from writing outside, this does.
    fn check_writable(&self, deed: Option<DeniedAction>, path: &Path) -> rustix::io::Result<()> {
        let supervised = self.supervised;
        if supervised.level != Level::Landlock
            || supervised.is_shared(path)
            || path.starts_with(&supervised.tmp)
        {
            return Ok(());
        }
        supervised.tell(refusal(deed, path.to_owned(), supervised.why(path)));
        Err(Errno::ACCESS)
    }

    /// Tells if the sandbox refused something, and passes the outcome on.
    fn told<T>(
        &self,
        deed: Option<DeniedAction>,
        path: Option<PathBuf>,
        outcome: rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        if let (Err(Errno::ROFS), Some(path)) = (&outcome, path)
            && !is_read_only_outside(&path)
        {
            let why = self.supervised.why(&path);
            self.supervised.tell(refusal(deed, path, why));
        }
        outcome
    }
}

/// What an access does to a name; nothing, if it opens the file.
fn deed(action: &FileAction) -> Option<DeniedAction> {
    match action {
        FileAction::Write => None,
        FileAction::Create(crate::guard::NodeKind::File) => None,
        FileAction::Create(_) | FileAction::Link => Some(DeniedAction::Make),
        FileAction::Remove => Some(DeniedAction::Remove),
        FileAction::RenameFrom | FileAction::RenameTo(_) => Some(DeniedAction::Rename),
        FileAction::ChangeMode => Some(DeniedAction::Change),
    }
}

fn refusal(deed: Option<DeniedAction>, path: PathBuf, why: Unwritable) -> Refusal {
    match deed {
        Some(deed) => Refusal::Change(deed, path, why),
        None => Refusal::Write(path, why),
    }
}

/// A file system that is read-only for this process too was not made so by the sandbox.
fn is_read_only_outside(path: &Path) -> bool {
    let nearest = path.ancestors().find_map(|above| {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        // Only where the kernel knows it already: a server may not answer.
        openat2(CWD, above, flags, Mode::empty(), ResolveFlags::CACHED).ok()
    });
    let status = nearest.and_then(|file| fstatvfs(file).ok());
    status.is_some_and(|status| status.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Returns the outcome of a call to the thread that made it.
fn reply(calls: &OwnedFd, waiting: &Waiting, outcome: rustix::io::Result<Answer>) {
    match outcome {
        Ok(Answer::Value(value)) => let_return(calls, waiting, value),
        Ok(Answer::Continue) => let_happen(calls, waiting),
        Ok(Answer::Later) => {}
        Ok(Answer::Descriptor { file, close_on_exec }) => {
            let added = add_descriptor(calls, waiting, &file, close_on_exec);
            // The caller goes on as the only one that has it open: a program that is open to be written is
            // not run, and a file that is open gets no lease.
            drop(file);
            match added {
                Ok(number) => let_return(calls, waiting, number),
                // The caller has no free number, or has ended.
                Err(error) => {
                    let_fail(calls, waiting, error.raw_os_error().unwrap_or(libc::EMFILE));
                }
            }
        }
        Ok(Answer::Error(errno)) | Err(errno) => let_fail(calls, waiting, errno.raw_os_error()),
    }
}
