//! What the runtime and a keeper say to each other: frames of numbers and bytes on a socket.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Pid;

use crate::command::{Command, Exit};
use crate::fd_passing;
use crate::sandbox::Confinement;
use crate::sandbox::bubblewrap::Inside;

/// More than any notice has: the largest holds an environment.
const MAX_NOTICE: usize = 8 << 20;

/// Asks a keeper to end everything, as a byte of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// What runs is asked to end, and has two seconds to do so.
    Polite,
    /// The same, in half a second.
    Prompt,
    /// At once.
    Immediate,
}

impl Ending {
    const ALL: [Ending; 3] = [Ending::Polite, Ending::Prompt, Ending::Immediate];

    /// How long what was asked to end has to do so.
    pub(crate) fn grace(self) -> Duration {
        match self {
            Ending::Polite => Duration::from_secs(2),
            Ending::Prompt => Duration::from_millis(500),
            Ending::Immediate => Duration::ZERO,
        }
    }

    pub(crate) fn word(self) -> u8 {
        match self {
            Ending::Polite => b'p',
            Ending::Prompt => b'q',
            Ending::Immediate => b'i',
        }
    }

    pub(crate) fn of_word(word: u8) -> Option<Ending> {
        Ending::ALL.into_iter().find(|ending| ending.word() == word)
    }
}

/// What a keeper is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// To run a command, in a sandbox or without one. The descriptors of the session's space come along.
    Run(Command, Option<Confinement>),
    /// To make a space, and to answer with its descriptors.
    MakeSpace,
    /// To be the first process in a view of bubblewrap's, and to run the command in there.
    BeFirst(Command, Confinement, Inside),
}

/// What a keeper tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShimMessage {
    /// The calls of the command wait on the first descriptor that comes along; the kernel is asked for the
    /// sockets of its network on the second, if there is one.
    Supervised,
    /// The shell runs. The processes of ours between the keeper and the shell.
    Started { between: Vec<Pid> },
    /// It could not be started: which step failed, on what, and the system's number for why.
    NotStarted { step: String, what: String, errno: i32 },
    /// The shell has ended.
    Exited { exit: Exit, cpu: Duration, peak_bytes: u64, left: Vec<u8> },
    /// So has all that it started; so many were ended by the keeper.
    Over { ended: u64 },
}

/// To run a command, as a frame.
pub(crate) fn encode_run(command: &Command, confinement: Option<&Confinement>) -> Vec<u8> {
    let mut frame = Frame::default();
    frame.number(RUN);
    encode_command(command, &mut frame);
    frame.number(u64::from(confinement.is_some()));
    if let Some(confinement) = confinement {
        confinement.encode(&mut frame);
    }
    frame.finish()
}

/// To be the first process in a view of bubblewrap's, as a frame.
pub(crate) fn encode_be_first(
    command: &Command,
    confinement: &Confinement,
    inside: &Inside,
) -> Vec<u8> {
    let mut frame = Frame::default();
    frame.number(BE_FIRST);
    encode_command(command, &mut frame);
    confinement.encode(&mut frame);
    inside.encode(&mut frame);
    frame.finish()
}

fn encode_command(command: &Command, frame: &mut Frame) {
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

/// To make a space, as a frame.
pub(crate) fn encode_make_space() -> Vec<u8> {
    let mut frame = Frame::default();
    frame.number(MAKE_SPACE);
    frame.finish()
}

/// Reads what one of these wrote, and the descriptors that came with it.
pub(crate) fn read_request(mut from: &UnixStream) -> io::Result<(Request, Vec<OwnedFd>)> {
    let mut length = [0; 8];
    let (received, descriptors) = fd_passing::receive(from, &mut length)?;
    from.read_exact(&mut length[received..])?;
    // From the runtime, which has all of it in memory too.
    let length = usize::try_from(u64::from_le_bytes(length)).map_err(io::Error::other)?;
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    let request = parse_request(&payload).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((request, descriptors))
}

const RUN: u64 = 0;
const MAKE_SPACE: u64 = 1;
const BE_FIRST: u64 = 2;

/// A notice as a frame.
pub(crate) fn encode_notice(notice: &ShimMessage) -> Vec<u8> {
    let mut frame = Frame::default();
    match notice {
        ShimMessage::Started { between } => {
            frame.number(0);
            frame.number(between.len() as u64);
            for pid in between {
                frame.number(u64::from(pid.as_raw_pid().unsigned_abs()));
            }
        }
        ShimMessage::NotStarted { step, what, errno } => {
            frame.number(1);
            frame.bytes(step.as_bytes());
            frame.bytes(what.as_bytes());
            frame.number(u64::try_from(*errno).unwrap_or(0));
        }
        ShimMessage::Exited { exit, cpu, peak_bytes, left } => {
            frame.number(2);
            let (by_signal, number) = match exit {
                Exit::Code(code) => (0, *code),
                Exit::Signal(signal) => (1, *signal),
            };
            frame.number(by_signal);
            frame.number(u64::try_from(number).unwrap_or(0));
            frame.number(u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX));
            frame.number(*peak_bytes);
            frame.bytes(left);
        }
        ShimMessage::Over { ended } => {
            frame.number(3);
            frame.number(*ended);
        }
        ShimMessage::Supervised => frame.number(4),
    }
    frame.finish()
}

/// Takes the first notice out of what has come in, if it is whole.
pub(crate) fn take_notice(received: &mut Vec<u8>) -> Result<Option<ShimMessage>, NotUnderstood> {
    let mut rest = Rest(received);
    let Some(length) = rest.number() else { return Ok(None) };
    let length = usize::try_from(length).ok().filter(|&length| length <= MAX_NOTICE);
    let length = length.ok_or(NotUnderstood)?;
    let Some(payload) = rest.take(length) else { return Ok(None) };
    let notice = parse_notice(payload).ok_or(NotUnderstood)?;
    received.drain(..8 + length);
    Ok(Some(notice))
}

/// A keeper said something that is no notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotUnderstood;

fn parse_request(payload: &[u8]) -> Option<Request> {
    let mut rest = Rest(payload);
    match rest.number()? {
        RUN => {
            let command = parse_command(&mut rest)?;
            let confinement = match rest.number()? {
                0 => None,
                _ => Some(Confinement::parse(&mut rest)?),
            };
            Some(Request::Run(command, confinement))
        }
        MAKE_SPACE => Some(Request::MakeSpace),
        BE_FIRST => {
            let command = parse_command(&mut rest)?;
            let confinement = Confinement::parse(&mut rest)?;
            Some(Request::BeFirst(command, confinement, Inside::parse(&mut rest)?))
        }
        _ => None,
    }
}

fn parse_command(rest: &mut Rest<'_>) -> Option<Command> {
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

fn parse_notice(payload: &[u8]) -> Option<ShimMessage> {
    let mut rest = Rest(payload);
    Some(match rest.number()? {
        0 => ShimMessage::Started { between: rest.pids()? },
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
                left: rest.bytes()?.to_vec(),
            }
        }
        3 => ShimMessage::Over { ended: rest.number()? },
        4 => ShimMessage::Supervised,
        _ => return None,
    })
}

pub(crate) fn os_string(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// A frame being written: its length first, once it is known.
#[derive(Default)]
pub(crate) struct Frame(Vec<u8>);

impl Frame {
    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn paths(&mut self, paths: &[PathBuf]) {
        self.number(paths.len() as u64);
        for path in paths {
            self.bytes(path.as_os_str().as_bytes());
        }
    }

    fn finish(self) -> Vec<u8> {
        let mut frame = (self.0.len() as u64).to_le_bytes().to_vec();
        frame.extend(self.0);
        frame
    }
}

/// What of a frame is not read yet.
pub(crate) struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }

    fn pids(&mut self) -> Option<Vec<Pid>> {
        let count = self.number()?;
        (0..count).map(|_| Pid::from_raw(i32::try_from(self.number()?).ok()?)).collect()
    }

    pub(crate) fn paths(&mut self) -> Option<Vec<PathBuf>> {
        let count = self.number()?;
        (0..count).map(|_| Some(PathBuf::from(os_string(self.bytes()?)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::level::Level;
    use crate::sandbox::{HeldPath, Limits, Network, Sandbox};

    #[test]
    fn what_is_written_is_read() {
        let command = Command {
            script: b"echo \xff\n".to_vec(),
            shell: "/bin/bash".into(),
            directory: "/tmp".into(),
            environment: vec![("A".into(), "b\nc".into())],
            stdin: vec![0, 1],
            separate_streams: true,
        };
        let sandbox = Sandbox {
            writable: vec![HeldPath { path: "/w".into(), identity: (1, 2) }],
            read_only: vec![HeldPath { path: "/r".into(), identity: (3, 4) }],
            hidden: vec!["/h".into(), "/i".into()],
            tmp: "/t".into(),
            supervise_reads: true,
            network: Network::All,
            limits: Limits { processes: 7 },
        };
        let confinement = Confinement { sandbox, level: Level::Landlock, landlock: 5 };
        for (frame, expected) in [
            (encode_run(&command, None), Request::Run(command.clone(), None)),
            (
                encode_be_first(&command, &confinement, &Inside::default()),
                Request::BeFirst(command.clone(), confinement.clone(), Inside::default()),
            ),
            (encode_run(&command, Some(&confinement)), Request::Run(command, Some(confinement))),
            (encode_make_space(), Request::MakeSpace),
        ] {
            assert_eq!(parse_request(&frame[8..]).unwrap(), expected);
        }
        let notices = [
            ShimMessage::Supervised,
            ShimMessage::Started { between: Pid::from_raw(7).into_iter().collect() },
            ShimMessage::NotStarted { step: "start".into(), what: "/bin/bash".into(), errno: 2 },
            ShimMessage::Exited {
                exit: Exit::Signal(9),
                cpu: Duration::from_micros(5),
                peak_bytes: 1 << 40,
                left: b"/\0".to_vec(),
            },
            ShimMessage::Over { ended: 3 },
        ];
        let mut received = Vec::new();
        for (byte, whole) in notices.iter().flat_map(|notice| {
            let frame = encode_notice(notice);
            let last = frame.len() - 1;
            frame
                .into_iter()
                .enumerate()
                .map(move |(at, byte)| (byte, (at == last).then_some(notice)))
        }) {
            received.push(byte);
            assert_eq!(take_notice(&mut received).unwrap().as_ref(), whole);
        }
        assert!(received.is_empty());
    }

    #[test]
    fn a_frame_that_is_too_long_or_says_nothing_is_refused() {
        assert_eq!(take_notice(&mut u64::MAX.to_le_bytes().to_vec()), Err(NotUnderstood));
        let mut nonsense = Frame::default();
        nonsense.number(77);
        assert_eq!(take_notice(&mut nonsense.finish()), Err(NotUnderstood));
    }
}
