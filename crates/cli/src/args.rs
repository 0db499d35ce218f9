//! The command line: the commands, and a file for the arguments of each.

#[cfg(feature = "backup")]
mod backup;
mod client;
mod completions;
mod config;
mod global_options;
mod index;
mod install;
mod listen_address;
mod log;
mod missing_value;
mod one_command;
mod page;
mod parse;
mod policy;
mod reference_page;
mod remote;
mod remote_host;
mod run;
#[cfg(feature = "sandboxd")]
mod sandboxd;
mod serve;
mod shared_part;
#[cfg(feature = "postgres")]
mod store;
mod tools;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use toolcrib::Dialect;

#[cfg(feature = "backup")]
use self::backup::BACKUP;
#[cfg(feature = "backup")]
pub(crate) use self::backup::BackupCommand;
pub(crate) use self::client::Client;
use self::completions::COMPLETIONS;
pub(crate) use self::config::ConfigCommand;
pub(crate) use self::global_options::{AmongWorkspaces, Common, NetworkWord, OuterWord, RootArg};
pub(crate) use self::index::IndexCommand;
use self::install::INSTALL;
pub(crate) use self::install::InstallArgs;
pub(crate) use self::listen_address::{ListenAt, cannot_listen};
pub(crate) use self::log::{AuditFormat, LogCommand};
pub(crate) use self::missing_value::with_known_values;
pub(crate) use self::page::PageArgs;
use self::page::{PAGE, WATCH};
use self::parse::{at_least_one, number};
pub(crate) use self::policy::{NewRuleArgs, PolicyCommand, RuleKind};
pub(crate) use self::reference_page::Page;
use self::remote::PUSH;
pub(crate) use self::remote::{HostArgs, PushArgs};
pub(crate) use self::remote_host::{RemoteHost, remote_path};
use self::run::RUN;
pub(crate) use self::run::RunArgs;
#[cfg(feature = "sandboxd")]
use self::sandboxd::SANDBOXD;
#[cfg(feature = "sandboxd")]
pub(crate) use self::sandboxd::SandboxdArgs;
use self::serve::SERVE;
pub(crate) use self::serve::ServeArgs;
pub(crate) use self::shared_part::SharedPart;
#[cfg(feature = "postgres")]
use self::store::STORE;
#[cfg(feature = "postgres")]
pub(crate) use self::store::StoreCommand;
pub(crate) use self::tools::FormatArg;

/// Tools for AI coding agents: undoable changes, confined commands, replies that help.
#[derive(Debug, Parser)]
#[command(name = "toolcrib", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// The arguments of this process. The error may be a text that was asked for, such as help.
    pub(crate) fn of_process() -> clap::error::Result<Args> {
        let words: Vec<OsString> = std::env::args_os().collect();
        one_command::parse(&words)
    }

    /// Rejects `--root` flags on both sides of the command, and lists of tools that are given twice. The parser would
    /// silently keep only the last ones, and a dropped `:ro` or `--no-tools` would widen access.
    pub(crate) fn check_repeated(
        &self,
        words: impl Iterator<Item = OsString>,
    ) -> Result<(), String> {
        let words: Vec<OsString> = words.take_while(|word| word != "--").collect();
        let given = |flag: &str| {
            let with_value = format!("{flag}=");
            let is_given = |word: &&OsString| {
                *word == flag || word.as_encoded_bytes().starts_with(with_value.as_bytes())
            };
            words.iter().filter(is_given).count()
        };
        if given("--root") > self.common.named_roots().len() {
            return Err("give all --root flags before the command, or all after it".to_owned());
        }
        match ["--tools", "--no-tools"].into_iter().find(|flag| given(flag) > 1) {
            Some(flag) => Err(format!("give {flag} once, with the names separated by commas")),
            None => Ok(()),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  toolcrib call Read '{\"file_path\": \"README.md\", \"limit\": 20}'
  toolcrib call Edit '{\"file_path\": \"a.txt\", \"old_string\": \"x\", \"new_string\": \"y\"}' --dry-run
  echo '{\"id\": 1, \"tool\": \"Read\", \"args\": {\"file_path\": \"README.md\"}}' | toolcrib run
  toolcrib tools --format anthropic
  toolcrib log; toolcrib show 7; toolcrib undo 7

Exit codes: 0 success, 1 the call failed (the reply says why), 2 the command line was invalid.";

// The arguments of a command are defined when it is used. A doc comment of their type would then replace the description of
// the command.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Call a tool and print its reply
    Call {
        /// Preset of tool and field names in the reply: toolcrib, codex or camel
        #[arg(long, value_name = "NAME", default_value_t)]
        dialect: Dialect,
        /// Name of the tool; `toolcrib tools` lists them
        tool: String,
        /// Arguments as a JSON object, or `-` to read them from stdin
        #[arg(value_name = "JSON", default_value = "{}")]
        args: String,
    },
    /// Serve calls as JSON lines on stdin and stdout
    #[command(long_about = RUN)]
    Run(RunArgs),
    /// Serve MCP over stdio or HTTP
    #[command(long_about = SERVE)]
    Serve(Box<ServeArgs>),
    /// Serve the runtime interface of Kubernetes' agent-sandbox
    #[cfg(feature = "sandboxd")]
    #[command(long_about = SANDBOXD)]
    Sandboxd(SandboxdArgs),
    /// Register Toolcrib with an MCP client
    #[command(long_about = INSTALL)]
    Install(InstallArgs),
    /// Remove Toolcrib from an MCP client
    Uninstall {
        /// The client
        client: Client,
        /// Remove the server on this host, which `install --host` added
        #[arg(long, value_name = "HOST")]
        host: Option<RemoteHost>,
        /// Show the change without writing it; the same as --dry-run
        #[arg(long)]
        print: bool,
    },
    /// Copy this program to another machine over ssh
    #[command(long_about = PUSH)]
    Push(PushArgs),
    /// Show the effective configuration and test the sandbox
    Doctor {
        #[command(flatten)]
        host: HostArgs,
        /// List every escape attempt, not only those that succeeded
        #[arg(long, short)]
        verbose: bool,
    },
    /// List the tools
    Tools {
        /// Preset of tool and field names: toolcrib, codex or camel
        #[arg(long, value_name = "NAME", default_value_t)]
        dialect: Dialect,
        /// Print definitions in the format of an API, or as Markdown
        #[arg(long, value_name = "FORM")]
        format: Option<FormatArg>,
    },
    /// List the recorded changes, newest first; check and export the audit log
    Log {
        #[command(subcommand)]
        command: Option<LogCommand>,
        /// Number of entries
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = at_least_one)]
        limit: usize,
        /// List permission decisions instead of changes
        #[arg(long)]
        decisions: bool,
        /// List connections of commands instead of changes
        #[arg(long, conflicts_with = "decisions")]
        network: bool,
        /// List only changes of this file or directory
        #[arg(long, value_name = "PATH", conflicts_with_all = ["decisions", "network"])]
        path: Option<PathBuf>,
    },
    /// Show a change with its diff
    Show {
        /// Id of the change, from `toolcrib log`
        #[arg(value_parser = number::<u64>)]
        id: u64,
    },
    /// Show the combined diff of all recorded changes
    Diff {
        /// Start with this change
        #[arg(value_parser = number::<u64>)]
        since: Option<u64>,
    },
    /// Undo a change; later edits are kept
    Undo {
        /// Id of the change [default: the last one that changed a file that is not ignored]
        #[arg(value_parser = number::<u64>)]
        id: Option<u64>,
        /// Undo this change and all later ones: all or nothing
        #[arg(long, value_name = "ID", value_parser = number::<u64>)]
        since: Option<u64>,
        /// Undo only at this path: its last change, or its part of change ID
        #[arg(long, value_name = "PATH")]
        path: Option<String>,
        /// Do not ask; needed without a terminal
        #[arg(long, short)]
        yes: bool,
    },
    /// Redo the last undone change
    Redo {
        /// Do not ask; needed without a terminal
        #[arg(long, short)]
        yes: bool,
    },
    /// Show which rule decides on a command or call; list and add rules
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Show or change the configuration
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
    },
    /// Show, build or delete the search index
    Index {
        #[command(subcommand)]
        command: IndexCommand,
    },
    /// Show what agents do, answer their questions and undo their changes, in a browser
    #[command(long_about = PAGE)]
    Page(PageArgs),
    /// Show what all agents do now, and answer their questions
    #[command(long_about = WATCH)]
    Watch {
        /// Print the current state and exit; the default without a terminal
        #[arg(long)]
        once: bool,
    },
    /// List the running commands of all sessions of this user
    Jobs,
    /// Kill a running command and its child processes
    Kill {
        /// Id of the command, from `toolcrib jobs`
        id: String,
        /// Do not ask, even if it belongs to another workspace
        #[arg(long, short)]
        yes: bool,
    },
    /// Set up and check a store in PostgreSQL
    #[cfg(feature = "postgres")]
    #[command(long_about = STORE)]
    Store {
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Copy a workspace to an object store, and check and restore such backups
    #[cfg(feature = "backup")]
    #[command(long_about = BACKUP)]
    Backup {
        #[command(subcommand)]
        command: BackupCommand,
    },
    /// Print a shell completion script
    #[command(long_about = COMPLETIONS)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print a generated page of the documentation, or write the man pages
    #[command(hide = true)]
    Reference {
        /// The page, as Markdown
        page: Option<Page>,
        /// Write the man pages to this directory
        #[arg(long, value_name = "DIR")]
        man: Option<PathBuf>,
    },
}

impl Command {
    /// Whether the process has a runtime, which needs more open files than the usual limit. A client of a shared server
    /// has none, and its server inherits its limits.
    pub(crate) fn has_runtime(&self) -> bool {
        !matches!(self, Command::Serve(args) if args.shared || args.shared_part.is_some())
    }

    /// Whether the command is for calls of tools, so that its messages name tools. The others are for a person.
    pub(crate) fn calls_tools(&self) -> bool {
        matches!(
            self,
            Command::Call { .. }
                | Command::Run(_)
                | Command::Serve(_)
                | Command::Tools { .. }
                | Command::Reference { .. }
        ) || self.is_sandboxd()
    }

    #[cfg(feature = "sandboxd")]
    fn is_sandboxd(&self) -> bool {
        matches!(self, Command::Sandboxd(_))
    }

    #[cfg(not(feature = "sandboxd"))]
    fn is_sandboxd(&self) -> bool {
        false
    }

    /// Whether the command supports `--dry-run`: it changes nothing, or it can report the change without making it.
    pub(crate) fn supports_dry_run(&self) -> bool {
        !matches!(
            self,
            Command::Kill { .. }
                | Command::Page(_)
                | Command::Index { command: IndexCommand::Build | IndexCommand::Drop }
                | Command::Reference { man: Some(_), .. }
        ) && !self.changes_store()
            && !self.is_sandboxd()
            && !self.writes_backup()
    }

    #[cfg(feature = "backup")]
    fn writes_backup(&self) -> bool {
        matches!(
            self,
            Command::Backup { command: BackupCommand::Now { .. } | BackupCommand::Restore { .. } }
        )
    }

    #[cfg(not(feature = "backup"))]
    fn writes_backup(&self) -> bool {
        false
    }

    #[cfg(feature = "postgres")]
    fn changes_store(&self) -> bool {
        let Command::Store { command } = self else { return false };
        matches!(
            command,
            StoreCommand::AddTenant { .. }
                | StoreCommand::Approve { .. }
                | StoreCommand::Deny { .. }
        ) || matches!(command, StoreCommand::Quota { set, clear, .. } if *clear || !set.is_empty())
    }

    #[cfg(not(feature = "postgres"))]
    fn changes_store(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn descriptions_of_commands_stay_when_their_arguments_are_defined() {
        let (stubs, mut built) = (Args::command(), Args::command());
        built.build();
        for stub in stubs.get_subcommands() {
            let command = built.find_subcommand(stub.get_name()).unwrap();
            let texts = |command: &clap::Command| {
                [command.get_about(), command.get_long_about()]
                    .map(|text| text.map(ToString::to_string))
            };
            assert_eq!(texts(stub), texts(command), "{}", stub.get_name());
        }
    }

    /// The parser wraps paragraphs to the width of the terminal. A second wrapping would leave short lines.
    #[test]
    fn paragraphs_of_help_texts_are_not_wrapped() {
        let command = Args::command();
        for about in command.get_subcommands().filter_map(clap::Command::get_long_about) {
            let about = about.to_string();
            let is_sample = |paragraph: &&str| paragraph.contains("   ");
            for paragraph in about.split("\n\n").filter(|paragraph| !is_sample(paragraph)) {
                assert!(!paragraph.contains('\n'), "{paragraph}");
            }
        }
    }
}
