//! Arguments of `policy`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Validate a rules file
    Check {
        /// Rules file
        file: PathBuf,
    },
    /// Show the decision on a call
    Explain {
        /// Name of the tool; `toolcrib tools` lists them
        tool: String,
        /// Arguments as a JSON object; for Bash also the command alone
        #[arg(value_name = "JSON", default_value = "{}")]
        args: String,
    },
    /// Show how a shell command is parsed, and the decision on it
    Test {
        /// The shell command (quote it)
        command: String,
    },
    /// Show the decision on a host that a command connects to, or on a request to it
    Host {
        /// The host and the port, such as example.com:443 [default port: 443], or a request, such as
        /// 'GET https://example.com/x'
        #[arg(value_name = "HOST:PORT")]
        target: String,
    },
    /// List the rules in force, with their numbers, files and lines
    List,
    /// Remove a rule from the rules file
    Remove {
        /// Its number in `toolcrib policy list`, its name, or its words, such as: allow command 'npm test **'
        #[arg(required = true, value_name = "RULE")]
        rule: Vec<String>,
    },
    /// List the presets of hosts for network_presets, and the hosts of each on this machine
    Presets,
    /// Add a rule that allows something
    #[command(after_help = RULE_EXAMPLES)]
    Allow(NewRuleArgs),
    /// Add a rule that asks before something
    Ask(NewRuleArgs),
    /// Add a rule that denies something
    Deny(NewRuleArgs),
}

const RULE_EXAMPLES: &str = "\
Examples:
  toolcrib policy allow command 'npm test **'
  toolcrib policy allow network registry.example.com:443
  toolcrib policy allow network --method GET --path '/v1/**' api.example.com:443
  toolcrib policy deny read '**/.env' --why 'secrets are kept there'

docs/rules.md describes the patterns. Running servers apply the rule at the first call at least one second later.";

/// Arguments of `policy allow`, `ask` and `deny`.
#[derive(Debug, ClapArgs)]
pub(crate) struct NewRuleArgs {
    /// What the patterns match
    pub(crate) kind: RuleKind,
    /// Paths, commands or hosts; quote each. Any of them may match
    #[arg(required = true, value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
    /// Method of the requests, for hosts. Repeatable
    #[arg(long = "method", value_name = "METHOD")]
    pub(crate) methods: Vec<String>,
    /// Path of the requests, for hosts. Repeatable
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Also requests that upgrade to a WebSocket, for hosts
    #[arg(long)]
    pub(crate) upgrade: bool,
    /// The reason, which the agent sees
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum RuleKind {
    /// Files that are read
    Read,
    /// Files that are changed
    Edit,
    /// Commands
    Command,
    /// Directories outside the workspace
    ExternalDirectory,
    /// Hosts that commands reach
    Network,
}

impl RuleKind {
    /// Its name in arguments and in a rules file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RuleKind::Read => "read",
            RuleKind::Edit => "edit",
            RuleKind::Command => "command",
            RuleKind::ExternalDirectory => "external_directory",
            RuleKind::Network => "network",
        }
    }
}
