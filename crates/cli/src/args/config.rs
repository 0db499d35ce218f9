//! Arguments of `config`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the configuration file (default), or one setting
    #[command(alias = "get")]
    Show {
        /// Name of the setting
        key: Option<String>,
    },
    /// List all settings with their defaults
    Keys,
    /// Change a setting
    Set {
        /// Name of the setting
        key: String,
        /// Its value; several for a list
        #[arg(required = true, value_name = "VALUE")]
        values: Vec<String>,
    },
    /// Add values to a setting that is a list
    Add {
        /// Name of the setting
        key: String,
        /// The values
        #[arg(required = true, value_name = "VALUE")]
        values: Vec<String>,
    },
    /// Remove values from a setting that is a list
    Remove {
        /// Name of the setting
        key: String,
        /// The values
        #[arg(required = true, value_name = "VALUE")]
        values: Vec<String>,
    },
    /// Remove a setting, so that its default applies
    Unset {
        /// Name of the setting
        key: String,
    },
}
