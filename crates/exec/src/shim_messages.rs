//! The messages between the runtime and a shim: postcard frames on a socket, each after its length.

use std::borrow::Cow;
use std::io::{self, Read as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::command::{Command, Exit};
use crate::fd_passing;
use crate::limits::Limits;
use crate::sandbox::Confinement;
use crate::sandbox::bubblewrap::BwrapChecks;
use crate::setup_error::SetupError;

/// More than any message needs. The largest holds an environment.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// The bytes of the length before a frame.
const LENGTH_BYTES: usize = size_of::<u64>();

/// How to end the processes of a command. It is sent to a shim as a single byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// SIGTERM, and SIGKILL after two seconds.
    Polite,
    /// SIGTERM, and SIGKILL after half a second.
    Prompt,
    /// SIGKILL at once.
    Immediate,
}

impl Ending {
    const ALL: [Ending; 3] = [Ending::Polite, Ending::Prompt, Ending::Immediate];

    /// The time between SIGTERM and SIGKILL.
    pub(crate) fn grace(self) -> Duration {
        match self {
            Ending::Polite => Duration::from_secs(2),
            Ending::Prompt => Duration::from_millis(500),
            Ending::Immediate => Duration::ZERO,
        }
    }

    pub(crate) fn to_byte(self) -> u8 {
        match self {
            Ending::Polite => b'p',
            Ending::Prompt => b'q',
            Ending::Immediate => b'i',
        }
    }

    pub(crate) fn from_byte(word: u8) -> Option<Ending> {
        Ending::ALL.into_iter().find(|ending| ending.to_byte() == word)
    }
}

/// A request to a shim.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request<'a> {
    /// Fork, and have the copy wait for its own request on the socket that comes with it. It gets an id of the same length.
    Fork { id: String },
    /// Run a command, with or without a sandbox. The descriptors of its streams and of the session's namespaces
    /// come with it. The limits are those of a command without a sandbox.
    Run(Cow<'a, Command>, Option<Cow<'a, Confinement>>, Option<Limits>),
    /// Make the namespaces of a session, and reply with their descriptors, and with those of the sockets for a
    /// gateway if `with_gateway`.
    MakeNamespaces { with_gateway: bool },
    /// Make unbound sockets in the namespaces whose descriptors come with it, and reply with them.
    MakeSockets,
    /// Be the first process inside bubblewrap, and run the command there.
    RunInBubblewrap(Cow<'a, Command>, Cow<'a, Confinement>, BwrapChecks),
}

/// A message of a shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ShimMessage {
    /// The seccomp listener of the command comes with it as the first descriptor, and a `sock_diag` socket of
    /// its network namespace as the second, if there is one. Then come the sockets for a gateway, if the network
    /// namespace is the command's own.
    SupervisionReady,
    /// The pid of the copy.
    Forked { pid: i32 },
    /// The shell runs. `intermediate` are the process ids of our own processes between the shim and the shell.
    Started { intermediate: Vec<i32> },
    /// The command could not be started: the failed step, its object and the errno.
    NotStarted { step: String, what: String, errno: i32 },
    /// The shell has ended.
    Exited { exit: Exit, cpu: Duration, peak_bytes: u64, shell_state: Vec<u8> },
    /// All processes have exited. The shim has signalled `terminated` of them, `force_killed` with SIGKILL.
    Finished { terminated: u64, force_killed: u64 },
}

impl From<SetupError> for ShimMessage {
    fn from(SetupError { step, what, error }: SetupError) -> Self {
        let errno = error.raw_os_error().unwrap_or(0);
        ShimMessage::NotStarted { step: step.to_owned(), what, errno }
    }
}

/// Encodes a request or a message.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame =
        postcard::to_extend(message, vec![0; LENGTH_BYTES]).map_err(io::Error::other)?;
    let length = (frame.len() - LENGTH_BYTES) as u64;
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// Sends a message. The descriptors go with its first byte.
pub(crate) fn send(
    socket: &UnixStream,
    message: &ShimMessage,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    fd_passing::send(socket, &encode(message)?, descriptors)
}

/// Reads a request, and the descriptors that came with it.
pub(crate) fn read_request(mut from: &UnixStream) -> io::Result<(Request<'static>, Vec<OwnedFd>)> {
    let mut length = [0; LENGTH_BYTES];
    let (received, descriptors) = fd_passing::receive(from, &mut length)?;
    from.read_exact(&mut length[received..])?;
    // It comes from the runtime, which holds all of it in memory, too.
    let length = usize::try_from(u64::from_le_bytes(length)).map_err(io::Error::other)?;
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    Ok((postcard::from_bytes(&payload).map_err(io::Error::other)?, descriptors))
}

/// Removes the first message from the received bytes. Returns `None` if it is incomplete.
pub(crate) fn take_message(
    received: &mut Vec<u8>,
) -> Result<Option<ShimMessage>, MalformedMessage> {
    let Some((length, rest)) = received.split_first_chunk() else { return Ok(None) };
    let length = usize::try_from(u64::from_le_bytes(*length)).ok();
    let length = length.filter(|&length| length <= MAX_MESSAGE_BYTES).ok_or(MalformedMessage)?;
    let Some(payload) = rest.get(..length) else { return Ok(None) };
    let message = postcard::from_bytes(payload).map_err(|_| MalformedMessage)?;
    received.drain(..LENGTH_BYTES + length);
    Ok(Some(message))
}

/// A shim sent an invalid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MalformedMessage;

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::PathBuf;

    use super::*;
    use crate::command::Stdin;
    use crate::sandbox::level::Level;
    use crate::sandbox::{Network, PinnedPath, Sandbox};

    fn path(bytes: &[u8]) -> PathBuf {
        std::ffi::OsStr::from_bytes(bytes).into()
    }

    #[test]
    fn requests_are_read_back() {
        let command = Command {
            script: b"echo \xff\n".to_vec(),
            shell: "/bin/bash".into(),
            directory: path(b"/\xff"),
            environment: vec![("A".into(), path(b"b\n\xff").into())],
            stdin: Stdin::Content(vec![0, 1]),
            separate_streams: true,
        };
        // Only existing paths are sent.
        let top = tempfile::tempdir().unwrap();
        let hidden = vec![top.path().join(path(b"h\xff")), top.path().join("i")];
        hidden.iter().for_each(|path| std::fs::create_dir(path).unwrap());
        let sandbox = Sandbox {
            writable: vec![PinnedPath { path: path(b"/w\xfe"), identity: (1, u64::MAX) }],
            read_only: vec![PinnedPath { path: "/r".into(), identity: (3, 4) }],
            hidden: hidden.into(),
            replaced: Vec::new(),
            tmp: "/t".into(),
            supervise_reads: true,
            network: Network::All,
            limits: Limits { processes: 7, ..Limits::DEFAULT },
        };
        let confinement =
            Confinement { sandbox, level: Level::Landlock, max_landlock: 5, proxy_port: Some(7) };
        let (command, confinement) = (Cow::Borrowed(&command), Cow::Borrowed(&confinement));
        let checks = BwrapChecks::default();
        for request in [
            Request::Run(command.clone(), None, None),
            Request::Run(command.clone(), None, Some(Limits::DEFAULT)),
            Request::Run(command.clone(), Some(confinement.clone()), None),
            Request::RunInBubblewrap(command, confinement, checks),
            Request::MakeNamespaces { with_gateway: true },
            Request::MakeSockets,
            Request::Fork { id: "job_1".into() },
        ] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let frame = encode(&request).unwrap();
            fd_passing::send(&ours, &frame, &[]).unwrap();
            assert_eq!(read_request(&theirs).unwrap().0, request);
        }
    }

    #[test]
    fn messages_are_taken_when_they_are_complete() {
        let messages = [
            ShimMessage::SupervisionReady,
            ShimMessage::Forked { pid: 7 },
            ShimMessage::Started { intermediate: vec![7] },
            ShimMessage::NotStarted { step: "start".into(), what: "/bin/bash".into(), errno: 2 },
            ShimMessage::Exited {
                exit: Exit::Signal(9),
                cpu: Duration::from_micros(5),
                peak_bytes: 1 << 40,
                shell_state: b"/\0".to_vec(),
            },
            ShimMessage::Finished { terminated: 3, force_killed: 1 },
        ];
        let mut received = Vec::new();
        for message in &messages {
            let frame = encode(message).unwrap();
            let (last, rest) = frame.split_last().unwrap();
            for byte in rest {
                received.push(*byte);
                assert_eq!(take_message(&mut received), Ok(None));
            }
            received.push(*last);
            assert_eq!(take_message(&mut received).unwrap().as_ref(), Some(message));
        }
        assert!(received.is_empty());
    }

    #[test]
    fn too_long_and_unknown_messages_are_refused() {
        assert_eq!(take_message(&mut u64::MAX.to_le_bytes().to_vec()), Err(MalformedMessage));
        let mut unknown = encode(&77_u32).unwrap();
        assert_eq!(take_message(&mut unknown), Err(MalformedMessage));
    }
}
