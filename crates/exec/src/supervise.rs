//! The supervisor: performs the system calls of a command that change files by name, and those that connect
//! sockets.
//!
//! # Theory of operation
//!
//! A seccomp filter stops these calls ([`crate::sandbox`]), and the kernel hands each to one thread of this
//! process while the caller waits. The thread copies the arguments from the caller's memory ([`operation`]),
//! resolves each path to open directories as the caller would ([`resolve`]), asks the command's [`Guard`]
//! about the real paths, performs the call on the open directories ([`perform`], [`open`], [`socket`]), and
//! returns the outcome to the caller. Only one thread decides and performs, so nothing of this session
//! changes in between.
//!
//! The kernel could be told to continue the call instead. It would then read the arguments again from memory
//! that other threads of the command can write, so a decision would not be binding. So a call is continued
//! only if nothing depends on the decision.
//!
//! Calls are performed with the credentials of the command, without capabilities ([`caller`]), and in the
//! command's own mounts: what the kernel denies to the command, it denies here.

mod address;
mod blocking;
pub(crate) mod caller;
pub(crate) mod content_review;
mod open;
pub(crate) mod operation;
mod perform;
mod resolve;
mod socket;

use std::collections::{HashSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstatvfs, openat2};
use rustix::io::Errno;

use self::blocking::BlockingCalls;
use self::caller::{Caller, Credentials};
use self::content_review::Staging;
use self::operation::Operation;
use self::resolve::{Resolved, Resolver};
use crate::gateway::NetworkExit;
use crate::guard::{FileAccess, FileAction, Guard, GuardVerdict};
use crate::job::Job;
use crate::refusal::{DeniedAction, MAX_REFUSALS, Refusal, Unwritable};
use crate::sandbox::level::Level;
use crate::sandbox::{
    Confinement, Network, Notification, Sandbox, add_descriptor, continue_syscall,
    enable_sync_wake_up, fail_syscall, is_still_pending, receive_notification, return_value,
};
use crate::sock_diag::SocketTable;

/// The number of calls of one command that are received before others have their turn.
const MAX_CALLS_PER_TURN: usize = 64;

/// A command and its supervised calls.
#[derive(Debug)]
pub(crate) struct SupervisedCommand {
    /// The seccomp listener.
    listener: Arc<OwnedFd>,
    job: Arc<Job>,
    guard: Arc<dyn Guard>,
    sandbox: Sandbox,
    level: Level,
    /// The real paths of the workspace and the caches.
    shared: Vec<PathBuf>,
    /// The real path of the session's temporary directory.
    tmp: PathBuf,
    /// The root directory in the command's view.
    root: OnceLock<OwnedFd>,
    credentials: OnceLock<Credentials>,
    sockets: SocketTable,
    blocking: BlockingCalls,
    staging: Arc<Staging>,
    reported: Mutex<HashSet<Refusal>>,
    /// The way out of its network namespace, if it has one.
    exit: Option<Arc<dyn NetworkExit>>,
}

/// One call that waits for a response.
struct Call<'a> {
    supervised: &'a SupervisedCommand,
    notification: &'a Notification,
    caller: Caller,
    credentials: Credentials,
    resolver: Resolver<'a>,
}

/// The outcome of a call.
enum Response {
    Value(i64),
    Error(Errno),
    Descriptor {
        file: OwnedFd,
        close_on_exec: bool,
    },
    /// The kernel continues the call: nothing depends on a decision.
    Continue,
    /// Another thread responds.
    Later,
}

impl SupervisedCommand {
    pub(crate) fn new(
        listener: OwnedFd,
        job: Arc<Job>,
        confinement: &Confinement,
        guard: Arc<dyn Guard>,
        sockets: Option<OwnedFd>,
        staging: Arc<Staging>,
    ) -> SupervisedCommand {
        enable_sync_wake_up(&listener);
        let (sandbox, level) = (confinement.sandbox.clone(), confinement.level);
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        let shared: Vec<PathBuf> = confinement.writable_paths().filter_map(real).collect();
        let tmp = real(&sandbox.tmp).unwrap_or_default();
        let shares_network = sandbox.network == Network::All || !level.has_namespaces();
        SupervisedCommand {
            listener: Arc::new(listener),
            job,
            guard,
            sandbox,
            level,
            shared,
            tmp,
            root: OnceLock::new(),
            credentials: OnceLock::new(),
            sockets: SocketTable::new(sockets, shares_network),
            blocking: BlockingCalls::default(),
            staging,
            reported: Mutex::default(),
            exit: None,
        }
    }

    /// Sets the way out of its network namespace.
    pub(crate) fn with_exit(self, exit: Option<Arc<dyn NetworkExit>>) -> SupervisedCommand {
        SupervisedCommand { exit, ..self }
    }

    /// Handles the calls that wait now. Returns whether there may be more.
    ///
    /// A signal can interrupt a call that was not received yet, which programs do not expect of most of these
    /// calls; a received call is not interrupted. So all are received as soon as possible, also between two
    /// responses.
    pub(crate) fn handle_pending(&self) -> bool {
        let (mut taken, mut queue) = (0, VecDeque::new());
        let mut ready;
        loop {
            ready = self.ready();
            while taken < MAX_CALLS_PER_TURN && ready.contains(PollFlags::IN) {
                taken += 1;
                // The calling thread may already have ended.
                queue.extend(receive_notification(&self.listener));
                ready = self.ready();
            }
            let Some(notification) = queue.pop_front() else { break };
            // A file that was closed before this call must be in place before the call is performed.
            if self.staging.is_in_use() {
                self.staging.publish();
            }
            self.handle(&notification);
        }
        !ready.contains(PollFlags::HUP) || ready.contains(PollFlags::IN)
    }

    /// Called when all processes of the command have exited.
    pub(crate) fn finish(&self) {
        self.blocking.end();
        self.staging.publish();
        self.guard.finished();
        if let Some(exit) = &self.exit {
            exit.job_ended(self.job.id());
        }
    }

    fn handle(&self, notification: &Notification) {
        // A panic must not leave the command waiting for ever.
        let performed = catch_unwind(AssertUnwindSafe(|| self.perform(notification)));
        let outcome = performed.unwrap_or_else(|_| {
            self.guard.supervision_failed(&io::Error::other("the supervisor failed"));
            Err(Errno::IO)
        });
        reply(&self.listener, notification, outcome);
    }

    fn perform(&self, notification: &Notification) -> rustix::io::Result<Response> {
        let caller = Caller { thread: notification.thread };
        let operation = Operation::read(notification).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidFilename => Errno::NAMETOOLONG,
            _ => Errno::from_io_error(&error).unwrap_or(Errno::FAULT),
        })?;
        let Some(operation) = operation else { return Ok(Response::Continue) };
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
        let shim = (!self.level.has_namespaces()).then(|| self.job.shim_pid());
        let resolver = Resolver { caller, root, credentials, shim };
        let call = Call { supervised: self, notification, caller, credentials, resolver };
        // If the caller has ended, another thread may have its number, and the data above may be that
        // thread's.
        call.check_still_pending()?;
        call.perform(operation)
    }

    /// Whether other programs see a file at this path, too: it is in the workspace or in a cache.
    fn is_shared(&self, path: &Path) -> bool {
        self.shared.iter().any(|top| path.starts_with(top))
    }

    fn has_private_network(&self) -> bool {
        self.sandbox.network.is_private()
    }

    /// Reports a denied action to the job, once.
    fn report(&self, refusal: Refusal) {
        let mut reported = self.reported.lock();
        if reported.len() <= MAX_REFUSALS && reported.insert(refusal.clone()) {
            self.job.add_refusal(refusal);
        }
    }

    /// The reason why a path cannot be written.
    fn unwritable_reason(&self, path: &Path) -> Unwritable {
        let hidden = &self.sandbox.hidden;
        let is_in =
            |top: PathBuf| std::fs::canonicalize(top).is_ok_and(|top| path.starts_with(top));
        let is_hidden = hidden.iter().any(|top| path.starts_with(top))
            || hidden.existing().into_iter().any(is_in);
        if is_hidden {
            Unwritable::Hidden
        } else if self.sandbox.read_only.iter().any(|pinned| path.starts_with(&pinned.path)) {
            Unwritable::ReadOnly
        } else {
            Unwritable::Outside
        }
    }

    fn ready(&self) -> PollFlags {
        let mut notification = [PollFd::new(&*self.listener, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut notification, Some(&now)) {
            Ok(_) => notification[0].revents(),
            Err(_) => PollFlags::empty(),
        }
    }
}

impl AsFd for SupervisedCommand {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Call<'_> {
    /// Fails if the caller has ended: then data that was read from it may belong to another thread.
    fn check_still_pending(&self) -> rustix::io::Result<()> {
        let waits = is_still_pending(&self.supervised.listener, self.notification);
        if waits { Ok(()) } else { Err(Errno::SRCH) }
    }

    /// Asks the guard. Fails with `EACCES` if it refuses.
    fn ask_guard(&self, accesses: &[FileAccess]) -> rustix::io::Result<GuardVerdict> {
        for access in accesses {
            self.check_writable(denied_action(&access.action), &access.path)?;
        }
        let program = || self.caller.program();
        match self.supervised.guard.decide(accesses, &program) {
            GuardVerdict::Refuse { access, why, restore } => {
                if let Some(access) = accesses.get(access) {
                    if let Some((content, mode)) = restore {
                        content_review::restore(self, &access.path, &content, mode);
                    }
                    let action = denied_action(&access.action);
                    self.supervised.report(refusal(action, access.path.clone(), why));
                }
                Err(Errno::ACCESS)
            }
            GuardVerdict::ReviewAndCopy(paths) => {
                paths.iter().try_for_each(|path| content_review::replace_with_copy(self, path))?;
                Ok(GuardVerdict::Allow)
            }
            verdict => Ok(verdict),
        }
    }

    /// Fails for a mount point. For its own calls, the kernel checks only the mounts that the caller sees,
    /// and this process does not see those of the command.
    fn check_not_mounted(
        &self,
        action: DeniedAction,
        found: &Resolved,
        path: &Path,
    ) -> rustix::io::Result<()> {
        if !found.is_mounted() {
            return Ok(());
        }
        let why = match self.supervised.unwritable_reason(path) {
            Unwritable::Outside => Unwritable::ParentOfProtected,
            why => why,
        };
        self.supervised.report(Refusal::Change(action, path.to_owned(), why));
        Err(Errno::BUSY)
    }

    /// Asks the guard about a call that a review cannot allow.
    fn ask_guard_without_review(&self, accesses: &[FileAccess]) -> rustix::io::Result<()> {
        match self.ask_guard(accesses)? {
            GuardVerdict::Allow => Ok(()),
            GuardVerdict::Review | GuardVerdict::Refuse { .. } | GuardVerdict::ReviewAndCopy(_) => {
                if let Some(access) = accesses.last() {
                    let (action, path) = (denied_action(&access.action), access.path.clone());
                    self.supervised.report(refusal(action, path, Unwritable::Protected));
                }
                Err(Errno::ACCESS)
            }
        }
    }

    /// Denies writes outside the workspace where no mount does.
    fn check_writable(&self, action: Option<DeniedAction>, path: &Path) -> rustix::io::Result<()> {
        let supervised = self.supervised;
        if supervised.level != Level::Landlock
            || supervised.is_shared(path)
            || path.starts_with(&supervised.tmp)
        {
            return Ok(());
        }
        supervised.report(refusal(action, path.to_owned(), supervised.unwritable_reason(path)));
        Err(Errno::ACCESS)
    }

    /// Reports a denial by the sandbox, and returns the outcome unchanged.
    fn report_if_denied<T>(
        &self,
        action: Option<DeniedAction>,
        path: Option<PathBuf>,
        outcome: rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        if let (Err(Errno::ROFS), Some(path)) = (&outcome, path)
            && !is_read_only_outside(&path)
        {
            let why = self.supervised.unwritable_reason(&path);
            self.supervised.report(refusal(action, path, why));
        }
        outcome
    }
}

/// The action of an access. `None` if it opens the file.
fn denied_action(action: &FileAction) -> Option<DeniedAction> {
    match action {
        FileAction::Write => None,
        FileAction::Create(crate::guard::NodeKind::File) => None,
        FileAction::Create(_) | FileAction::Link => Some(DeniedAction::Make),
        FileAction::Remove => Some(DeniedAction::Remove),
        FileAction::RenameFrom | FileAction::RenameTo(_) => Some(DeniedAction::Rename),
        FileAction::ChangeMode => Some(DeniedAction::Change),
    }
}

fn refusal(action: Option<DeniedAction>, path: PathBuf, why: Unwritable) -> Refusal {
    match action {
        Some(action) => Refusal::Change(action, path, why),
        None => Refusal::Write(path, why),
    }
}

/// Whether a file system is read-only for this process, too, so that the sandbox is not the cause.
fn is_read_only_outside(path: &Path) -> bool {
    let nearest = path.ancestors().find_map(|above| {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        // Only cached entries: a file server may not respond.
        openat2(CWD, above, flags, Mode::empty(), ResolveFlags::CACHED).ok()
    });
    let status = nearest.and_then(|file| fstatvfs(file).ok());
    status.is_some_and(|status| status.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Returns the outcome of a call to its thread.
fn reply(listener: &OwnedFd, notification: &Notification, outcome: rustix::io::Result<Response>) {
    match outcome {
        Ok(Response::Value(value)) => return_value(listener, notification, value),
        Ok(Response::Continue) => continue_syscall(listener, notification),
        Ok(Response::Later) => {}
        Ok(Response::Descriptor { file, close_on_exec }) => {
            let added = add_descriptor(listener, notification, &file, close_on_exec);
            // The caller must be the only one that has it open: a program that is open for writing is not
            // executed, and an open file gets no lease.
            drop(file);
            match added {
                Ok(number) => return_value(listener, notification, number),
                // The caller has no free descriptor number, or has ended.
                Err(error) => {
                    fail_syscall(
                        listener,
                        notification,
                        error.raw_os_error().unwrap_or(libc::EMFILE),
                    );
                }
            }
        }
        Ok(Response::Error(errno)) | Err(errno) => {
            fail_syscall(listener, notification, errno.raw_os_error());
        }
    }
}
