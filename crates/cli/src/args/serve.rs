//! Arguments of `serve`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use toolcrib::Dialect;

use super::parse::at_least_one;
use super::{ListenAt, SharedPart};

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

pub(super) const SERVE: &str = "\
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
