//! The namespaces that the commands of a session share: one of users, in which they have no rights over
//! anything outside, and one of the network, in which they find each other on loopback and nobody else.
//!
//! Nothing lives in a space: it is there as long as somebody holds its two descriptors, which is the runtime.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use nix::sched::{CloneFlags, setns, unshare};
use rustix::fs::{Mode, OFlags, open};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use rustix::process::{getegid, geteuid};

use super::Network;
use crate::setup_error::{Failure, at, plainly};

/// The namespaces of a session.
#[derive(Debug)]
pub(crate) struct Space {
    users: OwnedFd,
    network: OwnedFd,
}

impl Space {
    /// Makes one around this process, which is to end soon.
    pub(crate) fn make() -> Result<Space, Failure> {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        let both = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET;
        plainly("make namespaces of users and of the network", unshare(both))?;
        // Everybody stays who they are; others do not exist.
        for (file, content) in [
            ("/proc/self/setgroups", "deny".to_owned()),
            ("/proc/self/uid_map", format!("{user} {user} 1")),
            ("/proc/self/gid_map", format!("{group} {group} 1")),
        ] {
            at("say who is who in", Path::new(file), std::fs::write(file, content))?;
        }
        plainly("start the loopback", start_loopback())?;
        let held = |path: &str| {
            let read = OFlags::RDONLY | OFlags::CLOEXEC;
            at("hold", Path::new(path), open(path, read, Mode::empty()))
        };
        Ok(Space { users: held("/proc/self/ns/user")?, network: held("/proc/self/ns/net")? })
    }

    /// Moves this process into it; and has its next child be the first process of a namespace of its own.
    pub(super) fn join(&self, network: Network) -> Result<(), Failure> {
        plainly("join the session's users", setns(&self.users, CloneFlags::CLONE_NEWUSER))?;
        if network == Network::None {
            plainly("join the session's network", setns(&self.network, CloneFlags::CLONE_NEWNET))?;
        }
        plainly("make a namespace of processes", unshare(CloneFlags::CLONE_NEWPID))
    }

    /// Its descriptors, to hand them on.
    pub(crate) fn descriptors(&self) -> [std::os::fd::BorrowedFd<'_>; 2] {
        [self.users.as_fd(), self.network.as_fd()]
    }

    /// A space whose descriptors were handed on.
    pub(crate) fn of_descriptors(descriptors: Vec<OwnedFd>) -> Option<Space> {
        let [users, network] = <[OwnedFd; 2]>::try_from(descriptors).ok()?;
        Some(Space { users, network })
    }
}

/// Sets the only interface of a new network to *up*: one message to the kernel, and its answer.
fn start_loopback() -> io::Result<()> {
    const SET_LINK: u16 = 16; // RTM_NEWLINK
    const REQUEST_WITH_ANSWER: u16 = 1 | 4; // NLM_F_REQUEST | NLM_F_ACK
    const UP: u32 = 1; // IFF_UP
    const FIRST: i32 = 1;
    let mut message = Vec::with_capacity(32);
    // The header: length, kind, flags, number, sender.
    message.extend(32_u32.to_ne_bytes());
    message.extend(SET_LINK.to_ne_bytes());
    message.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    message.extend([0; 8]);
    // The interface: no family, no type; its index, its flags, and which of them are meant.
    message.extend([0; 4]);
    message.extend(FIRST.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());

    // The first protocol of this family is the one about interfaces and routes.
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0_u8; 256];
    let (_, length) = recv(&socket, &mut answer, RecvFlags::empty())?;
    // An answer is a header and a number, which is zero or an error's, negative.
    let number = answer[..length].get(16..20).and_then(|bytes| bytes.try_into().ok());
    match number.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
