//! The generated pages of the documentation.

use clap::ValueEnum;

/// A generated page.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Page {
    /// All commands and their options
    Cli,
    /// All keys of config.toml
    Configuration,
    /// All hidden paths and protected files
    ProtectedAndHidden,
    /// All error kinds and metadata fields
    Replies,
}
