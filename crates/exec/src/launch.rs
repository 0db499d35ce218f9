//! Starting a command: a keeper is started, which starts it.
//!
//! The process that serves tools may be large and has many threads: it never forks. It spawns a small
//! keeper ([`crate::keep`]; the host's program once more) and hands the command over on a socket. The
//! socket is also the lifeline: when this end of it closes, in whatever way the process dies, the keeper
//! ends all that the command started.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use crate::command::Command;
use crate::wire;

/// More than the usual 64 KiB: a flood needs fewer wake-ups. Where the system grants less, less does.
const PIPE_BYTES: usize = 256 << 10;

/// Starts keepers. What a command may see and touch will be prepared here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The program whose `main` calls [`crate::keep`], by its full path.
    pub program: PathBuf,
    /// The arguments by which it knows that it is to. The job's id comes behind them: for whoever lists
    /// processes.
    pub arguments: Vec<OsString>,
}

/// A command under way.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) keeper: Child,
    /// The socket to the keeper; it does not block.
    pub(crate) control: UnixStream,
    /// What the command writes, both streams in the order of the writes; it does not block.
    pub(crate) output: OwnedFd,
}

impl Launcher {
    pub(crate) fn launch(&self, id: &str, command: &Command) -> io::Result<Launched> {
        let (ours, theirs) = UnixStream::pair()?;
        let (output, written) = pipe_with(PipeFlags::CLOEXEC)?;
        let _ = fcntl_setpipe_size(&output, PIPE_BYTES);
        let mut keeper = std::process::Command::new(&self.program);
        keeper.args(&self.arguments).arg(id).env_clear().current_dir("/");
        keeper.stdin(Stdio::from(OwnedFd::from(theirs)));
        keeper.stdout(Stdio::from(written.try_clone()?)).stderr(Stdio::from(written));
        let mut started = keeper.spawn()?;
        // Else this process would hold the other ends, and never see them close.
        drop(keeper);
        let handed_over = (&ours)
            .write_all(&wire::encode_command(command))
            .and_then(|()| ours.set_nonblocking(true))
            .and_then(|()| Ok(fcntl_setfl(&output, OFlags::NONBLOCK)?));
        if let Err(error) = handed_over {
            // Already gone is as good as killed.
            let _ = started.kill();
            let _ = started.wait();
            return Err(error);
        }
        Ok(Launched { keeper: started, control: ours, output })
    }
}
