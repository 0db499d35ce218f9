//! The shim of a sandboxed command after it has started the first process inside. It stays outside the sandbox.
//!
//! It has a single thread: a process that has created a PID namespace for its children cannot start another.
//! So it waits for all events at once, and forwards messages while it ends the processes inside.

use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, wait};

use super::{ORPHAN_GRACE, own_tree, report_failure, send_finished, send_message, shell};
use crate::command::Exit;
use crate::fd_passing;
use crate::process_tree::children;
use crate::setup_error::SetupError;
use crate::shim_messages::{self, Ending, ShimMessage};
use crate::stream_io::timespec;

/// How often to check whether all processes have exited that the first process left behind, after it was
/// killed without a PID namespace.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub(super) struct SandboxMonitor {
    control: UnixStream,
    /// The processes between this one and the shell, outermost first.
    intermediate: Vec<Pid>,
    /// Readable when the first of them has exited.
    first_pidfd: Option<OwnedFd>,
    /// The stderr of bubblewrap, if the first of them is bubblewrap, which then starts our own program.
    stderr: Option<OwnedFd>,
    /// Read by listings of commands ([`crate::all_running_jobs`]).
    _script: Option<OwnedFd>,
    inner: InnerChannel,
}

/// The connection to the first process inside.
struct InnerChannel {
    socket: Option<UnixStream>,
    received: Vec<u8>,
    /// Descriptors that arrived with the bytes, for the runtime.
    descriptors: Vec<OwnedFd>,
    started: bool,
    /// Whether the failure to start was already reported.
    failure_reported: bool,
    exited: bool,
}

impl SandboxMonitor {
    pub(super) fn new(
        control: UnixStream,
        first: Pid,
        socket: UnixStream,
        script: Option<OwnedFd>,
    ) -> SandboxMonitor {
        let inner = InnerChannel {
            socket: Some(socket),
            received: Vec::new(),
            descriptors: Vec::new(),
            started: false,
            failure_reported: false,
            exited: false,
        };
        let first_pidfd = pidfd_open(first, PidfdFlags::empty()).ok();
        let intermediate = vec![first];
        SandboxMonitor { control, intermediate, first_pidfd, stderr: None, _script: script, inner }
    }

    /// Sets the stderr of bubblewrap, if the first process is bubblewrap.
    pub(super) fn with_stderr(self, stderr: OwnedFd) -> SandboxMonitor {
        SandboxMonitor { stderr: Some(stderr), ..self }
    }

    pub(super) fn report_failure(self, failure: SetupError) -> ExitCode {
        report_failure(&self.control, failure)
    }

    /// Forwards messages from inside and handles requests of the runtime, until no process is left.
    pub(super) fn run(mut self) -> ExitCode {
        loop {
            let (has_request, ended) = self.wait_for_event();
            self.forward_messages();
            if ended && reap_all_ended() {
                break;
            }
            if has_request {
                self.handle_request();
            }
        }
        if !self.inner.started {
            if let (Some(stderr), false) = (&self.stderr, self.inner.failure_reported) {
                let what = String::from_utf8_lossy(&shell::read_memfd(stderr)).trim().to_owned();
                let step = "start bubblewrap".to_owned();
                send_message(&self.control, &ShimMessage::NotStarted { step, what, errno: 0 });
            }
            return ExitCode::FAILURE;
        }
        if !self.inner.exited {
            // It was killed with all others.
            let (cpu, peak_bytes) = shell::children_usage();
            let exit = Exit::Signal(Signal::KILL.as_raw());
            send_message(
                &self.control,
                &ShimMessage::Exited { exit, cpu, peak_bytes, shell_state: Vec::new() },
            );
        }
        send_finished(&self.control)
    }

    /// Forwards the messages that have arrived from inside.
    fn forward_messages(&mut self) {
        // bubblewrap has started one process, which is ours. It exists once it has sent a message.
        if let ([first], Some(_)) = (self.intermediate.as_slice(), &self.stderr) {
            self.intermediate.extend(children(*first));
        }
        self.inner.forward_messages(&self.control, &self.intermediate);
    }

    /// Returns whether the runtime has sent a request, and whether the first process may have exited.
    fn wait_for_event(&self) -> (bool, bool) {
        let mut waiting = vec![PollFd::new(&self.control, PollFlags::IN)];
        let ends = self.first_pidfd.as_ref();
        waiting.extend(ends.map(|ends| PollFd::new(ends, PollFlags::IN)));
        let inner = self.inner.socket.as_ref();
        waiting.extend(inner.map(|socket| PollFd::new(socket, PollFlags::IN)));
        // Once the socket is closed, only exits are left to wait for.
        let timeout = inner.is_none().then(|| timespec(POLL_INTERVAL));
        let _ = poll(&mut waiting, timeout.as_ref());
        let ready = |index: usize| waiting.get(index).is_some_and(|one| !one.revents().is_empty());
        (ready(0), inner.is_none() || (ends.is_some() && ready(1)))
    }

    /// Handles a request of the runtime. If the runtime is gone, ends all processes.
    fn handle_request(&mut self) {
        let mut byte = [0];
        match (&self.control).read(&mut byte) {
            Ok(1) => {
                if let Some(ending) = Ending::from_byte(byte[0]) {
                    self.end(ending.grace());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => self.end(ORPHAN_GRACE),
        }
    }

    fn end(&mut self, grace: Duration) {
        let SandboxMonitor { control, intermediate, inner, .. } = self;
        own_tree(intermediate).end(grace, Duration::MAX, &mut |pause| {
            match &inner.socket {
                Some(socket) => {
                    let waiting = &mut [PollFd::new(socket, PollFlags::IN)];
                    let _ = poll(waiting, Some(&timespec(pause)));
                }
                None => std::thread::sleep(pause),
            }
            inner.forward_messages(control, intermediate);
            // Zombies do no harm, but would be listed.
            let _ = reap_all_ended();
        });
    }
}

impl InnerChannel {
    /// Forwards the messages that have arrived, if they are valid at this point.
    fn forward_messages(&mut self, control: &UnixStream, intermediate: &[Pid]) {
        while let Some(socket) = &self.socket {
            let mut waiting = [PollFd::new(socket, PollFlags::IN)];
            if !matches!(poll(&mut waiting, Some(&timespec(Duration::ZERO))), Ok(1)) {
                return;
            }
            let mut chunk = [0; 4096];
            match fd_passing::receive(socket, &mut chunk) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok((0, _)) | Err(_) => self.socket = None,
                Ok((count, descriptors)) => {
                    self.received.extend_from_slice(&chunk[..count]);
                    self.descriptors.extend(descriptors);
                    if self.forward_received(control, intermediate).is_err() {
                        // After an invalid message, nothing more is read. The exit is still waited for.
                        self.socket = None;
                    }
                }
            }
        }
    }

    fn forward_received(
        &mut self,
        control: &UnixStream,
        intermediate: &[Pid],
    ) -> Result<(), shim_messages::MalformedMessage> {
        while let Some(message) = shim_messages::take_message(&mut self.received)? {
            match message {
                ShimMessage::SupervisionReady if !self.started => {
                    let descriptors = std::mem::take(&mut self.descriptors);
                    let descriptors: Vec<_> = descriptors.iter().map(OwnedFd::as_fd).collect();
                    // If the runtime is gone, that is noticed elsewhere.
                    let _ = shim_messages::send(control, &message, &descriptors);
                }
                ShimMessage::Started { .. } if !self.started => {
                    self.started = true;
                    let intermediate =
                        intermediate.iter().map(|process| process.as_raw_pid()).collect();
                    send_message(control, &ShimMessage::Started { intermediate });
                }
                ShimMessage::NotStarted { .. } if !self.started => {
                    self.failure_reported = true;
                    send_message(control, &message);
                }
                ShimMessage::Exited { .. } if self.started && !self.exited => {
                    self.exited = true;
                    send_message(control, &message);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reaps exited children. Returns whether none is left.
fn reap_all_ended() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}
