//! Arguments about other machines.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::RemoteHost;

// The machine that a command is about.
#[derive(Debug, ClapArgs)]
pub(crate) struct HostArgs {
    /// Run Toolcrib on another machine, over ssh: [USER@]HOST[:DIR] or ssh://[USER@]HOST[:PORT][/DIR]
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<RemoteHost>,
    /// Path of the program there [default: ~/.local/bin/toolcrib]
    #[arg(long, value_name = "PATH", requires = "host")]
    pub(crate) host_program: Option<String>,
}

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

pub(super) const PUSH: &str = "\
Copy this program to another machine over ssh. The machine needs a POSIX shell, and no network. The copy replaces an \
older program in one step, and only if its checksum is right and `toolcrib --version` runs there. If the same program \
is there already, nothing is copied.

TOOLCRIB_SSH has the ssh command and its options, separated by spaces [default: ssh]. For example \
TOOLCRIB_SSH='ssh -p 2222 -i key'.";
