//! Starting a command: a keeper is started, which starts it.
//!
//! The process that serves tools may be large and has many threads: it never forks. It spawns a small
//! keeper ([`crate::keep`]; the host's program once more) and hands the command over on a socket. The
//! socket is also the lifeline: when this end of it closes, in whatever way the process dies, the keeper
//! ends all that the command started.

use std::ffi::OsString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use crate::error::JobError;
use crate::fd_passing;
use crate::nofile_limit::give_as_given;
use crate::random::random_word;
use crate::running_jobs::ID_PREFIX;
use crate::sandbox::namespaces::Space;
use crate::wire::{self, ShimMessage};

/// More than the usual 64 KiB: a flood needs fewer wake-ups. Where the system grants less, less does.
const PIPE_BYTES: usize = 256 << 10;

/// How long a keeper may take for the namespaces of a session. It takes a millisecond; a machine that
/// swaps takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts keepers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The program whose `main` calls [`crate::keep`], by its full path.
    pub program: PathBuf,
    /// The arguments by which it knows that it is to. The job's id comes behind them: for whoever lists
    /// processes.
    pub arguments: Vec<OsString>,
    /// The workspace of the runtime, for whoever lists commands.
    pub workspace: Option<PathBuf>,
}

/// The variable of a keeper that has the workspace.
pub(crate) const WORKSPACE: &str = "TOOLCRIB_WORKSPACE";

/// A keeper that waits for its request. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Shim(Option<Launched>);

/// A command under way.
#[derive(Debug)]
pub(crate) struct Launched {
    /// The id of the job among all commands of the user, which the keeper has among its arguments.
    pub(crate) id: String,
    pub(crate) keeper: Child,
    /// The socket to the keeper; it does not block once a request was handed over.
    pub(crate) control: UnixStream,
    /// The read end of stdout, and of stderr unless that is stored apart. It does not block.
    pub(crate) output: OwnedFd,
    /// The read end of stderr, if that is stored apart. It does not block.
    pub(crate) errors: Option<OwnedFd>,
}

impl Launcher {
    /// Has a keeper make the namespaces of a session.
    pub(crate) fn make_space(&self) -> Result<Space, JobError> {
        let failed = |error: io::Error| JobError::not_launched(&error);
        let keeper = self.start(false).map_err(failed)?;
        let launched = keeper.hand_over(&wire::encode_make_space(), &[]).map_err(failed)?;
        let Launched { mut keeper, control, .. } = launched;
        let answer = answer(&control);
        // It has answered, or never will.
        let _ = keeper.kill();
        let _ = keeper.wait();
        match answer.map_err(failed)? {
            (ShimMessage::NotStarted { step, what, errno }, _) => {
                Err(JobError::NotPrepared { step, what, errno })
            }
            (_, descriptors) => Space::of_descriptors(descriptors).ok_or(JobError::KeeperSilent),
        }
    }

    /// Starts a keeper, with an id for the job that it is to keep.
    pub(crate) fn start(&self, separate_streams: bool) -> io::Result<Shim> {
        let id = format!("{ID_PREFIX}{}", random_word()?);
        let (ours, theirs) = UnixStream::pair()?;
        let (output, stdout) = output_pipe()?;
        let (errors, stderr) = if separate_streams {
            let (errors, stderr) = output_pipe()?;
            (Some(errors), stderr)
        } else {
            (None, stdout.try_clone()?)
        };
        let mut keeper = std::process::Command::new(&self.program);
        keeper.args(&self.arguments).arg(&id).env_clear().current_dir("/");
        keeper.envs(self.workspace.iter().map(|workspace| (WORKSPACE, workspace)));
        keeper.stdin(Stdio::from(OwnedFd::from(theirs)));
        keeper.stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
        let started = keeper.spawn()?;
        // Else this process would hold the other ends, and never see them close.
        drop(keeper);
        give_as_given(&started);
        Ok(Shim(Some(Launched { id, keeper: started, control: ours, output, errors })))
    }
}

/// A pipe for what a command writes. The read end does not block.
fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (output, written) = pipe_with(PipeFlags::CLOEXEC)?;
    let _ = fcntl_setpipe_size(&output, PIPE_BYTES);
    fcntl_setfl(&output, OFlags::NONBLOCK)?;
    Ok((output, written))
}

impl Shim {
    /// Hands a request over.
    pub(crate) fn hand_over(
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

impl Drop for Shim {
    fn drop(&mut self) {
        if let Some(Launched { keeper, .. }) = &mut self.0 {
            // Already gone is as good as killed.
            let _ = keeper.kill();
            let _ = keeper.wait();
        }
    }
}

/// What a keeper says first, with the descriptors that come with it.
fn answer(control: &UnixStream) -> io::Result<(ShimMessage, Vec<OwnedFd>)> {
    control.set_nonblocking(false)?;
    control.set_read_timeout(Some(PATIENCE))?;
    let mut bytes = vec![0; 4096];
    let (received, descriptors) = fd_passing::receive(control, &mut bytes)?;
    bytes.truncate(received);
    let notice = wire::take_notice(&mut bytes).ok().flatten();
    notice.map(|notice| (notice, descriptors)).ok_or(io::ErrorKind::UnexpectedEof.into())
}
