//! Finds the Unix sockets on which the commands of a session listen, with `sock_diag`.
//!
//! If the session has its own network namespace, all sockets in it belong to the session. If it shares the
//! machine's, a socket belongs to the session if one of its processes has it open.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use crate::process_tree::descendants;

/// `SOCK_DIAG_BY_FAMILY`, and the messages that end a dump.
const BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// `UDIAG_SHOW_NAME | UDIAG_SHOW_VFS`.
const SHOW: u32 = 3;
/// Attributes of an entry.
const ATTR_NAME: u16 = 0;
const ATTR_VFS: u16 = 1;

/// A header, and the fixed part of an entry.
const HEADER: usize = 16;
const ENTRY: usize = 16;

/// More than a system has.
const MAX_BYTES: usize = 16 << 20;

/// The name of a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SocketName {
    /// The device is that of the file system, which `stat` does not report on all of them.
    File {
        device: u32,
        inode: u64,
    },
    Abstract(Vec<u8>),
}

/// The sockets of a command's network namespace.
#[derive(Debug)]
pub(crate) struct SocketTable {
    /// A `sock_diag` socket. It reports on the network namespace in which it was created.
    diag: Option<OwnedFd>,
    /// Whether programs outside are in the same network namespace.
    shared: bool,
}

/// Opens a `sock_diag` socket for the network namespace of this process.
pub(crate) fn open_sock_diag() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG))
}

impl SocketTable {
    /// `own` is a `sock_diag` socket of the session's own network namespace. It is not used if `shared`.
    pub(crate) fn new(own: Option<OwnedFd>, shared: bool) -> SocketTable {
        let diag = if shared { open_sock_diag().ok() } else { own };
        SocketTable { diag, shared }
    }

    /// Whether a command of the session listens on a socket.
    pub(super) fn is_session_socket(&self, name: &SocketName) -> rustix::io::Result<bool> {
        if !self.shared && matches!(name, SocketName::Abstract(_)) {
            return Ok(true);
        }
        let diag = self.diag.as_ref().ok_or(Errno::OPNOTSUPP)?;
        let numbers = socket_inodes(diag, name)?;
        let exists = !numbers.is_empty();
        Ok(exists && (!self.shared || is_open_in_descendant(&numbers)))
    }
}

/// The inodes of the sockets with a name.
fn socket_inodes(diag: &OwnedFd, name: &SocketName) -> rustix::io::Result<Vec<u32>> {
    let mut request = Vec::with_capacity(HEADER + 24);
    request.extend(40_u32.to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    request.extend([0; 8]);
    // The family, all states, no inode, the attributes to show, no cookie.
    request.extend([1, 0, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend([0; 4]);
    request.extend(SHOW.to_ne_bytes());
    request.extend([0; 8]);
    send(diag, &request, SendFlags::empty())?;
    let (mut numbers, mut read, mut buffer) = (Vec::new(), 0, vec![0; 64 << 10]);
    loop {
        let (_, length) = recv(diag, &mut buffer, RecvFlags::empty())?;
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

/// Whether the attributes of an entry have this name.
fn has_name(mut attributes: &[u8], name: &SocketName) -> bool {
    while attributes.len() >= 4 {
        let size = usize::from(u16::from_ne_bytes([attributes[0], attributes[1]]));
        let kind = u16::from_ne_bytes([attributes[2], attributes[3]]);
        let Some(value) = attributes.get(4..size) else { return false };
        let matches = match (kind, name) {
            (ATTR_VFS, SocketName::File { device, inode }) if value.len() >= 8 => {
                // The kernel reports the low 32 bits of the inode, and its own number of the device.
                number(value, 0) == *inode as u32 && number(value, 4) == *device
            }
            (ATTR_NAME, SocketName::Abstract(name)) => {
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

/// Whether a descendant of this process has one of these sockets open and this process does not: a process
/// that is just being started has all descriptors of this one.
fn is_open_in_descendant(numbers: &[u32]) -> bool {
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
