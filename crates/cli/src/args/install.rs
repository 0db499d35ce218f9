//! Arguments of `install`.

use clap::Args as ClapArgs;

use super::{Client, HostArgs};

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

pub(super) const INSTALL: &str = "\
Register Toolcrib with an MCP client: write an entry into the client's user configuration, and keep everything else \
in it. The server is started once first, as the client would start it; if it does not answer, nothing is written. \
--print checks the flags, but starts no server on this machine. \
Claude Code, Codex and Gemini CLI are told not to ask before each of Toolcrib's tools, unless the profile is `open`.

--root, --profile, --outside, --network-access, --outer, --tools, --no-tools, --config, --rules and --state are passed on to `toolcrib serve` in \
the entry, with absolute paths. Flags that only `serve` has go after `--`: toolcrib install claude -- --dialect camel

With --host the server runs on another machine, where `toolcrib push` has copied it. Its name is toolcrib-HOST, so \
that one client can have several hosts. --root, --config, --rules and --state are paths there, and a relative one is \
below the home directory. ssh must connect without a question. TOOLCRIB_SSH has the ssh command and its options, \
separated by spaces [default: ssh].

`toolcrib uninstall CLIENT` reverts this; with --host HOST for a server on another machine.";
