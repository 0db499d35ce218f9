//! Relays bytes between a command and a host. The first bytes are checked; `splice` moves the rest, so that they
//! never enter this process's memory.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use crate::check_first_bytes::{self, FirstBytes};
use crate::host::Host;

/// How often the end of the session is checked.
const STOP_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// How long a client may take to complete its first message.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a connection without traffic stays open after one side has closed it.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_secs(120);

/// Bytes in flight. A smaller pipe works, too: the kernel gives a user only so many.
const PIPE_BYTES: usize = 1 << 20;

/// Bytes per call.
const CHUNK_BYTES: usize = 1 << 20;

/// Moves of one direction before the other has its turn.
const MOVES_PER_TURN: usize = 8;

/// How a relay ended.
#[derive(Debug)]
pub(crate) enum RelayEnd {
    /// Both sides are closed, or the session has ended.
    Closed,
    /// A side was reset.
    Reset,
    /// The first message of the client was refused. The bytes were not forwarded.
    Refused { reason: String, first_bytes: Vec<u8> },
}

/// The bytes that were copied.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Copied {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// Copies bytes in both directions until both sides are closed.
pub(crate) fn relay(
    client: &TcpStream,
    server: &TcpStream,
    host: &Host,
    stop: &AtomicBool,
    copied: &mut Copied,
) -> io::Result<RelayEnd> {
    client.set_nonblocking(true)?;
    server.set_nonblocking(true)?;
    let mut first = FirstMessage::new();
    let mut upward = Direction::new()?;
    let mut downward = Direction::new()?;
    let mut last_traffic = Instant::now();
    loop {
        let wants = |read: &Direction, write: &Direction| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, read.wants_input());
            flags.set(PollFlags::OUT, write.has_output());
            flags
        };
        // A side that nothing is wanted of would report its end again and again.
        let sides = [(client, wants(&upward, &downward)), (server, wants(&downward, &upward))];
        let wanted = sides.iter().filter(|(_, flags)| !flags.is_empty());
        let mut interests: Vec<PollFd<'_>> =
            wanted.map(|(side, flags)| PollFd::new(*side, *flags)).collect();
        retry_on_intr(|| poll(&mut interests, Some(&STOP_INTERVAL)))?;
        let before = upward.moved + downward.moved;
        if first.is_open() && upward.wants_input() {
            match first.read(client, host)? {
                FirstRead::Waits => {}
                FirstRead::Complete(bytes) => upward.prepend(bytes),
                FirstRead::Ended(bytes) => {
                    upward.prepend(bytes);
                    upward.ended = true;
                }
                FirstRead::Refused(reason, first_bytes) => {
                    return Ok(RelayEnd::Refused { reason, first_bytes });
                }
            }
        }
        let reads_upward = !first.is_open();
        let moved = upward
            .step(client, server, reads_upward)
            .and_then(|()| downward.step(server, client, true));
        (copied.sent, copied.received) = (upward.moved, downward.moved);
        match moved {
            Ok(()) => {}
            Err(Errno::CONNRESET | Errno::PIPE | Errno::TIMEDOUT) => return Ok(RelayEnd::Reset),
            Err(error) => return Err(error.into()),
        }
        if upward.closed && downward.closed || stop.load(Ordering::Relaxed) {
            return Ok(RelayEnd::Closed);
        }
        if upward.moved + downward.moved > before {
            last_traffic = Instant::now();
        }
        let is_half_closed = upward.closed || downward.closed;
        if is_half_closed && last_traffic.elapsed() > HALF_CLOSED_TIMEOUT {
            return Ok(RelayEnd::Closed);
        }
    }
}

/// One direction of a connection.
struct Direction {
    /// Bytes that were read before, and come first.
    prefix: Vec<u8>,
    pipe: (OwnedFd, OwnedFd),
    in_pipe: usize,
    /// No more input comes.
    ended: bool,
    /// The end was passed on.
    closed: bool,
    moved: u64,
}

impl Direction {
    fn new() -> io::Result<Direction> {
        let pipe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let _ = fcntl_setpipe_size(&pipe.0, PIPE_BYTES);
        Ok(Direction {
            prefix: Vec::new(),
            pipe,
            in_pipe: 0,
            ended: false,
            closed: false,
            moved: 0,
        })
    }

    fn prepend(&mut self, bytes: Vec<u8>) {
        self.prefix = bytes;
    }

    fn wants_input(&self) -> bool {
        !self.ended && !self.has_output()
    }

    fn has_output(&self) -> bool {
        self.in_pipe > 0 || !self.prefix.is_empty()
    }

    /// Moves bytes as long as both sides are ready.
    fn step(&mut self, from: &TcpStream, to: &TcpStream, reads: bool) -> rustix::io::Result<()> {
        for _ in 0..MOVES_PER_TURN {
            let before = self.moved;
            self.move_once(from, to, reads)?;
            if self.moved == before || self.has_output() {
                break;
            }
        }
        Ok(())
    }

    fn move_once(
        &mut self,
        from: &TcpStream,
        to: &TcpStream,
        reads: bool,
    ) -> rustix::io::Result<()> {
        if self.wants_input() && reads {
            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
            match splice(from, None, &self.pipe.1, None, CHUNK_BYTES, flags) {
                Ok(0) => self.ended = true,
                Ok(count) => self.in_pipe += count,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        while !self.prefix.is_empty() {
            match send(to, &self.prefix, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => {
                    self.prefix.drain(..count);
                    self.moved += count as u64;
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        while self.in_pipe > 0 {
            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
            match splice(&self.pipe.0, None, to, None, self.in_pipe, flags) {
                Ok(count) => {
                    self.in_pipe -= count;
                    self.moved += count as u64;
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        if self.ended && !self.has_output() && !self.closed {
            self.closed = true;
            // The other side may be closed already.
            let _ = to.shutdown(Shutdown::Write);
        }
        Ok(())
    }
}

/// The first message of a client, which is checked before it is forwarded.
struct FirstMessage {
    bytes: Option<Vec<u8>>,
    /// When its first bytes arrived.
    began: Option<Instant>,
}

enum FirstRead {
    Waits,
    Complete(Vec<u8>),
    Ended(Vec<u8>),
    Refused(String, Vec<u8>),
}

impl FirstMessage {
    fn new() -> FirstMessage {
        FirstMessage { bytes: Some(Vec::new()), began: None }
    }

    fn is_open(&self) -> bool {
        self.bytes.is_some()
    }

    fn read(&mut self, client: &TcpStream, host: &Host) -> io::Result<FirstRead> {
        let Some(bytes) = &mut self.bytes else { return Ok(FirstRead::Waits) };
        let mut chunk = [0_u8; 16 << 10];
        match recv(client, &mut chunk, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Ok(FirstRead::Ended(self.bytes.take().unwrap_or_default())),
            Ok((_, count)) => bytes.extend_from_slice(chunk.get(..count).unwrap_or_default()),
            Err(Errno::AGAIN | Errno::INTR) if bytes.is_empty() => return Ok(FirstRead::Waits),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_late = self.began.get_or_insert_with(Instant::now).elapsed() > FIRST_MESSAGE_TIMEOUT;
        match check_first_bytes::check(bytes, host) {
            FirstBytes::Incomplete if is_late => {
                let reason = format!("the first message to {host} was not completed in time");
                Ok(FirstRead::Refused(reason, self.bytes.take().unwrap_or_default()))
            }
            FirstBytes::Incomplete => Ok(FirstRead::Waits),
            FirstBytes::Accepted => Ok(FirstRead::Complete(self.bytes.take().unwrap_or_default())),
            FirstBytes::Refused(reason) => {
                Ok(FirstRead::Refused(reason, self.bytes.take().unwrap_or_default()))
            }
        }
    }
}
