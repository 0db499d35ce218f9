//! The local sockets that the commands of a session listen on, as the kernel lists them.
//!
//! Where the session has a network of its own, all sockets in it are the session's. Where it shares the
//! machine's, a socket is the session's if one of its processes has it open.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use crate::shim::descendants;

/// `SOCK_DIAG_BY_FAMILY`, and the messages that end a list.
const BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// `UDIAG_SHOW_NAME | UDIAG_SHOW_VFS`.
const SHOW: u32 = 3;
/// Attributes of an entry.
const NAME: u16 = 0;
const FILE: u16 = 1;

/// A header, and the fixed part of an entry.
const HEADER: usize = 16;
const ENTRY: usize = 16;

/// More than a system has.
const MAX_BYTES: usize = 16 << 20;

/// By what a socket is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SocketName {
    /// The device is that of the file system, which `stat` does not tell on all of them.
    File {
        device: u32,
        inode: u64,
    },
    Abstract(Vec<u8>),
}

/// The sockets of the network that a command is in.
#[derive(Debug)]
pub(crate) struct Listening {
    /// Where the kernel is asked; it answers for the network that this was made in.
    questions: Option<OwnedFd>,
    /// Programs outside are in the same network.
    shared: bool,
}

/// Where the kernel is asked for the sockets of the network that this process is in.
pub(crate) fn ask_here() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG))
}

impl Listening {
    /// `own` answers for the network that is the session's alone; without it, that is the machine's.
    pub(crate) fn new(own: Option<OwnedFd>, shared: bool) -> Listening {
        let questions = if shared { ask_here().ok() } else { own };
        Listening { questions, shared }
    }

    /// Whether a command of the session listens on a socket.
    pub(super) fn is_own(&self, name: &SocketName) -> rustix::io::Result<bool> {
        if !self.shared && matches!(name, SocketName::Abstract(_)) {
            return Ok(true);
        }
        let questions = self.questions.as_ref().ok_or(Errno::OPNOTSUPP)?;
        let numbers = find(questions, name)?;
        Ok(match self.shared {
            false => !numbers.is_empty(),
            true => !numbers.is_empty() && is_open_in_a_command(&numbers),
        })
    }
}

/// The numbers of the sockets of a name.
fn find(questions: &OwnedFd, name: &SocketName) -> rustix::io::Result<Vec<u32>> {
    let mut request = Vec::with_capacity(HEADER + 24);
    request.extend(40_u32.to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    request.extend([0; 8]);
    // The family, all states, no number, what is shown, no cookie.
    request.extend([1, 0, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend([0; 4]);
    request.extend(SHOW.to_ne_bytes());
    request.extend([0; 8]);
    send(questions, &request, SendFlags::empty())?;
    let (mut numbers, mut read, mut buffer) = (Vec::new(), 0, vec![0; 64 << 10]);
    loop {
        let (_, length) = recv(questions, &mut buffer, RecvFlags::empty())?;
        let mut rest = buffer.get(..length).unwrap_or_default();
        read += length;
        if length == 0 || read > MAX_BYTES {
            return Err(Errno::IO);
        }
        while rest.len() >= HEADER {
            let size = number(rest, 0) as usize;
            let kind = u16::from_ne_bytes([rest[4], rest[5]]);
            match kind {
                DONE => return Ok(numbers),
                ERROR => return Err(Errno::IO),
                _ => {}
            }
            let entry = rest.get(HEADER..size).ok_or(Errno::IO)?;
            if entry.len() >= ENTRY && has_name(&entry[ENTRY..], name) {
                numbers.push(number(entry, 4));
            }
            rest = rest.get(aligned(size)..).unwrap_or_default();
        }
    }
}

/// Whether the attributes of an entry have a name.
fn has_name(mut attributes: &[u8], name: &SocketName) -> bool {
    while attributes.len() >= 4 {
        let size = usize::from(u16::from_ne_bytes([attributes[0], attributes[1]]));
        let kind = u16::from_ne_bytes([attributes[2], attributes[3]]);
        let Some(value) = attributes.get(4..size) else { return false };
        let matches = match (kind, name) {
            (FILE, SocketName::File { device, inode }) if value.len() >= 8 => {
                // The kernel tells the low 32 bits of the inode, and the device as it numbers it itself.
                number(value, 0) == *inode as u32 && number(value, 4) == *device
            }
            (NAME, SocketName::Abstract(name)) => {
                value.strip_prefix(b"\0") == Some(name.as_slice())
            }
            _ => false,
        };
        if matches {
            return true;
        }
        attributes = attributes.get(aligned(size)..).unwrap_or_default();
    }
    false
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    four.map_or(0, u32::from_ne_bytes)
}

fn aligned(size: usize) -> usize {
    size.max(4).next_multiple_of(4)
}

/// Whether a process that this one started has one of these sockets open, and this one has not: a process
/// that is about to be started has all that this one has.
fn is_open_in_a_command(numbers: &[u32]) -> bool {
    let names: Vec<String> = numbers.iter().map(|number| format!("socket:[{number}]")).collect();
    let own = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
    !is_open_in(own, &names) && descendants(own).iter().any(|one| is_open_in(one.pid, &names))
}

fn is_open_in(process: i32, names: &[String]) -> bool {
    let open = fs::read_dir(format!("/proc/{process}/fd"));
    open.into_iter().flatten().flatten().any(|entry| {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        names.iter().any(|name| target.as_os_str() == name.as_str())
    })
}
