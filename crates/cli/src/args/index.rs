//! Arguments of `index`.

use clap::Subcommand;

#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum IndexCommand {
    /// Show how many files are indexed, and the size of the index
    Status,
    /// Build or update the index now (servers also do this in the background)
    Build,
    /// Delete the index (it can be rebuilt)
    Drop,
}
