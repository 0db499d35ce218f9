//! What a sandbox refused to a command, as far as it was seen.

use std::net::SocketAddr;
use std::path::PathBuf;

/// So many different refusals of a command are told; one more says that there were more.
pub const REFUSALS_TOLD: usize = 20;

/// Something that a command tried, and that its sandbox refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// To write, make or rename something here.
    Write(PathBuf, Unwritable),
    /// To talk to somebody on a network that is not there.
    Connect(SocketAddr),
    /// To ask for the address of a name; who was asked.
    LookUp(SocketAddr),
    /// To talk to a program outside by its socket.
    Socket(PathBuf),
    /// To have a socket at all, where nothing else keeps a command from the network.
    AnySocket,
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
    /// It is hidden.
    Hidden,
}
