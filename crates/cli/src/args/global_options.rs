//! The options of every command.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args as ClapArgs, ValueEnum};
use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib::{OuterWall, Outside, Profile};

/// Network access of commands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NetworkWord {
    #[default]
    None,
    List,
    All,
}

impl NetworkWord {
    /// Its name in arguments and in the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            NetworkWord::None => "none",
            NetworkWord::List => "list",
            NetworkWord::All => "all",
        }
    }
}

/// A sandbox around this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OuterWord {
    Gvisor,
}

impl OuterWord {
    /// Its name in arguments and in the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            OuterWord::Gvisor => "gvisor",
        }
    }

    pub(crate) fn wall(self) -> OuterWall {
        match self {
            OuterWord::Gvisor => OuterWall::Gvisor,
        }
    }
}

#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Common {
    /// A directory that the tools may change [default: the current one]; `DIR:ro` is read-only. Repeatable; relative
    /// paths in calls start at the first
    #[arg(long = "root", value_name = "DIR", global = true)]
    named_roots: Vec<RootArg>,

    /// Approval profile: read-only, cautious, workspace (default) or open
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) profile: Option<Profile>,

    /// Access of file tools to paths outside the roots: read, ask or deny [default: read in workspace and open, ask in
    /// cautious, deny in read-only]
    #[arg(long, value_name = "WORD", global = true)]
    pub(crate) outside: Option<Outside>,

    /// Network access of commands: none, list (hosts that rules allow) or all [default: none, or the configuration]
    #[arg(long, value_name = "WORD", global = true)]
    pub(crate) network_access: Option<NetworkWord>,

    /// Sandbox around this system, in which commands run although this system does not support ours: gvisor
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) outer: Option<OuterWord>,

    /// Configuration file [default: $XDG_CONFIG_HOME/toolcrib/config.toml, if it exists]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,

    /// Rules file [default: $XDG_CONFIG_HOME/toolcrib/rules.toml, if it exists]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) rules: Option<PathBuf>,

    /// Directory of the journal and the index [default: $XDG_STATE_HOME/toolcrib]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) state: Option<PathBuf>,

    /// Tools to offer, separated by commas [default: all that the profile can allow]
    #[arg(long, value_name = "NAMES", global = true, value_delimiter = ',')]
    pub(crate) tools: Option<Vec<String>>,

    /// Tools to exclude, separated by commas
    #[arg(long, value_name = "NAMES", global = true, value_delimiter = ',')]
    pub(crate) no_tools: Option<Vec<String>>,

    /// Check the call and show its diff and the decision on it, but ask nothing and change nothing
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,

    /// Print JSON
    #[arg(long, global = true, conflicts_with = "text")]
    pub(crate) json: bool,

    /// Print text even if stdout is not a terminal
    #[arg(long, global = true)]
    pub(crate) text: bool,

    /// Set while the root is one of the workspaces of `serve --workspaces`.
    #[arg(skip)]
    pub(crate) among: Option<AmongWorkspaces>,
}

/// A workspace of `serve --workspaces`.
#[derive(Debug, Clone)]
pub(crate) struct AmongWorkspaces {
    /// The directory of all workspaces.
    pub(crate) directory: PathBuf,
    /// The rules of this workspace only, if the operator has named a directory for them. The file may be missing.
    pub(crate) rules: Option<PathBuf>,
}

impl Common {
    /// The roots from the command line. The current directory if there are none.
    pub(crate) fn roots(&self) -> Vec<RootArg> {
        match self.named_roots.as_slice() {
            [] => vec![RootArg { directory: ".".into(), read_only: false }],
            named => named.to_vec(),
        }
    }

    /// The same options for another workspace.
    pub(crate) fn for_workspace(&self, directory: &Path) -> Common {
        let root = RootArg { directory: directory.to_owned(), read_only: false };
        Common { named_roots: vec![root], ..self.clone() }
    }

    /// The same options for one of many workspaces.
    pub(crate) fn for_one_of_many(&self, directory: &Path, among: AmongWorkspaces) -> Common {
        Common { among: Some(among), ..self.for_workspace(directory) }
    }

    /// The roots from the command line.
    pub(crate) fn named_roots(&self) -> &[RootArg] {
        &self.named_roots
    }
}

/// `DIR` or `DIR:ro`.
#[derive(Debug, Clone)]
pub(crate) struct RootArg {
    pub(crate) directory: PathBuf,
    pub(crate) read_only: bool,
}

impl FromStr for RootArg {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (directory, read_only) = match text.strip_suffix(":ro") {
            Some(directory) => (directory, true),
            None => (text, false),
        };
        // A variable that is not set must not widen access to the current directory.
        if directory.is_empty() {
            return Err("the directory is missing; `.` is the current one");
        }
        Ok(RootArg { directory: directory.into(), read_only })
    }
}
