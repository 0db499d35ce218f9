//! The namespaces that the commands of a session share: a user namespace, in which they have no privileges
//! over anything outside, and a network namespace, in which they reach each other on loopback and nothing
//! else.
//!
//! No process lives in them. They exist as long as the runtime holds their descriptors.

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
use crate::setup_error::{SetupError, context, path_context};

/// The namespaces of a session.
#[derive(Debug)]
pub(crate) struct SessionNamespaces {
    user_fd: OwnedFd,
    network_fd: OwnedFd,
}

impl SessionNamespaces {
    /// Makes namespaces around this process, which should exit soon.
    pub(crate) fn make() -> Result<SessionNamespaces, SetupError> {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        let both = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET;
        context("create user and network namespaces", unshare(both))?;
        // Uid and gid stay the same; no others exist in the namespace.
        for (file, content) in [
            ("/proc/self/setgroups", "deny".to_owned()),
            ("/proc/self/uid_map", format!("{user} {user} 1")),
            ("/proc/self/gid_map", format!("{group} {group} 1")),
        ] {
            path_context(
                "write the user mapping to",
                Path::new(file),
                std::fs::write(file, content),
            )?;
        }
        context("start the loopback", start_loopback())?;
        let open_namespace = |path: &str| {
            let read = OFlags::RDONLY | OFlags::CLOEXEC;
            path_context("open", Path::new(path), open(path, read, Mode::empty()))
        };
        Ok(SessionNamespaces {
            user_fd: open_namespace("/proc/self/ns/user")?,
            network_fd: open_namespace("/proc/self/ns/net")?,
        })
    }

    /// Moves this process into the namespaces. Its next child is the first process of a new PID namespace.
    pub(super) fn join(&self, network: Network) -> Result<(), SetupError> {
        context(
            "join the session's user namespace",
            setns(&self.user_fd, CloneFlags::CLONE_NEWUSER),
        )?;
        if network == Network::None {
            context(
                "join the session's network namespace",
                setns(&self.network_fd, CloneFlags::CLONE_NEWNET),
            )?;
        }
        context("create a PID namespace", unshare(CloneFlags::CLONE_NEWPID))
    }

    /// The descriptors, for sending them to another process.
    pub(crate) fn descriptors(&self) -> [std::os::fd::BorrowedFd<'_>; 2] {
        [self.user_fd.as_fd(), self.network_fd.as_fd()]
    }

    /// The namespaces of received descriptors. `None` if there are not exactly two.
    pub(crate) fn from_descriptors(descriptors: Vec<OwnedFd>) -> Option<SessionNamespaces> {
        let [user_fd, network_fd] = <[OwnedFd; 2]>::try_from(descriptors).ok()?;
        Some(SessionNamespaces { user_fd, network_fd })
    }
}

/// Sets the only interface of a new network namespace to *up*, with one netlink message and its reply.
fn start_loopback() -> io::Result<()> {
    const SET_LINK: u16 = 16; // RTM_NEWLINK
    const REQUEST_WITH_ANSWER: u16 = 1 | 4; // NLM_F_REQUEST | NLM_F_ACK
    const UP: u32 = 1; // IFF_UP
    const FIRST: i32 = 1;
    let mut message = Vec::with_capacity(32);
    // The header: length, type, flags, sequence number, sender.
    message.extend(32_u32.to_ne_bytes());
    message.extend(SET_LINK.to_ne_bytes());
    message.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    message.extend([0; 8]);
    // The interface: no family, no type; its index, its flags, and the mask of flags to change.
    message.extend([0; 4]);
    message.extend(FIRST.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());

    // Protocol 0 is NETLINK_ROUTE.
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0_u8; 256];
    let (_, length) = recv(&socket, &mut answer, RecvFlags::empty())?;
    // The reply is a header and a number: zero, or a negative errno.
    let number = answer[..length].get(16..20).and_then(|bytes| bytes.try_into().ok());
    match number.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
