//! What a sandbox refused to a command, as far as it was seen.

use std::net::SocketAddr;
use std::path::PathBuf;

/// So many different refusals of a command are told; one more says that there were more.
pub const REFUSALS_TOLD: usize = 20;

/// Something that a command tried, and that its sandbox refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// To open something here for writing, or to make it so.
    Write(PathBuf, Unwritable),
    /// To change something here in another way.
    Change(DeniedAction, PathBuf, Unwritable),
    /// To talk to somebody on a network that is not there.
    Connect(SocketAddr),
    /// To ask for the address of a name; who was asked.
    LookUp(SocketAddr),
    /// To talk to a program outside by its socket.
    Socket(PathBuf),
    /// To have a socket at all, where nothing else keeps a command from the network.
    AnySocket,
}

/// A way to change something by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeniedAction {
    /// To make a directory, a link or another name for a file.
    Make,
    /// To remove it.
    Remove,
    /// To rename it, or something else to this name.
    Rename,
    /// To change its mode, or to cut it short.
    Change,
}

/// Why something could not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unwritable {
    /// It is in nothing that may be written.
    Outside,
    /// It is in what may be read only.
    ReadOnly,
    /// It is protected, within what may be written.
    Protected,
    /// It is part of a repository that was there before the commands.
    Repository,
    /// It is hidden.
    Hidden,
    /// It is a directory that leads to what is protected or hidden, and stays where it is.
    Holding,
}
