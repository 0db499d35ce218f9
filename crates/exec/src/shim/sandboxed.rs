//! The keeper of a command in a sandbox, once the first process inside is there.
//!
//! It has one thread: whoever has begun a namespace of processes for its children can start no other. So
//! it waits for everything at once, and goes on hearing while it ends what is inside.

use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, wait};

use super::{GRACE_ALONE, children, doomed, give_up, shell, tell, tell_over};
use crate::command::Exit;
use crate::fd_passing;
use crate::setup_error::Failure;
use crate::wire::{self, Ending, ShimMessage};

/// How often it is looked whether all have ended that the first process left behind, having been killed
/// where it was not the first of a namespace.
const GLANCE: Duration = Duration::from_millis(5);

pub(super) struct Attendant {
    control: UnixStream,
    /// The processes between this one and the shell, the outermost first.
    between: Vec<Pid>,
    /// Ready when the first of them has ended.
    first_ends: Option<OwnedFd>,
    /// Where the first of them complains, if it is a program of others, which then starts our own.
    words: Option<OwnedFd>,
    /// Whoever lists commands reads it here ([`crate::all_kept`]).
    _script: Option<OwnedFd>,
    inside: Inside,
}

/// What is heard from inside.
struct Inside {
    socket: Option<UnixStream>,
    received: Vec<u8>,
    /// What came along with it, for the runtime.
    descriptors: Vec<OwnedFd>,
    started: bool,
    /// It has been said why it could not be started.
    given_up: bool,
    exited: bool,
}

impl Attendant {
    pub(super) fn new(
        control: UnixStream,
        first: Pid,
        socket: UnixStream,
        script: Option<OwnedFd>,
    ) -> Attendant {
        let inside = Inside {
            socket: Some(socket),
            received: Vec::new(),
            descriptors: Vec::new(),
            started: false,
            given_up: false,
            exited: false,
        };
        let first_ends = pidfd_open(first, PidfdFlags::empty()).ok();
        let between = vec![first];
        Attendant { control, between, first_ends, words: None, _script: script, inside }
    }

    /// The same where the first process is a program of others, and complains here.
    pub(super) fn of_others(self, words: OwnedFd) -> Attendant {
        Attendant { words: Some(words), ..self }
    }

    pub(super) fn give_up(self, failure: Failure) -> ExitCode {
        give_up(&self.control, failure)
    }

    /// Passes on what is said inside and does what the runtime asks for, until nothing is left.
    pub(super) fn attend(mut self) -> ExitCode {
        loop {
            let (asked, ended) = self.wait_for_something();
            self.hear();
            if ended && nobody_left() {
                break;
            }
            if asked {
                self.obey();
            }
        }
        if !self.inside.started {
            if let (Some(words), false) = (&self.words, self.inside.given_up) {
                let what = String::from_utf8_lossy(&shell::read_back(words)).trim().to_owned();
                let step = "start bubblewrap".to_owned();
                tell(&self.control, &ShimMessage::NotStarted { step, what, errno: 0 });
            }
            return ExitCode::FAILURE;
        }
        if !self.inside.exited {
            // Killed with all the others.
            let (cpu, peak_bytes) = shell::used();
            let exit = Exit::Signal(Signal::KILL.as_raw());
            tell(&self.control, &ShimMessage::Exited { exit, cpu, peak_bytes, left: Vec::new() });
        }
        tell_over(&self.control)
    }

    /// Passes on what has been said inside.
    fn hear(&mut self) {
        // A program of others has started one process, which is ours; it is there when it says something.
        if let ([first], Some(_)) = (self.between.as_slice(), &self.words) {
            self.between.extend(children(*first));
        }
        self.inside.hear(&self.control, &self.between);
    }

    /// Whether the runtime has said something, and whether the first process may have ended.
    fn wait_for_something(&self) -> (bool, bool) {
        let mut waiting = vec![PollFd::new(&self.control, PollFlags::IN)];
        let ends = self.first_ends.as_ref();
        waiting.extend(ends.map(|ends| PollFd::new(ends, PollFlags::IN)));
        let inside = self.inside.socket.as_ref();
        waiting.extend(inside.map(|socket| PollFd::new(socket, PollFlags::IN)));
        // With the socket closed there is nothing to wait for but the end, and whatever outlives it.
        let patience = inside.is_none().then(|| timespec(GLANCE));
        let _ = poll(&mut waiting, patience.as_ref());
        let ready = |index: usize| waiting.get(index).is_some_and(|one| !one.revents().is_empty());
        (ready(0), inside.is_none() || (ends.is_some() && ready(1)))
    }

    /// Does what the runtime asks for; and what it would ask for, once it is gone.
    fn obey(&mut self) {
        let mut word = [0];
        match (&self.control).read(&mut word) {
            Ok(1) => {
                if let Some(ending) = Ending::of_word(word[0]) {
                    self.end(ending.grace());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => self.end(GRACE_ALONE),
        }
    }

    fn end(&mut self, grace: Duration) {
        let Attendant { control, between, inside, .. } = self;
        doomed(between).end(grace, Duration::MAX, &mut |glance| {
            match &inside.socket {
                Some(socket) => {
                    let waiting = &mut [PollFd::new(socket, PollFlags::IN)];
                    let _ = poll(waiting, Some(&timespec(glance)));
                }
                None => std::thread::sleep(glance),
            }
            inside.hear(control, between);
            // What has ended is in nobody's way, but would be listed.
            let _ = nobody_left();
        });
    }
}

impl Inside {
    /// Passes on what has been said, as far as it is something that may be said there.
    fn hear(&mut self, control: &UnixStream, between: &[Pid]) {
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
                    if self.pass_on(control, between).is_err() {
                        // Whoever says nonsense is not heard any more; it is waited for all the same.
                        self.socket = None;
                    }
                }
            }
        }
    }

    fn pass_on(
        &mut self,
        control: &UnixStream,
        between: &[Pid],
    ) -> Result<(), wire::NotUnderstood> {
        while let Some(notice) = wire::take_notice(&mut self.received)? {
            match notice {
                ShimMessage::Supervised if !self.started => {
                    let descriptors = std::mem::take(&mut self.descriptors);
                    let descriptors: Vec<_> = descriptors.iter().map(OwnedFd::as_fd).collect();
                    // If the runtime is gone, that is noticed elsewhere.
                    let _ = fd_passing::send(control, &wire::encode_notice(&notice), &descriptors);
                }
                ShimMessage::Started { .. } if !self.started => {
                    self.started = true;
                    let between = between.to_vec();
                    tell(control, &ShimMessage::Started { between });
                }
                ShimMessage::NotStarted { .. } if !self.started => {
                    self.given_up = true;
                    tell(control, &notice);
                }
                ShimMessage::Exited { .. } if self.started && !self.exited => {
                    self.exited = true;
                    tell(control, &notice);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reaps who has ended; answers whether that was the last.
fn nobody_left() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
