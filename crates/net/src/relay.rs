//! Relays bytes between a command and a host. The first bytes are checked; `splice` moves the rest, so that they
//! never enter this process's memory.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use crate::check_first_bytes::{self, FirstBytes};
use crate::host::Host;
use crate::job_connections::JobConnections;

/// How often the end of the session and of the job is checked.
const STOP_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// How long a client may take to complete its first message.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Parts in which a client may send its first message: each is checked with all before it.
const MAX_FIRST_PARTS: usize = 1024;

/// The pause after which a single word is forwarded. It may be a method of HTTP, or all that the client sends.
const WORD_PAUSE: Duration = Duration::from_secs(1);

/// How long a connection without traffic stays open after one side has closed it.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a connection of a job that has ended may deliver bytes, without progress and in total.
const ENDED_JOB_PAUSE: Duration = Duration::from_secs(5);
const ENDED_JOB_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes in flight. Two pipes for each connection of a session are within the 64 MiB that the kernel gives to
/// all pipes of a user; beyond that, other programs of the user get tiny pipes.
const PIPE_BYTES: usize = 128 << 10;

/// The buffers of the socket on the side of the command: on loopback, more does not help. The other side needs
/// larger ones for distant hosts.
const CLIENT_BUFFER_BYTES: usize = 256 << 10;

/// Bytes per call.
const CHUNK_BYTES: usize = PIPE_BYTES;

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

/// What a connection does not outlive.
#[derive(Debug)]
pub(crate) struct Lifetime<'a> {
    /// Set when the session has ended.
    pub(crate) stop: &'a AtomicBool,
    /// The job that made the connection.
    pub(crate) job: Option<&'a JobConnections>,
}

/// How a connection ends now because of a time limit, if it does.
fn end_by_time(
    lifetime: &Lifetime<'_>,
    idle: Duration,
    is_half_closed: bool,
    is_delivered: bool,
) -> Option<RelayEnd> {
    if lifetime.stop.load(Ordering::Relaxed) {
        return Some(RelayEnd::Closed);
    }
    if let Some(ended) = lifetime.job.and_then(JobConnections::ended) {
        // No process reads the reply.
        if is_delivered {
            return Some(RelayEnd::Closed);
        }
        if idle > ENDED_JOB_PAUSE || ended.elapsed() > ENDED_JOB_TIMEOUT {
            // A reset frees the buffers of the kernel, too.
            return Some(RelayEnd::Reset);
        }
    }
    (is_half_closed && idle > HALF_CLOSED_TIMEOUT).then_some(RelayEnd::Reset)
}

/// Copies bytes in both directions until both sides are closed. `first_bytes` of the client were read already.
pub(crate) fn relay(
    (client, server): (&TcpStream, &TcpStream),
    first_bytes: Vec<u8>,
    host: &Host,
    lifetime: &Lifetime<'_>,
    copied: &mut Copied,
) -> io::Result<RelayEnd> {
    client.set_nonblocking(true)?;
    server.set_nonblocking(true)?;
    // Without it, the connection only needs more memory.
    let _ = set_socket_recv_buffer_size(client, CLIENT_BUFFER_BYTES);
    let _ = set_socket_send_buffer_size(client, CLIENT_BUFFER_BYTES);
    let mut first = FirstMessage::new(first_bytes);
    let mut upward = Direction::new()?;
    let mut downward = Direction::new()?;
    let mut last_traffic = Instant::now();
    let mut client_has_closed = false;
    loop {
        let wants = |read: &Direction, write: &Direction| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, read.wants_input());
            flags.set(PollFlags::OUT, write.has_output());
            flags
        };
        // A side that nothing is wanted of would report its end again and again.
        let mut sides = [(client, wants(&upward, &downward)), (server, wants(&downward, &upward))];
        // The end of the client is noticed while its bytes wait for the server.
        sides[0].1.set(PollFlags::RDHUP, !client_has_closed);
        let wanted = sides.iter().filter(|(_, flags)| !flags.is_empty());
        let mut interests: Vec<PollFd<'_>> =
            wanted.map(|(side, flags)| PollFd::new(*side, *flags)).collect();
        let timeout = if first.is_unchecked { Timespec::default() } else { STOP_INTERVAL };
        retry_on_intr(|| poll(&mut interests, Some(&timeout)))?;
        if !client_has_closed {
            let ends = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
            client_has_closed = interests.first().is_some_and(|one| one.revents().intersects(ends));
        }
        let before = upward.moved + downward.moved;
        if first.is_open() && upward.wants_input() {
            match first.read(client, host)? {
                FirstRead::Waits => {}
                FirstRead::Word(bytes) | FirstRead::Complete(bytes) => upward.prepend(bytes),
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
        if upward.closed && downward.closed {
            return Ok(RelayEnd::Closed);
        }
        if upward.moved + downward.moved > before {
            last_traffic = Instant::now();
        }
        let is_half_closed = client_has_closed || upward.closed || downward.closed;
        let idle = last_traffic.elapsed();
        if let Some(end) = end_by_time(lifetime, idle, is_half_closed, upward.closed) {
            return Ok(end);
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
    /// Whether there are bytes that were read before and not checked.
    is_unchecked: bool,
    /// The number of bytes that were forwarded.
    forwarded: usize,
    /// The number of parts that arrived, and when the first and the last one did.
    parts: usize,
    began: Instant,
    last_part: Instant,
}

enum FirstRead {
    Waits,
    /// A single word, which names no host. It is forwarded, and the message is still checked.
    Word(Vec<u8>),
    Complete(Vec<u8>),
    Ended(Vec<u8>),
    Refused(String, Vec<u8>),
}

impl FirstMessage {
    fn new(bytes: Vec<u8>) -> FirstMessage {
        let now = Instant::now();
        let is_unchecked = !bytes.is_empty();
        FirstMessage {
            bytes: Some(bytes),
            is_unchecked,
            forwarded: 0,
            parts: 0,
            began: now,
            last_part: now,
        }
    }

    fn is_open(&self) -> bool {
        self.bytes.is_some()
    }

    /// Reads the bytes that have arrived. The bytes of the result were not forwarded yet.
    fn read(&mut self, client: &TcpStream, host: &Host) -> io::Result<FirstRead> {
        let Some(bytes) = &mut self.bytes else { return Ok(FirstRead::Waits) };
        let mut chunk = [0_u8; 16 << 10];
        match recv(client, &mut chunk, RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) if self.is_unchecked => {}
            Ok((_, 0)) => return Ok(self.end(host)),
            Ok((_, count)) => bytes.extend_from_slice(chunk.get(..count).unwrap_or_default()),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(self.wait(host)),
            Err(error) => return Err(error.into()),
        }
        self.is_unchecked = false;
        self.last_part = Instant::now();
        if self.parts == 0 {
            self.began = self.last_part;
        }
        self.parts += 1;
        Ok(match check_first_bytes::check(bytes, host) {
            FirstBytes::Incomplete if self.parts > MAX_FIRST_PARTS => {
                self.refuse(format!("the first message to {host} came in too many parts"))
            }
            FirstBytes::Incomplete => FirstRead::Waits,
            FirstBytes::Accepted => FirstRead::Complete(self.take_rest()),
            FirstBytes::Refused(reason) => self.refuse(reason),
        })
    }

    /// Nothing more has arrived.
    fn wait(&mut self, host: &Host) -> FirstRead {
        match &self.bytes {
            Some(bytes) if check_first_bytes::is_word(bytes) => {
                let is_new = bytes.len() > self.forwarded;
                if !is_new || self.last_part.elapsed() < WORD_PAUSE {
                    return FirstRead::Waits;
                }
                let word = bytes.get(self.forwarded..).unwrap_or_default().to_vec();
                self.forwarded = bytes.len();
                FirstRead::Word(word)
            }
            Some(bytes) if !bytes.is_empty() && self.began.elapsed() > FIRST_MESSAGE_TIMEOUT => {
                self.refuse(format!("the first message to {host} was not completed in time"))
            }
            _ => FirstRead::Waits,
        }
    }

    /// The client sends nothing more. An incomplete message could name another host to a server that accepts it.
    fn end(&mut self, host: &Host) -> FirstRead {
        match &self.bytes {
            Some(bytes) if !bytes.is_empty() && !check_first_bytes::is_word(bytes) => {
                self.refuse(format!("the connection to {host} ended within its first message"))
            }
            _ => FirstRead::Ended(self.take_rest()),
        }
    }

    fn refuse(&mut self, reason: String) -> FirstRead {
        FirstRead::Refused(reason, self.bytes.take().unwrap_or_default())
    }

    fn take_rest(&mut self) -> Vec<u8> {
        let bytes = self.bytes.take().unwrap_or_default();
        bytes.get(self.forwarded..).unwrap_or_default().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// The two ends of a connection.
    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    /// Relays a connection to `a.example` while `talk` has the sockets of the command and of the host. The value that it
    /// returns is kept until the end of the relay.
    fn relayed<T>(talk: impl FnOnce(TcpStream, TcpStream, &JobConnections) -> T) -> RelayEnd {
        relayed_after(Vec::new(), talk)
    }

    /// The same with bytes that were read before.
    fn relayed_after<T>(
        first: Vec<u8>,
        talk: impl FnOnce(TcpStream, TcpStream, &JobConnections) -> T,
    ) -> RelayEnd {
        let ((command, client), (server, host)) = (connection(), connection());
        let job = JobConnections::of("sh_1".into());
        std::thread::scope(|scope| {
            let relayed = scope.spawn(|| {
                let name = Host::parse("a.example").unwrap();
                let stop = AtomicBool::new(false);
                let lifetime = Lifetime { stop: &stop, job: Some(&job) };
                let sides = (&client, &server);
                let end = relay(sides, first, &name, &lifetime, &mut Copied::default());
                drop((client, server));
                end.unwrap()
            });
            let _kept = talk(command, host, &job);
            relayed.join().unwrap()
        })
    }

    /// The host does not read, and the command is gone with bytes on their way.
    #[test]
    fn a_connection_ends_with_its_job() {
        let end = relayed(|mut command, host, job| {
            command.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
            while command.write(&[1; 1 << 16]).is_ok() {}
            drop(command);
            job.end();
            host
        });
        assert!(matches!(end, RelayEnd::Reset), "{end:?}");
    }

    /// The host keeps a connection open that the command has closed.
    #[test]
    fn an_idle_connection_ends_with_its_job() {
        let end = relayed(|mut command, mut host, job| {
            command.write_all(b"\x01all").unwrap();
            drop(command);
            job.end();
            let mut all = Vec::new();
            host.read_to_end(&mut all).unwrap();
            assert_eq!(all, b"\x01all");
            host
        });
        assert!(matches!(end, RelayEnd::Closed), "{end:?}");
    }

    #[test]
    fn a_single_word_is_forwarded_and_what_follows_is_checked() {
        let end = relayed(|mut command, mut host, _| {
            command.write_all(b"SECRET").unwrap();
            let mut word = [0; 6];
            host.read_exact(&mut word).unwrap();
            assert_eq!(&word, b"SECRET");
            command.write_all(b" / HTTP/1.1\r\nHost: b.example\r\n\r\n").unwrap();
            assert_eq!(host.read(&mut word).unwrap_or(0), 0);
        });
        assert!(matches!(end, RelayEnd::Refused { .. }), "{end:?}");
    }

    #[test]
    fn bytes_that_were_read_before_come_first_and_are_checked() {
        let end = relayed_after(
            b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n".to_vec(),
            |command, mut host, _| {
                let mut head = [0; 35];
                host.read_exact(&mut head).unwrap();
                assert!(head.starts_with(b"GET / "));
                drop(command);
            },
        );
        assert!(matches!(end, RelayEnd::Closed), "{end:?}");
        let other = b"GET / HTTP/1.1\r\nHost: b.example\r\n\r\n".to_vec();
        let end = relayed_after(other, |command, mut host, _| {
            assert_eq!(host.read(&mut [0; 9]).unwrap_or(0), 0);
            drop(command);
        });
        assert!(matches!(end, RelayEnd::Refused { .. }), "{end:?}");
    }

    #[test]
    fn an_incomplete_first_message_is_not_forwarded() {
        let end = relayed(|mut command, mut host, _| {
            command.write_all(b"GET / HTTP/1.1\r\nHost: b.example\r\n").unwrap();
            command.shutdown(Shutdown::Write).unwrap();
            assert_eq!(host.read(&mut [0; 9]).unwrap_or(0), 0);
        });
        assert!(matches!(end, RelayEnd::Refused { .. }), "{end:?}");
    }

    /// Each part is checked with all before it, so their number is limited.
    #[test]
    fn a_first_message_has_a_limited_number_of_parts() {
        let end = relayed(|mut command, host, _| {
            command.set_nodelay(true).unwrap();
            let mut parts = std::iter::repeat_n(&b"A: b\n"[..], 20 * MAX_FIRST_PARTS);
            command.write_all(b"GET / HTTP/1.1\r\n").unwrap();
            // Bounded by the size of a head as well.
            while parts.next().is_some_and(|part| command.write_all(part).is_ok()) {}
            drop(host);
        });
        assert!(matches!(end, RelayEnd::Refused { .. }), "{end:?}");
    }
}
