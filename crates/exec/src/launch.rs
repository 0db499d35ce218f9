//! Starts commands by way of a shim process.
//!
//! The process that serves tools may be large and has many threads, so it never forks. It spawns a small shim
//! ([`crate::run_shim`], usually the host's own program, started again) and sends it the command on a socket. The
//! socket is also the lifeline: when this end closes, however this process dies, the shim ends all processes of
//! the command.

use std::ffi::OsString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::error::JobError;
use crate::fd_passing;
use crate::nofile_limit::restore_limit_of;
use crate::random::random_hex;
use crate::sandbox::namespaces::SessionNamespaces;
use crate::shim_messages::{self, Request, ShimMessage};

/// How long a shim may take to make the namespaces of a session. It takes a millisecond, but longer on a
/// machine that swaps.
const NAMESPACES_TIMEOUT: Duration = Duration::from_secs(20);

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
    pub(crate) shim: Child,
    /// The socket to the shim. It is non-blocking once a request was sent.
    pub(crate) control: UnixStream,
}

impl Launcher {
    /// Makes the namespaces of a session in a new shim, and the sockets for a gateway if `with_gateway`.
    pub(crate) fn make_namespaces(
        &self,
        with_gateway: bool,
    ) -> Result<(SessionNamespaces, Vec<OwnedFd>), JobError> {
        let mut descriptors = self.request(&Request::MakeNamespaces { with_gateway }, &[])?;
        let sockets = descriptors.split_off(descriptors.len().min(2));
        let namespaces = SessionNamespaces::from_descriptors(descriptors);
        Ok((namespaces.ok_or(JobError::ShimUnresponsive)?, sockets))
    }

    /// Makes unbound sockets in the namespaces of a session.
    pub(crate) fn make_sockets(
        &self,
        namespaces: &SessionNamespaces,
    ) -> Result<Vec<OwnedFd>, JobError> {
        self.request(&Request::MakeSockets, &namespaces.descriptors())
    }

    /// Sends a request to a new shim that only makes something. Returns the descriptors of the reply.
    fn request(
        &self,
        request: &Request<'_>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Vec<OwnedFd>, JobError> {
        let failed = |error: io::Error| JobError::not_launched(&error);
        let request = shim_messages::encode(request).map_err(failed)?;
        let shim = self.start().map_err(failed)?;
        let launched = shim.send_request(&request, descriptors).map_err(failed)?;
        let Launched { mut shim, control, .. } = launched;
        let reply = read_reply(&control);
        // It has replied, or never will.
        let _ = shim.kill();
        let _ = shim.wait();
        match reply.map_err(failed)? {
            (ShimMessage::NotStarted { step, what, errno }, _) => {
                Err(JobError::NotPrepared { step, what, errno })
            }
            (_, descriptors) => Ok(descriptors),
        }
    }

    /// Starts a shim with an id for its future job. The streams of the command come with its request.
    pub(crate) fn start(&self) -> io::Result<IdleShim> {
        let id = format!("{ID_PREFIX}{}", random_hex()?);
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
        Ok(IdleShim(Some(Launched { id, shim: started, control: ours })))
    }
}

impl IdleShim {
    /// Sends a request to the shim.
    pub(crate) fn send_request(
        mut self,
        request: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<Launched> {
        let control = self.0.as_ref().map(|waiting| &waiting.control);
        let control = control.ok_or(io::ErrorKind::NotConnected)?;
        fd_passing::send(control, request, descriptors)?;
        control.set_nonblocking(true)?;
        self.0.take().ok_or(io::ErrorKind::NotConnected.into())
    }
}

impl Drop for IdleShim {
    fn drop(&mut self) {
        if let Some(Launched { shim, .. }) = &mut self.0 {
            // It may already have exited.
            let _ = shim.kill();
            let _ = shim.wait();
        }
    }
}

/// Reads the first message of a shim, and the descriptors that came with it.
fn read_reply(control: &UnixStream) -> io::Result<(ShimMessage, Vec<OwnedFd>)> {
    control.set_nonblocking(false)?;
    control.set_read_timeout(Some(NAMESPACES_TIMEOUT))?;
    let mut bytes = vec![0; 4096];
    let (received, descriptors) = fd_passing::receive(control, &mut bytes)?;
    bytes.truncate(received);
    let message = shim_messages::take_message(&mut bytes).ok().flatten();
    message.map(|message| (message, descriptors)).ok_or(io::ErrorKind::UnexpectedEof.into())
}
