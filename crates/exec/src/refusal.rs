//! Actions of a command that its sandbox denied, as far as they were observed.

use std::net::SocketAddr;
use std::path::PathBuf;

/// The number of different denied actions that are reported per command. One more means that there were more.
pub const MAX_REFUSALS: usize = 20;

/// An action that a sandbox denied.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Opening a file for writing, or creating it.
    Write(PathBuf, Unwritable),
    /// Changing a file in another way.
    Change(DeniedAction, PathBuf, Unwritable),
    /// Connecting to an address on the network, which is off.
    Connect(SocketAddr),
    /// Connecting or sending to an address that no rule allows, while only listed hosts are reached.
    Unlisted(SocketAddr),
    /// Connecting to an address other than that of the proxy through which hosts are reached.
    WithoutProxy(SocketAddr),
    /// A DNS query to this server.
    LookUp(SocketAddr),
    /// Connecting to the Unix socket of a program outside.
    Socket(PathBuf),
    /// Creating any socket, where only that keeps a command from the network.
    AnySocket,
}

impl Refusal {
    /// Whether it is about the network.
    pub fn is_network(&self) -> bool {
        match self {
            Refusal::Connect(_)
            | Refusal::Unlisted(_)
            | Refusal::WithoutProxy(_)
            | Refusal::LookUp(_)
            | Refusal::AnySocket => true,
            Refusal::Write(..) | Refusal::Change(..) | Refusal::Socket(_) => false,
        }
    }
}

/// How a command tried to change a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeniedAction {
    /// Make a directory, a symlink or a hard link.
    Make,
    /// Remove it.
    Remove,
    /// Rename it, or rename another file to this path.
    Rename,
    /// Change its mode or truncate it.
    Change,
}

/// Why a path cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unwritable {
    /// It is beneath no writable path.
    Outside,
    /// It is beneath a read-only path.
    ReadOnly,
    /// It is protected, beneath a writable path.
    Protected,
    /// A rule of the operator denies it.
    Denied,
    /// It belongs to a repository that existed before the command.
    Repository,
    /// It is hidden.
    Hidden,
    /// It is a directory above a protected or hidden path, and cannot be moved or removed.
    ParentOfProtected,
}
