//! What can be said on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use toolcrib::{Dialect, Profile};

use crate::commands::{Client, ListenAt};

/// Hands for a coding agent: files that cannot be lost, errors that help.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// Flags may stand before the command or after it. Given on both sides, the parser would take the
    /// last ones and drop the others without a word, and with them a `:ro`.
    pub(crate) fn check_roots(&self, words: impl Iterator<Item = OsString>) -> Result<(), String> {
        let words = words.take_while(|word| word != "--");
        let is_root =
            |word: &OsString| word == "--root" || word.as_encoded_bytes().starts_with(b"--root=");
        let given = words.filter(is_root).count();
        if given > self.common.roots.len() {
            return Err("give all --root flags before the command, or all after it".to_owned());
        }
        Ok(())
    }
}

const EXAMPLES: &str = "\
Examples:
  toolcrib call Read '{\"file_path\": \"README.md\", \"limit\": 20}'
  toolcrib call Edit '{\"file_path\": \"a.txt\", \"old_string\": \"x\", \"new_string\": \"y\"}' --dry-run
  echo '{\"id\": 1, \"tool\": \"Read\", \"args\": {\"file_path\": \"README.md\"}}' | toolcrib run
  toolcrib tools --format anthropic
  toolcrib log; toolcrib show 7; toolcrib undo 7

Exit codes: 0 the call did what was asked, 1 it did not (the reply says why), 2 the command line
was wrong.";

/// What every command takes.
#[derive(Debug, ClapArgs)]
pub(crate) struct Common {
    /// A directory that the tools may see; `DIR:ro` for reading only. Repeatable; relative paths in
    /// calls begin at the first
    #[arg(long = "root", value_name = "DIR", global = true, default_value = ".")]
    pub(crate) roots: Vec<RootArg>,

    /// How much may happen without a question: read-only, cautious, workspace (the default) or open
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) profile: Option<Profile>,

    /// The configuration; the default is toolcrib/config.toml in $XDG_CONFIG_HOME, if it is there
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,

    /// The rules; the default is toolcrib/rules.toml in $XDG_CONFIG_HOME, if it is there
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) rules: Option<PathBuf>,

    /// Where the journal is; the default is toolcrib in $XDG_STATE_HOME
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) state: Option<PathBuf>,

    /// Tell what would be done, with the diff, and touch nothing
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,

    /// Print the reply as one JSON object; the default when the output is no terminal
    #[arg(long, global = true, conflicts_with = "text")]
    pub(crate) json: bool,

    /// Print for people; the default on a terminal
    #[arg(long, global = true)]
    pub(crate) text: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make one call and print its reply
    Call {
        /// The tool, as `toolcrib tools` lists it
        tool: String,
        /// Its arguments as a JSON object, or `-` to read them from standard input
        #[arg(value_name = "JSON", default_value = "{}")]
        args: String,
    },
    /// Answer calls, one JSON object a line, until the input ends
    #[command(long_about = RUN)]
    Run,
    /// Serve the tools over MCP, on standard input and output
    #[command(long_about = SERVE)]
    Serve(ServeArgs),
    /// Put an entry for this program into a client's own configuration
    Install(InstallArgs),
    /// Take that entry out again
    Uninstall {
        /// The client
        client: Client,
    },
    /// Tell what is in force here, and try to get out of the sandbox
    Doctor,
    /// List the tools
    Tools {
        /// The words of the tools: toolcrib (the default), codex or camel
        #[arg(long, value_name = "NAME", default_value_t)]
        dialect: Dialect,
        /// The form: what an API takes for its `tools`, or a page of Markdown
        #[arg(long, value_name = "FORM")]
        format: Option<FormatArg>,
    },
    /// List the changes that were made here, the newest first
    Log {
        /// How many
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
        /// List what was decided on calls instead: by which rule, and who answered what
        #[arg(long)]
        decisions: bool,
    },
    /// Show a change with its diff
    Show {
        /// Its number, as `toolcrib log` lists it
        id: u64,
    },
    /// Show what all changes together have changed, from before the first to now
    Diff {
        /// Only since this change, itself included
        since: Option<u64>,
    },
    /// Take back a change; later changes stay
    Undo {
        /// Its number; the default is the last change that is not of ignored files alone
        id: Option<u64>,
        /// Take back all changes from this one on, itself included: all or nothing
        #[arg(long, value_name = "ID", conflicts_with_all = ["id", "path"])]
        since: Option<u64>,
        /// Take back only what is at this path: its last change, or change ID of it
        #[arg(long, value_name = "PATH")]
        path: Option<String>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Take back the last undo
    Redo {
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Show which rule decides, before anything is done
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Show, build or drop the index that searches keep of large roots
    Index {
        #[command(subcommand)]
        command: IndexCommand,
    },
    /// List the commands that running servers and sessions of this user have under way
    Jobs,
    /// End such a command, and all that it started
    Kill {
        /// Its id, as `toolcrib jobs` lists it
        id: String,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// What to install.
#[derive(Debug, ClapArgs)]
pub(crate) struct InstallArgs {
    /// The client
    pub(crate) client: Client,
    /// Only show what would be written, and where
    #[arg(long)]
    pub(crate) print: bool,
    /// Flags for `toolcrib serve`, behind `--`: the client will start it with them
    #[arg(last = true, value_name = "FLAG")]
    pub(crate) flags: Vec<String>,
}

/// How to serve.
#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// The words of the tools: toolcrib (the default), codex, or camel, whose results are objects
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) dialect: Dialect,

    /// Give results as objects too, with their schemas. Several clients then hide the text from the model
    #[arg(long)]
    pub(crate) structured: bool,

    /// Serve over HTTP: a port, an address of this machine such as 127.0.0.1:8765, or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<ListenAt>,

    /// The file with the token that requests must bring; the default is http-token where the journal is
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,

    /// A further name by which requests may call us: NAME or NAME:PORT of a proxy or tunnel. Repeatable
    #[arg(long = "allow-host", value_name = "NAME", requires = "http")]
    pub(crate) allow_hosts: Vec<String>,
}

/// What to do with the index of each root.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum IndexCommand {
    /// How many files are in it, and how large it is
    Status,
    /// Read what is not in it yet, for the servers to come; they would do so by themselves
    Build,
    /// Remove it; nothing is lost but time
    Drop,
}

/// The questions that a policy answers.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Read a file of rules, and say what is wrong with it
    Check {
        /// The file
        file: PathBuf,
    },
    /// Decide on a call, and do not make it
    Explain {
        /// The tool, as `toolcrib tools` lists it
        tool: String,
        /// Its arguments as a JSON object
        #[arg(value_name = "JSON", default_value = "{}")]
        args: String,
    },
    /// Decide on a shell command, and do not run it: what it would run, write and read, and by which rule
    Test {
        /// The command, as one word
        command: String,
    },
}

const SERVE: &str = "\
Serve the tools over MCP, on standard input and output, until the input ends.

A client starts it by itself: the command in its configuration is `toolcrib serve`, with `--root DIR` for each
directory that it may see.

With --http it serves over HTTP instead, to programs of this machine that bring the token: each request needs
`Authorization: Bearer TOKEN`. The file with the token is named on standard error at the start; it is made if
it is not there.

Over HTTP each client has its own session, with its working directory and its commands. Clients that send the same
header `Toolcrib-Session: NAME` share one. A session ends after an hour without use.\
";

const RUN: &str = "\
Answer calls, one JSON object a line, until the input ends. One session for all of them.

A line in:   {\"id\": 1, \"tool\": \"Read\", \"args\": {\"file_path\": \"README.md\"}}
A line out:  {\"id\": 1, \"success\": true, \"output\": \"…\", \"metadata\": {…}}
or           {\"id\": 1, \"success\": false, \"error\": {\"kind\": \"…\", \"message\": \"…\", \"hint\": \"…\"}, …}

`id` is any JSON value and comes back as it was. Replies may come out of order; a line with
\"wait\": true holds the lines after it until its reply is out. A line with \"dry_run\": true only
tells what it would do. A line that is no call gets a reply of kind `invalid` with \"id\": null,
and the next line is answered.";

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

/// The forms in which tools can be listed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FormatArg {
    /// The result of MCP's tools/list
    Mcp,
    /// OpenAI's chat completions, and what is compatible with them
    Openai,
    /// Anthropic's messages
    Anthropic,
    /// Gemini's generateContent
    Gemini,
    /// A page for people
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
