//! Starts shim processes, and hands commands to them.
//!
//! The process that serves tools may be large and has many threads, so it never forks. It spawns a small shim
//! ([`crate::run_shim`], usually the host's own program, started again) and sends it the command on a socket. The
//! socket is also the lifeline: when this end closes, however this process dies, the shim ends all processes of
//! the command. A shim without a command can be forked, which is quicker than starting the program again.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::error::JobError;
use crate::fd_passing;
use crate::nofile_limit::restore_limit_of;
use crate::random::random_hex;
use crate::shim_messages::{self, Request, ShimMessage};

/// How long a shim may take to reply. It takes a millisecond, but longer on a machine that swaps.
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);

/// Starts shims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The absolute path of a program whose `main` calls [`crate::run_shim`].
    pub program: PathBuf,
    /// Arguments that select the shim in that program. The job's id is appended, so that process listings
    /// show it.
    pub arguments: Vec<OsString>,
    /// The workspace of the runtime, shown in lists of commands.
    pub workspace: Option<PathBuf>,
}

/// The prefix of the id of a shim. Random digits follow.
pub(crate) const ID_PREFIX: &str = "job_";

/// The environment variable of a shim that holds the workspace.
pub(crate) const WORKSPACE: &str = "TOOLCRIB_WORKSPACE";

/// A shim that waits for its request. Dropping this ends it.
#[derive(Debug)]
pub(crate) struct IdleShim(Option<Launched>);

/// A command that was handed to a shim.
#[derive(Debug)]
pub(crate) struct Launched {
    /// The id of the job among all commands of the user. It is the last argument of the shim.
    pub(crate) id: String,
    pub(crate) shim: ShimProcess,
    /// The socket to the shim. It is non-blocking once a request was sent.
    pub(crate) control: UnixStream,
}

/// The process of a shim. It is a child of this process, so its pid is not reused before [`ShimProcess::wait`].
#[derive(Debug)]
pub(crate) struct ShimProcess(Pid);

impl ShimProcess {
    pub(crate) fn pid(&self) -> i32 {
        self.0.as_raw_pid()
    }

    /// Waits until it has exited.
    pub(crate) fn wait(self) {
        // Fails if the host ignores SIGCHLD: then the kernel has reaped it.
        let _ = retry_on_intr(|| waitpid(Some(self.0), WaitOptions::empty()));
    }

    fn kill_and_wait(self) {
        // It may already have exited.
        let _ = kill_process(self.0, Signal::KILL);
        self.wait();
    }
}

impl Launcher {
    /// Starts a shim with an id for its future job. The streams of the command come with its request.
    pub(crate) fn start(&self) -> io::Result<IdleShim> {
        let id = random_id()?;
        let (ours, theirs) = UnixStream::pair()?;
        let mut shim = std::process::Command::new(&self.program);
        shim.args(&self.arguments).arg(&id).env_clear().current_dir("/");
        shim.envs(self.workspace.iter().map(|workspace| (WORKSPACE, workspace)));
        shim.stdin(Stdio::from(OwnedFd::from(theirs)));
        shim.stdout(Stdio::null()).stderr(Stdio::null());
        let started = shim.spawn()?;
        // Otherwise this process would hold the other end and never see it close.
        drop(shim);
        restore_limit_of(&started);
        let shim = ShimProcess(Pid::from_child(&started));
        Ok(IdleShim(Some(Launched { id, shim, control: ours })))
    }
}

impl IdleShim {
    /// Makes a copy of the shim, with another id. It is a child of this process, too.
    pub(crate) fn fork(&self) -> io::Result<IdleShim> {
        let id = random_id()?;
        let (ours, theirs) = UnixStream::pair()?;
        let request = shim_messages::encode(&Request::Fork { id: id.clone() })?;
        let control = self.control()?;
        fd_passing::send(control, &request, &[theirs.as_fd()])?;
        match read_reply(control)?.0 {
            ShimMessage::Forked { pid } => {
                let shim = Pid::from_raw(pid).map(ShimProcess);
                let shim = shim.ok_or(io::ErrorKind::InvalidData)?;
                Ok(IdleShim(Some(Launched { id, shim, control: ours })))
            }
            ShimMessage::NotStarted { errno, .. } => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Sends a request to the shim.
    pub(crate) fn send_request(
        mut self,
        request: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<Launched> {
        let control = self.control()?;
        fd_passing::send(control, request, descriptors)?;
        control.set_nonblocking(true)?;
        self.0.take().ok_or(io::ErrorKind::NotConnected.into())
    }

    /// Sends a request that only makes something. Returns the descriptors of the reply.
    pub(crate) fn make(
        self,
        request: &Request<'_>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Vec<OwnedFd>, JobError> {
        let failed = |error: io::Error| JobError::not_launched(&error);
        let request = shim_messages::encode(request).map_err(failed)?;
        let Launched { shim, control, .. } =
            self.send_request(&request, descriptors).map_err(failed)?;
        let reply = read_reply(&control);
        // It has replied, or never will.
        shim.kill_and_wait();
        match reply.map_err(failed)? {
            (ShimMessage::NotStarted { step, what, errno }, _) => {
                Err(JobError::NotPrepared { step, what, errno })
            }
            (_, descriptors) => Ok(descriptors),
        }
    }

    fn control(&self) -> io::Result<&UnixStream> {
        let waiting = self.0.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        Ok(&waiting.control)
    }
}

impl Drop for IdleShim {
    fn drop(&mut self) {
        if let Some(Launched { shim, .. }) = self.0.take() {
            shim.kill_and_wait();
        }
    }
}

fn random_id() -> io::Result<String> {
    Ok(format!("{ID_PREFIX}{}", random_hex()?))
}

/// Reads a message of a shim, and the descriptors that came with it.
fn read_reply(control: &UnixStream) -> io::Result<(ShimMessage, Vec<OwnedFd>)> {
    control.set_nonblocking(false)?;
    control.set_read_timeout(Some(REPLY_TIMEOUT))?;
    let mut bytes = vec![0; 4096];
    let (received, descriptors) = fd_passing::receive(control, &mut bytes)?;
    bytes.truncate(received);
    let message = shim_messages::take_message(&mut bytes).ok().flatten();
    message.map(|message| (message, descriptors)).ok_or(io::ErrorKind::UnexpectedEof.into())
}
