//! The namespaces that the commands of a session share: a user namespace, in which they have no privileges
//! over anything outside, and a network namespace, in which they reach each other on loopback and nothing
//! else.
//!
//! No process lives in them. They exist as long as the runtime holds their descriptors.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use nix::sched::{CloneFlags, setns, unshare};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{getegid, geteuid};

use super::Network;
use super::network_namespace::{SESSION_SOCKETS, make_sockets, start_loopback};
use crate::setup_error::{SetupError, context, path_context};

/// The namespaces of a session.
#[derive(Debug)]
pub(crate) struct SessionNamespaces {
    user_fd: OwnedFd,
    network_fd: OwnedFd,
}

impl SessionNamespaces {
    /// Makes namespaces around this process, which should exit soon. Returns them, and the sockets for a
    /// gateway if `with_gateway`.
    pub(crate) fn make(
        with_gateway: bool,
    ) -> Result<(SessionNamespaces, Vec<OwnedFd>), SetupError> {
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
        let sockets = if with_gateway {
            context("make sockets for hosts", make_sockets(SESSION_SOCKETS))?
        } else {
            Vec::new()
        };
        let namespaces = SessionNamespaces {
            user_fd: open_namespace("/proc/self/ns/user")?,
            network_fd: open_namespace("/proc/self/ns/net")?,
        };
        Ok((namespaces, sockets))
    }

    /// Moves this process into the namespaces. Its next child is the first process of a new PID namespace.
    pub(super) fn join(&self, network: Network) -> Result<(), SetupError> {
        self.join_users()?;
        if network.is_private() {
            self.join_network()?;
        }
        context("create a PID namespace", unshare(CloneFlags::CLONE_NEWPID))
    }

    /// Moves this process into the user and the network namespace.
    pub(crate) fn join_for_sockets(&self) -> Result<(), SetupError> {
        self.join_users()?;
        self.join_network()
    }

    fn join_users(&self) -> Result<(), SetupError> {
        let joined = setns(&self.user_fd, CloneFlags::CLONE_NEWUSER);
        context("join the session's user namespace", joined)
    }

    fn join_network(&self) -> Result<(), SetupError> {
        let joined = setns(&self.network_fd, CloneFlags::CLONE_NEWNET);
        context("join the session's network namespace", joined)
    }

    /// The descriptors, for sending them to another process.
    pub(crate) fn descriptors(&self) -> [std::os::fd::BorrowedFd<'_>; 2] {
        [self.user_fd.as_fd(), self.network_fd.as_fd()]
    }

    /// The namespaces of received descriptors. `None` if there are fewer than two.
    pub(crate) fn take(
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> Option<SessionNamespaces> {
        let (user_fd, network_fd) = (descriptors.next()?, descriptors.next()?);
        Some(SessionNamespaces { user_fd, network_fd })
    }
}
