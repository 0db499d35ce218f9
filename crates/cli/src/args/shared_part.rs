//! The processes that start a shared server.

use clap::ValueEnum;

/// What a process does to start a shared server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SharedPart {
    /// Starts the server in a session of its own, and ends.
    Launch,
    /// Is the server.
    Serve,
}

impl SharedPart {
    /// The flag for a process.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            SharedPart::Launch => "--shared-part=launch",
            SharedPart::Serve => "--shared-part=serve",
        }
    }
}
