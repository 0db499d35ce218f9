//! What the runtime and a keeper say to each other: frames of numbers and bytes on a socket.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

use crate::command::{Command, Exit};

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

/// What a keeper tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The shell runs.
    Started,
    /// It could not be started: which step failed, on what, and the system's number for why.
    NotStarted { step: String, what: String, errno: i32 },
    /// The shell has ended.
    Exited { exit: Exit, cpu: Duration, peak_bytes: u64, left: Vec<u8> },
    /// So has all that it started; so many were ended by the keeper.
    Over { ended: u64 },
}

/// A command as a frame.
pub(crate) fn encode_command(command: &Command) -> Vec<u8> {
    let mut frame = Frame::default();
    frame.bytes(&command.script);
    frame.bytes(command.shell.as_os_str().as_bytes());
    frame.bytes(command.directory.as_os_str().as_bytes());
    frame.bytes(&command.stdin);
    frame.number(command.environment.len() as u64);
    for (name, value) in &command.environment {
        frame.bytes(name.as_bytes());
        frame.bytes(value.as_bytes());
    }
    frame.finish()
}

/// Reads a command that [`encode_command`] wrote.
pub(crate) fn read_command(mut from: impl Read) -> io::Result<Command> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let mut payload = Vec::new();
    let length = u64::from_le_bytes(length);
    from.take(length).read_to_end(&mut payload)?;
    parse_command(&payload).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// A notice as a frame.
pub(crate) fn encode_notice(notice: &Notice) -> Vec<u8> {
    let mut frame = Frame::default();
    match notice {
        Notice::Started => frame.number(0),
        Notice::NotStarted { step, what, errno } => {
            frame.number(1);
            frame.bytes(step.as_bytes());
            frame.bytes(what.as_bytes());
            frame.number(u64::try_from(*errno).unwrap_or(0));
        }
        Notice::Exited { exit, cpu, peak_bytes, left } => {
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
        Notice::Over { ended } => {
            frame.number(3);
            frame.number(*ended);
        }
    }
    frame.finish()
}

/// Takes the first notice out of what has come in, if it is whole.
pub(crate) fn take_notice(received: &mut Vec<u8>) -> Result<Option<Notice>, NotUnderstood> {
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

fn parse_command(payload: &[u8]) -> Option<Command> {
    let mut rest = Rest(payload);
    let script = rest.bytes()?.to_vec();
    let shell = PathBuf::from(os_string(rest.bytes()?));
    let directory = PathBuf::from(os_string(rest.bytes()?));
    let stdin = rest.bytes()?.to_vec();
    let count = rest.number()?;
    let mut environment = Vec::new();
    for _ in 0..count {
        environment.push((os_string(rest.bytes()?), os_string(rest.bytes()?)));
    }
    Some(Command { script, shell, directory, environment, stdin })
}

fn parse_notice(payload: &[u8]) -> Option<Notice> {
    let mut rest = Rest(payload);
    Some(match rest.number()? {
        0 => Notice::Started,
        1 => Notice::NotStarted {
            step: String::from_utf8_lossy(rest.bytes()?).into_owned(),
            what: String::from_utf8_lossy(rest.bytes()?).into_owned(),
            errno: i32::try_from(rest.number()?).ok()?,
        },
        2 => {
            let by_signal = rest.number()? == 1;
            let number = i32::try_from(rest.number()?).ok()?;
            Notice::Exited {
                exit: if by_signal { Exit::Signal(number) } else { Exit::Code(number) },
                cpu: Duration::from_micros(rest.number()?),
                peak_bytes: rest.number()?,
                left: rest.bytes()?.to_vec(),
            }
        }
        3 => Notice::Over { ended: rest.number()? },
        _ => return None,
    })
}

fn os_string(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// A frame being written: its length first, once it is known.
#[derive(Default)]
struct Frame(Vec<u8>);

impl Frame {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn finish(self) -> Vec<u8> {
        let mut frame = (self.0.len() as u64).to_le_bytes().to_vec();
        frame.extend(self.0);
        frame
    }
}

/// What of a frame is not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let command = Command {
            script: b"echo \xff\n".to_vec(),
            shell: "/bin/bash".into(),
            directory: "/tmp".into(),
            environment: vec![("A".into(), "b\nc".into())],
            stdin: vec![0, 1],
        };
        assert_eq!(read_command(encode_command(&command).as_slice()).unwrap(), command);
        let notices = [
            Notice::Started,
            Notice::NotStarted { step: "start".into(), what: "/bin/bash".into(), errno: 2 },
            Notice::Exited {
                exit: Exit::Signal(9),
                cpu: Duration::from_micros(5),
                peak_bytes: 1 << 40,
                left: b"/\0".to_vec(),
            },
            Notice::Over { ended: 3 },
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
