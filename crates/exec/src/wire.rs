//! The messages between the runtime and a shim: frames of numbers and bytes on a socket.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Pid;

use crate::command::{Command, Exit};
use crate::fd_passing;
use crate::frames::{FrameReader, FrameWriter, os_string};
use crate::sandbox::Confinement;
use crate::sandbox::bubblewrap::BwrapChecks;
use crate::setup_error::SetupError;

/// More than any message needs. The largest holds an environment.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// Run a command, with or without a sandbox. The descriptors of the session's namespaces come with it.
    Run(Command, Option<Confinement>),
    /// Make the namespaces of a session, and reply with their descriptors, and with those of the sockets for a
    /// gateway if `with_gateway`.
    MakeNamespaces { with_gateway: bool },
    /// Make unbound sockets in the namespaces whose descriptors come with it, and reply with them.
    MakeSockets,
    /// Be the first process inside bubblewrap, and run the command there.
    RunInBubblewrap(Command, Confinement, BwrapChecks),
}

/// A message of a shim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShimMessage {
    /// The seccomp listener of the command comes with it as the first descriptor, and a `sock_diag` socket of
    /// its network namespace as the second, if there is one. Then come the sockets for a gateway, if the network
    /// namespace is the command's own.
    SupervisionReady,
    /// The shell runs. `intermediate` are our own processes between the shim and the shell.
    Started { intermediate: Vec<Pid> },
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

/// Encodes [`Request::Run`].
pub(crate) fn encode_run(command: &Command, confinement: Option<&Confinement>) -> Vec<u8> {
    let mut frame = FrameWriter::default();
    frame.number(RUN);
    encode_command(command, &mut frame);
    frame.number(u64::from(confinement.is_some()));
    if let Some(confinement) = confinement {
        confinement.encode(&mut frame);
    }
    frame.finish()
}

/// Encodes [`Request::RunInBubblewrap`].
pub(crate) fn encode_run_in_bubblewrap(
    command: &Command,
    confinement: &Confinement,
    inside: &BwrapChecks,
) -> Vec<u8> {
    let mut frame = FrameWriter::default();
    frame.number(RUN_IN_BUBBLEWRAP);
    encode_command(command, &mut frame);
    confinement.encode(&mut frame);
    inside.encode(&mut frame);
    frame.finish()
}

fn encode_command(command: &Command, frame: &mut FrameWriter) {
    frame.bytes(&command.script);
    frame.bytes(command.shell.as_os_str().as_bytes());
    frame.bytes(command.directory.as_os_str().as_bytes());
    frame.bytes(&command.stdin);
    frame.number(u64::from(command.separate_streams));
    frame.number(command.environment.len() as u64);
    for (name, value) in &command.environment {
        frame.bytes(name.as_bytes());
        frame.bytes(value.as_bytes());
    }
}

/// Encodes [`Request::MakeNamespaces`].
pub(crate) fn encode_make_namespaces(with_gateway: bool) -> Vec<u8> {
    let mut frame = FrameWriter::default();
    frame.number(MAKE_NAMESPACES);
    frame.number(u64::from(with_gateway));
    frame.finish()
}

/// Encodes [`Request::MakeSockets`].
pub(crate) fn encode_make_sockets() -> Vec<u8> {
    let mut frame = FrameWriter::default();
    frame.number(MAKE_SOCKETS);
    frame.finish()
}

/// Reads a request, and the descriptors that came with it.
pub(crate) fn read_request(mut from: &UnixStream) -> io::Result<(Request, Vec<OwnedFd>)> {
    let mut length = [0; 8];
    let (received, descriptors) = fd_passing::receive(from, &mut length)?;
    from.read_exact(&mut length[received..])?;
    // It comes from the runtime, which holds all of it in memory, too.
    let length = usize::try_from(u64::from_le_bytes(length)).map_err(io::Error::other)?;
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    let request = parse_request(&payload).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((request, descriptors))
}

const RUN: u64 = 0;
const MAKE_NAMESPACES: u64 = 1;
const RUN_IN_BUBBLEWRAP: u64 = 2;
const MAKE_SOCKETS: u64 = 3;

/// Encodes a message.
pub(crate) fn encode_message(message: &ShimMessage) -> Vec<u8> {
    let mut frame = FrameWriter::default();
    match message {
        ShimMessage::Started { intermediate } => {
            frame.number(0);
            frame.number(intermediate.len() as u64);
            for pid in intermediate {
                frame.number(u64::from(pid.as_raw_pid().unsigned_abs()));
            }
        }
        ShimMessage::NotStarted { step, what, errno } => {
            frame.number(1);
            frame.bytes(step.as_bytes());
            frame.bytes(what.as_bytes());
            frame.number(u64::try_from(*errno).unwrap_or(0));
        }
        ShimMessage::Exited { exit, cpu, peak_bytes, shell_state } => {
            frame.number(2);
            let (by_signal, number) = match exit {
                Exit::Code(code) => (0, *code),
                Exit::Signal(signal) => (1, *signal),
            };
            frame.number(by_signal);
            frame.number(u64::try_from(number).unwrap_or(0));
            frame.number(u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX));
            frame.number(*peak_bytes);
            frame.bytes(shell_state);
        }
        ShimMessage::Finished { terminated, force_killed } => {
            frame.number(3);
            frame.number(*terminated);
            frame.number(*force_killed);
        }
        ShimMessage::SupervisionReady => frame.number(4),
    }
    frame.finish()
}

/// Removes the first message from the received bytes. Returns `None` if it is incomplete.
pub(crate) fn take_message(
    received: &mut Vec<u8>,
) -> Result<Option<ShimMessage>, MalformedMessage> {
    let mut rest = FrameReader(received);
    let Some(length) = rest.number() else { return Ok(None) };
    let length = usize::try_from(length).ok().filter(|&length| length <= MAX_MESSAGE_BYTES);
    let length = length.ok_or(MalformedMessage)?;
    let Some(payload) = rest.take(length) else { return Ok(None) };
    let message = parse_message(payload).ok_or(MalformedMessage)?;
    received.drain(..8 + length);
    Ok(Some(message))
}

/// A shim sent an invalid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MalformedMessage;

fn parse_request(payload: &[u8]) -> Option<Request> {
    let mut rest = FrameReader(payload);
    match rest.number()? {
        RUN => {
            let command = parse_command(&mut rest)?;
            let confinement = match rest.number()? {
                0 => None,
                _ => Some(Confinement::parse(&mut rest)?),
            };
            Some(Request::Run(command, confinement))
        }
        MAKE_NAMESPACES => Some(Request::MakeNamespaces { with_gateway: rest.number()? != 0 }),
        MAKE_SOCKETS => Some(Request::MakeSockets),
        RUN_IN_BUBBLEWRAP => {
            let command = parse_command(&mut rest)?;
            let confinement = Confinement::parse(&mut rest)?;
            Some(Request::RunInBubblewrap(command, confinement, BwrapChecks::parse(&mut rest)?))
        }
        _ => None,
    }
}

fn parse_command(rest: &mut FrameReader<'_>) -> Option<Command> {
    let script = rest.bytes()?.to_vec();
    let shell = PathBuf::from(os_string(rest.bytes()?));
    let directory = PathBuf::from(os_string(rest.bytes()?));
    let stdin = rest.bytes()?.to_vec();
    let separate_streams = rest.number()? != 0;
    let count = rest.number()?;
    let mut environment = Vec::new();
    for _ in 0..count {
        environment.push((os_string(rest.bytes()?), os_string(rest.bytes()?)));
    }
    Some(Command { script, shell, directory, environment, stdin, separate_streams })
}

fn parse_message(payload: &[u8]) -> Option<ShimMessage> {
    let mut rest = FrameReader(payload);
    Some(match rest.number()? {
        0 => ShimMessage::Started { intermediate: rest.pids()? },
        1 => ShimMessage::NotStarted {
            step: String::from_utf8_lossy(rest.bytes()?).into_owned(),
            what: String::from_utf8_lossy(rest.bytes()?).into_owned(),
            errno: i32::try_from(rest.number()?).ok()?,
        },
        2 => {
            let by_signal = rest.number()? == 1;
            let number = i32::try_from(rest.number()?).ok()?;
            ShimMessage::Exited {
                exit: if by_signal { Exit::Signal(number) } else { Exit::Code(number) },
                cpu: Duration::from_micros(rest.number()?),
                peak_bytes: rest.number()?,
                shell_state: rest.bytes()?.to_vec(),
            }
        }
        3 => ShimMessage::Finished { terminated: rest.number()?, force_killed: rest.number()? },
        4 => ShimMessage::SupervisionReady,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::level::Level;
    use crate::sandbox::{Limits, Network, PinnedPath, Sandbox};

    #[test]
    fn encoded_messages_are_parsed_back() {
        let command = Command {
            script: b"echo \xff\n".to_vec(),
            shell: "/bin/bash".into(),
            directory: "/tmp".into(),
            environment: vec![("A".into(), "b\nc".into())],
            stdin: vec![0, 1],
            separate_streams: true,
        };
        let sandbox = Sandbox {
            writable: vec![PinnedPath { path: "/w".into(), identity: (1, 2) }],
            read_only: vec![PinnedPath { path: "/r".into(), identity: (3, 4) }],
            hidden: vec!["/h".into(), "/i".into()],
            tmp: "/t".into(),
            supervise_reads: true,
            network: Network::All,
            limits: Limits { processes: 7 },
        };
        let confinement = Confinement { sandbox, level: Level::Landlock, max_landlock: 5 };
        for (frame, expected) in [
            (encode_run(&command, None), Request::Run(command.clone(), None)),
            (
                encode_run_in_bubblewrap(&command, &confinement, &BwrapChecks::default()),
                Request::RunInBubblewrap(
                    command.clone(),
                    confinement.clone(),
                    BwrapChecks::default(),
                ),
            ),
            (encode_run(&command, Some(&confinement)), Request::Run(command, Some(confinement))),
            (encode_make_namespaces(true), Request::MakeNamespaces { with_gateway: true }),
            (encode_make_sockets(), Request::MakeSockets),
        ] {
            assert_eq!(parse_request(&frame[8..]).unwrap(), expected);
        }
        let messages = [
            ShimMessage::SupervisionReady,
            ShimMessage::Started { intermediate: Pid::from_raw(7).into_iter().collect() },
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
        for (byte, whole) in messages.iter().flat_map(|message| {
            let frame = encode_message(message);
            let last = frame.len() - 1;
            frame
                .into_iter()
                .enumerate()
                .map(move |(at, byte)| (byte, (at == last).then_some(message)))
        }) {
            received.push(byte);
            assert_eq!(take_message(&mut received).unwrap().as_ref(), whole);
        }
        assert!(received.is_empty());
    }

    #[test]
    fn too_long_and_unknown_messages_are_refused() {
        assert_eq!(take_message(&mut u64::MAX.to_le_bytes().to_vec()), Err(MalformedMessage));
        let mut nonsense = FrameWriter::default();
        nonsense.number(77);
        assert_eq!(take_message(&mut nonsense.finish()), Err(MalformedMessage));
    }
}
