//! The command line.

mod client;
mod listen_address;
mod reference_page;
mod remote_host;
mod shared_part;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib::{Dialect, OuterWall, Outside, Profile};
#[cfg(feature = "postgres")]
use toolcrib_store::QuotaName;

pub(crate) use self::client::Client;
pub(crate) use self::listen_address::ListenAt;
pub(crate) use self::reference_page::Page;
pub(crate) use self::remote_host::{RemoteHost, remote_path};
pub(crate) use self::shared_part::SharedPart;

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
        if given("--root") > self.common.named_roots.len() {
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
            [] => vec![RootArg::from(".")],
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

#[derive(Debug, Subcommand)]
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
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = number::<usize>)]
        limit: usize,
        /// List permission decisions instead of changes
        #[arg(long)]
        decisions: bool,
        /// List connections of commands instead of changes
        #[arg(long, conflicts_with = "decisions")]
        network: bool,
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

/// The machine that a command is about.
#[derive(Debug, ClapArgs)]
pub(crate) struct HostArgs {
    /// Run Toolcrib on another machine, over ssh: [USER@]HOST[:DIR] or ssh://[USER@]HOST[:PORT][/DIR]
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<RemoteHost>,
    /// Path of the program there [default: ~/.local/bin/toolcrib]
    #[arg(long, value_name = "PATH", requires = "host")]
    pub(crate) host_program: Option<String>,
}

/// Arguments of `push`.
#[derive(Debug, ClapArgs)]
pub(crate) struct PushArgs {
    /// The machine: [USER@]HOST or ssh://[USER@]HOST[:PORT]
    pub(crate) host: RemoteHost,
    /// Path of the program there [default: ~/.local/bin/toolcrib]
    #[arg(long, value_name = "PATH")]
    pub(crate) to: Option<String>,
    /// The program to copy [default: this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
}

/// Arguments of `install`.
#[derive(Debug, ClapArgs)]
pub(crate) struct InstallArgs {
    /// The client
    pub(crate) client: Client,
    #[command(flatten)]
    pub(crate) there: HostArgs,
    /// Also disable the client's own file and shell tools, where it has a setting for that
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// Let the client ask before each of Toolcrib's tools, where `install` would tell it not to
    #[arg(long)]
    pub(crate) ask: bool,
    /// Show the change without writing it; the same as --dry-run
    #[arg(long)]
    pub(crate) print: bool,
    /// More flags for `toolcrib serve`, after `--`
    #[arg(last = true, value_name = "FLAG")]
    pub(crate) flags: Vec<String>,
}

/// Arguments of `run`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// Write approval questions as lines, and read the answers as lines
    #[arg(long)]
    pub(crate) approvals: bool,

    /// Preset of tool and field names in the replies: toolcrib, codex or camel
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) dialect: Dialect,

    /// Open no monitor socket for `toolcrib page` and `toolcrib watch`
    #[arg(long)]
    pub(crate) no_monitor: bool,

    /// Copy the workspace and its history to an object store in the background: s3://BUCKET/PREFIX
    #[cfg(feature = "backup")]
    #[arg(long, value_name = "ADDRESS")]
    backup: Option<String>,
}

impl RunArgs {
    /// The address of the backup.
    pub(crate) fn backup(&self) -> Option<&String> {
        #[cfg(feature = "backup")]
        return self.backup.as_ref();
        #[cfg(not(feature = "backup"))]
        None
    }
}

/// Arguments of `serve`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// Preset of tool and field names: toolcrib, codex or camel; camel returns structured results
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) dialect: Dialect,

    /// Return structured results as well. Several clients then hide the text from the model
    #[arg(long)]
    pub(crate) structured: bool,

    /// Share one server process with the user's other clients that have the same workspace and settings
    #[arg(long, conflicts_with = "http")]
    pub(crate) shared: bool,

    /// What this process does to start a shared server
    #[arg(long, value_name = "PART", hide = true, conflicts_with_all = ["shared", "http"])]
    pub(crate) shared_part: Option<SharedPart>,

    /// Serve HTTP instead of stdio: a port, an address such as 127.0.0.1:8765, or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<ListenAt>,

    /// File with the bearer token [default: http-token in the state directory]
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,

    /// File with trusted identity providers, whose access tokens are used instead of the token
    #[arg(long, value_name = "FILE", requires = "http", conflicts_with_all = ["token_file", "workspace_tokens"])]
    pub(crate) identity: Option<PathBuf>,

    /// URL by which clients reach the server: https://HOST or https://HOST:PORT. Without --tls-cert, a TLS proxy must be in front of it
    #[arg(long, value_name = "URL", requires = "http")]
    pub(crate) public_url: Option<String>,

    /// File with the TLS certificate in PEM, and those that it depends on after it
    #[arg(long, value_name = "FILE", requires = "http", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// File with the key of the TLS certificate in PEM, which only its owner can read
    #[arg(long, value_name = "FILE", requires = "http", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Additional allowed Host header: NAME or NAME:PORT of a proxy or tunnel. Repeatable
    #[arg(long = "allow-host", value_name = "NAME", requires = "http")]
    pub(crate) allow_hosts: Vec<String>,

    /// Serve each subdirectory ID of DIR as a workspace of its own, at the path /w/ID/mcp
    #[arg(long, value_name = "DIR", requires = "http")]
    pub(crate) workspaces: Option<PathBuf>,

    /// Directory with the rules of single workspaces, in files ID.toml
    #[arg(long, value_name = "DIR", requires = "workspaces")]
    pub(crate) workspace_rules: Option<PathBuf>,

    /// File with a token for each workspace, in lines `ID TOKEN`, instead of one token for all
    #[arg(long, value_name = "FILE", requires = "workspaces", conflicts_with = "token_file")]
    pub(crate) workspace_tokens: Option<PathBuf>,

    /// Maximum number of open workspaces. Idle ones are closed, and opened again when they are used
    #[arg(long, value_name = "N", requires = "workspaces", default_value_t = 1_000, value_parser = at_least_one)]
    pub(crate) max_workspaces: usize,

    /// Open no monitor socket for `toolcrib page` and `toolcrib watch`
    #[arg(long)]
    pub(crate) no_monitor: bool,

    /// Send the audit log to PostgreSQL, too: postgres://TENANT@HOST/DATABASE, or the path of a file with the address
    #[cfg(feature = "postgres")]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,

    /// Name of the workspace in the store [default: HOST:PATH; with --workspaces: ID]
    #[cfg(feature = "postgres")]
    #[arg(long, value_name = "NAME", requires = "store", conflicts_with = "workspaces")]
    pub(crate) store_name: Option<String>,

    /// Write the workspace only while this machine has its lease in the store. Other machines with the same name only read
    #[cfg(feature = "postgres")]
    #[arg(long, requires = "store")]
    pub(crate) lease: bool,

    /// Copy the workspace and its history to an object store in the background: s3://BUCKET/PREFIX. With --workspaces each at PREFIX/ID
    #[cfg(feature = "backup")]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) backup: Option<String>,
}

impl ServeArgs {
    /// Whether there is a store.
    pub(crate) fn has_store(&self) -> bool {
        #[cfg(feature = "postgres")]
        return self.store.is_some();
        #[cfg(not(feature = "postgres"))]
        false
    }

    /// The address of the backup.
    pub(crate) fn backup(&self) -> Option<&String> {
        #[cfg(feature = "backup")]
        return self.backup.as_ref();
        #[cfg(not(feature = "backup"))]
        None
    }
}

/// Subcommands of `backup`.
#[cfg(feature = "backup")]
#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Copy the workspace once, and wait for it
    Now {
        /// The backup: s3://BUCKET/PREFIX
        address: String,
    },
    /// Show what a backup has; without an address, how the backups of this workspace are going
    Status {
        /// The backup: s3://BUCKET/PREFIX
        address: Option<String>,
        /// What it had after this segment [default: the last]
        #[arg(long, value_name = "NUMBER", requires = "address", value_parser = number::<u64>)]
        segment: Option<u64>,
    },
    /// Read everything in a backup that a restore needs, and check it
    Verify {
        /// The backup: s3://BUCKET/PREFIX
        address: String,
    },
    /// Make the files and the history of a backup again, in a new or empty directory
    Restore {
        /// The backup: s3://BUCKET/PREFIX
        address: String,
        /// The directory, which must be missing or empty
        directory: PathBuf,
        /// Restore what it had after this segment [default: the last]
        #[arg(long, value_name = "NUMBER", conflicts_with = "take_over", value_parser = number::<u64>)]
        segment: Option<u64>,
        /// Continue the backup from here: the machine that has written it cannot any more
        #[arg(long)]
        take_over: bool,
    },
}

/// Arguments of `sandboxd`.
#[cfg(feature = "sandboxd")]
#[derive(Debug, ClapArgs)]
pub(crate) struct SandboxdArgs {
    /// Address for files: a port, or an address such as 0.0.0.0:8080 [default: $SANDBOXD_REST_ADDR, or localhost:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) rest: Option<ListenAt>,

    /// Address for processes [default: $SANDBOXD_GRPC_ADDR, or localhost:9090]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) grpc: Option<ListenAt>,

    /// File with the bearer token [default: http-token in the state directory]
    #[arg(long, value_name = "FILE", conflicts_with = "trust_network")]
    pub(crate) token_file: Option<PathBuf>,

    /// Require no token: whoever can reach the addresses may run commands. Something else must decide who can, such as a
    /// network policy
    #[arg(long)]
    pub(crate) trust_network: bool,

    /// Beginning of the names of variables that /v1/metadata shows
    #[arg(long, value_name = "TEXT", default_value = "SANDBOX_")]
    pub(crate) metadata_prefix: String,

    /// Open no monitor socket for `toolcrib page` and `toolcrib watch`
    #[arg(long)]
    pub(crate) no_monitor: bool,
}

/// Subcommands of `store`.
#[cfg(feature = "postgres")]
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Make or update the tables, as a role that may create schemas and roles; --dry-run prints the statements
    Init {
        /// The store: postgres://OWNER@HOST/DATABASE, or the path of a file with the address
        store: String,
    },
    /// Make the role of a tenant with a random password, and write its address to a file; an existing tenant gets a new password
    AddTenant {
        /// The store: postgres://OWNER@HOST/DATABASE, or the path of a file with the address
        store: String,
        /// Name of the tenant: lower-case letters, digits and `_`
        name: String,
        /// The file for the address and the password. Only you will be able to read it
        #[arg(long, value_name = "FILE")]
        address_file: PathBuf,
    },
    /// Check the audit logs in the store: a tenant its own, the owner all
    Verify {
        /// The store: postgres://ROLE@HOST/DATABASE, or the path of a file with the address
        store: String,
    },
    /// List the limits of tenants and what is used of them, or set them as the owner of the store
    Quota {
        /// The store: postgres://ROLE@HOST/DATABASE, or the path of a file with the address
        store: String,
        /// Only the limits of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// The limits of this workspace, by its name in the store, instead of those of all workspaces together
        #[arg(long, value_name = "NAME", value_parser = workspace_name)]
        workspace: Option<String>,
        /// Set a limit: calls-per-minute=N, commands=N (that run at the same time) or command-seconds-per-day=N
        #[arg(long, value_name = "LIMIT=N", value_parser = quota_value)]
        set: Vec<(QuotaName, u64)>,
        /// Remove the limits of the tenant or of the workspace, except those of --set
        #[arg(long)]
        clear: bool,
    },
    /// List the approval questions that wait for an answer
    Approvals {
        /// The store: postgres://ROLE@HOST/DATABASE, or the path of a file with the address
        store: String,
    },
    /// Allow the call of an approval question, once
    Approve {
        /// The store: postgres://TENANT@HOST/DATABASE, or the path of a file with the address
        store: String,
        /// Id of the question, from `toolcrib store approvals`
        id: String,
        /// A message to the agent
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
    },
    /// Deny the call of an approval question
    Deny {
        /// The store: postgres://TENANT@HOST/DATABASE, or the path of a file with the address
        store: String,
        /// Id of the question, from `toolcrib store approvals`
        id: String,
        /// A message to the agent
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
    },
}

/// Arguments of `page`.
#[derive(Debug, ClapArgs)]
pub(crate) struct PageArgs {
    /// Port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "N", value_parser = number::<u16>)]
    pub(crate) port: Option<u16>,

    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,

    /// Print only the address, without notes
    #[arg(long)]
    pub(crate) print: bool,
}

/// Subcommands of `log`.
#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Check the audit log of the workspace, and print the hash of its last record
    #[command(long_about = VERIFY)]
    Verify {
        /// The hash of a record that you kept elsewhere: it must be in the log
        #[arg(long, value_name = "HASH", value_parser = record_hash)]
        head: Option<String>,
        /// Compare with the copy in PostgreSQL: the value of `serve --store`
        #[cfg(feature = "postgres")]
        #[arg(long, value_name = "STORE")]
        store: Option<String>,
    },
    /// Print the audit log of the workspace, oldest first, one JSON object per line
    Export {
        /// The format: the records as they are, or events of the Open Cybersecurity Schema Framework
        #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
        format: AuditFormat,
    },
}

/// Formats of `log export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// The records as they are, with their hashes
    Jsonl,
    /// API Activity events of OCSF
    Ocsf,
}

/// Subcommands of `config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the configuration file (default), or one setting
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

/// Subcommands of `index`.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum IndexCommand {
    /// Show how many files are indexed, and the size of the index
    Status,
    /// Build or update the index now (servers also do this in the background)
    Build,
    /// Delete the index (it can be rebuilt)
    Drop,
}

/// Subcommands of `policy`.
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

docs/rules.md describes the patterns. Running servers apply the rule to the next call.";

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

const SERVE: &str = "\
Serve MCP over stdio until stdin ends.

MCP clients start this command; `toolcrib install CLIENT` registers it. Pass `--root DIR` for each directory that \
the agent may change.

With --shared, clients of this user that have the same roots, settings, rules and environment share one process, \
which the first of them starts: one index, one set of watched directories. Each client has its own session, with its working \
directory, jobs and approvals. The process ends some seconds after its last client.

With --http it serves HTTP to programs on this machine. Each request needs `Authorization: Bearer TOKEN`. The \
server prints the path of the token file at the start, and creates the file if it does not exist.

Other machines can reach it only with --identity and an encrypted --public-url: then each request needs an access token \
of an identity provider that the file names, and the token and the file say what its owner may do. docs/identity.md \
describes the file.

Over HTTP each client has its own session, with its working directory and jobs. Clients that send the same header \
`Toolcrib-Session: NAME` share one. A session ends after an hour without use.

With --workspaces one process serves many workspaces. Each is isolated from the others: its tools and commands do not \
see them, and its sessions, jobs, approvals and history are its own. A workspace is opened by its first request. Its \
rules are those of the server and those in ID.toml in the directory of --workspace-rules. With --workspace-tokens each \
workspace has its own token. Both must be outside the directory of the workspaces.";

#[cfg(feature = "sandboxd")]
const SANDBOXD: &str = "\
Serve the runtime interface of Kubernetes' agent-sandbox (KEP-539.2), which is called sandboxd there, until SIGTERM.

Files are at /v1/files/PATH over REST, and processes are those of process.v1.ProcessService over gRPC. Each request is an \
operation of one session: policy, sandbox and journal are those of the tools. A path is relative to the first --root, and \
paths outside the roots are refused.

Each request, except /v1/health, needs `Authorization: Bearer TOKEN`, and only this machine can be served. The clients of \
agent-sandbox send no token: for them, and for other machines, use --trust-network in a pod. docs/kubernetes.md describes \
how to run it there.";

const VERIFY: &str = "\
Check the audit log of the workspace from its first record to its last, and name the first record that was edited, \
deleted, moved or cut off. Exit code 1 if there is one.

Each record has the hash of the one before it. So a log whose end was cut off, or that was rewritten as a whole, looks \
right. To notice that, keep the printed hash where nobody who can write the log can change it, and pass it with --head later.";

#[cfg(feature = "postgres")]
const STORE: &str = "\
Set up and check a store in PostgreSQL, to which `toolcrib serve --store` sends the audit logs of many machines.

An address is postgres://ROLE@HOST[:PORT]/DATABASE. The connection is encrypted and the certificate of the server is checked, unless the \
address has ?sslmode=disable or names a unix socket (?host=/run/postgresql). sslrootcert=FILE names an authority of your own.

A password is never an argument: keep the whole address in a file that only you can read and give the path of the file, or use \
PGPASSFILE, ~/.pgpass or PGPASSWORD.";

#[cfg(feature = "backup")]
const BACKUP: &str = "\
Copy a workspace to an object store with the interface of S3, and check and restore such backups. \
`toolcrib serve --backup ADDRESS` copies continuously, without delaying any call.

An address is s3://BUCKET/PREFIX, with a prefix of its own for each workspace. The keys, the region and another server than Amazon's come from \
the usual variables and files: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL, AWS_CA_BUNDLE, \
AWS_PROFILE, ~/.aws/credentials and ~/.aws/config.

Nothing in a backup is ever replaced or removed.";

const PAGE: &str = "\
Serve a page on 127.0.0.1 that shows all running servers of this user and the journal, until it is ended.

It prints an address that can be opened once. If the page runs already, it prints a new address of it and exits. \
Servers do not depend on the page.";

const WATCH: &str = "\
Show the calls and the approval questions of all running servers of this user, as they come.

Answer a question by typing a line: `y` allows the call, `s` allows it for the session, `t 30` for 30 minutes, `n TEXT` \
denies it with a message to the agent. `a`, `d` and `v` add a rule that the question shows. `l` lists all questions, \
and `o 2` shows the second. The first answer counts, here, in the client or on the page.

While it runs on a terminal, an agent whose client cannot ask waits for your answer.";

const INSTALL: &str = "\
Register Toolcrib with an MCP client: write an entry into the client's user configuration, and keep everything else \
in it. The server is started once first, as the client would start it; if it does not answer, nothing is written. \
Claude Code, Codex and Gemini CLI are told not to ask before each of Toolcrib's tools, unless the profile is `open`.

--root, --profile, --outside, --network-access, --tools, --no-tools, --config, --rules and --state are passed on to `toolcrib serve` in \
the entry, with absolute paths. Flags that only `serve` has go after `--`: toolcrib install claude -- --dialect camel

With --host the server runs on another machine, where `toolcrib push` has copied it. Its name is toolcrib-HOST, so \
that one client can have several hosts. --root, --config, --rules and --state are paths there, and a relative one is \
below the home directory. ssh must connect without a question. TOOLCRIB_SSH has the ssh command and its options, \
separated by spaces [default: ssh].

`toolcrib uninstall CLIENT` reverts this; with --host HOST for a server on another machine.";

const PUSH: &str = "\
Copy this program to another machine over ssh. The machine needs a POSIX shell, and no network. The copy replaces an \
older program in one step, and only if its checksum is right and `toolcrib --version` runs there. If the same program \
is there already, nothing is copied.

TOOLCRIB_SSH has the ssh command and its options, separated by spaces [default: ssh]. For example \
TOOLCRIB_SSH='ssh -p 2222 -i key'.";

const RUN: &str = "\
Serve calls as JSON lines on stdin and stdout until stdin ends. All calls share one session.

Request:   {\"id\": 1, \"tool\": \"Read\", \"args\": {\"file_path\": \"README.md\"}}
Reply:     {\"id\": 1, \"success\": true, \"output\": \"…\", \"metadata\": {…}}
or         {\"id\": 1, \"success\": false, \"error\": {\"kind\": \"…\", \"message\": \"…\", …}, …}

`id` is any JSON value; the reply repeats it. Replies may come out of order. \"wait\": true delays the following \
lines until the reply is written. \"dry_run\": true changes nothing. A malformed line gets a reply of kind `invalid` \
with \"id\": null. {\"cancel\": 1} cancels call 1.

With --approvals, a call that needs approval writes a question and waits, while other calls continue:

Question:  {\"approval\": {\"id\": \"a1\", \"call_id\": 1, \"tool\": \"Edit\", \"answers\": [\"yes\", …], …}}
Answer:    {\"approve\": \"a1\", \"answer\": \"yes\"}

If a question is not answered within `approval_seconds`, or stdin ends, the call is denied. Without --approvals, a \
call that needs approval is denied at once.";

/// `DIR` or `DIR:ro`.
#[derive(Debug, Clone)]
pub(crate) struct RootArg {
    pub(crate) directory: PathBuf,
    pub(crate) read_only: bool,
}

impl From<&str> for RootArg {
    fn from(text: &str) -> Self {
        match text.strip_suffix(":ro") {
            Some(directory) => RootArg { directory: directory.into(), read_only: true },
            None => RootArg { directory: text.into(), read_only: false },
        }
    }
}

/// Output formats of `tools`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FormatArg {
    /// MCP's tools/list result
    Mcp,
    /// OpenAI chat completions and compatible APIs
    Openai,
    /// Anthropic messages
    Anthropic,
    /// Gemini generateContent
    Gemini,
    /// A Markdown page
    Markdown,
}

impl From<FormatArg> for toolcrib::Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Mcp => toolcrib::Format::Mcp,
            FormatArg::Openai => toolcrib::Format::OpenAi,
            FormatArg::Anthropic => toolcrib::Format::Anthropic,
            FormatArg::Gemini => toolcrib::Format::Gemini,
            FormatArg::Markdown => toolcrib::Format::Markdown,
        }
    }
}

/// Parses the hash of a record.
fn record_hash(text: &str) -> Result<String, &'static str> {
    let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { Ok(text.to_ascii_lowercase()) } else { Err("not a hash of 64 digits") }
}

/// The largest limit: a bound of the store.
#[cfg(feature = "postgres")]
const MAX_QUOTA: u64 = 1_000_000_000_000;

/// Parses a limit and its value.
#[cfg(feature = "postgres")]
fn quota_value(text: &str) -> Result<(QuotaName, u64), String> {
    let (name, value) = text.split_once('=').ok_or("not LIMIT=N")?;
    let known = QuotaName::ALL.map(QuotaName::name).join(", ");
    let name = QuotaName::parse(name).ok_or(format!("the limits are {known}"))?;
    let value: u64 = number(value)?;
    if value > MAX_QUOTA { Err(format!("at most {MAX_QUOTA}")) } else { Ok((name, value)) }
}

/// Parses the name of a workspace in the store.
#[cfg(feature = "postgres")]
fn workspace_name(text: &str) -> Result<String, &'static str> {
    let is_name = (1..=1_024).contains(&text.len());
    if is_name { Ok(text.to_owned()) } else { Err("a name has 1 to 1024 bytes") }
}

/// Parses the id of a change or a number of entries.
fn number<N: FromStr>(text: &str) -> Result<N, &'static str> {
    text.parse().map_err(|_| "not a number")
}

/// Parses a limit that cannot be zero.
fn at_least_one(text: &str) -> Result<usize, &'static str> {
    match number(text)? {
        0 => Err("it must be at least 1"),
        count => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

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
