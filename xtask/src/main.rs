//! The project's tasks. `cargo xtask help` lists them.
//!
//! They are written in Rust rather than in shell or YAML, so that CI runs the same on any machine and its
//! code is formatted, linted and tested like all other code. One file per task; this file has the table.
//! Large tasks are programs of their own, which are built only when they are used.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "xtask is a program for people: it reads files, starts processes and prints; the bans \
              are for the library"
)]

mod backup;
mod book;
mod ci;
mod clients;
mod coverage;
mod definitions;
mod demo;
mod demo_project;
mod deny;
mod generated_docs;
mod gvisor;
mod identity;
mod language_servers;
mod layering;
mod notebooks;
mod packages;
mod page;
mod picture;
mod sandboxd;
mod slurm;
mod task_programs;
mod telemetry;
mod tidy;
mod tool_formats;

use std::process::ExitCode;

use clap::{Args, Parser};
use toolcrib_devtools::error::{self, Result};

use ci::Step;

/// Runs the project's tasks
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Run all checks, or only these steps
    Ci {
        /// Steps, in this order
        steps: Vec<Step>,
    },
    /// Measure which share of the lines the tests run, by crate
    Coverage,
    /// Check house rules that neither rustfmt nor clippy check
    Tidy,
    /// Check which crate depends on which
    Layering,
    /// Check licences, duplicates and sources of dependencies
    Deny {
        /// Check security advisories instead, with cargo-deny and a network
        #[arg(long)]
        advisories: bool,
    },
    /// Write the generated pages of docs/
    Docs,
    /// Build docs/ with mdBook
    Book,
    /// Write docs/demo.svg: a command deletes files, and undo restores them
    Picture,
    /// Check `toolcrib tools --format …` with the client libraries of the APIs
    Formats,
    /// Test the MCP server with third-party clients
    Clients,
    /// Check edits of notebooks with Jupyter's library
    Notebooks,
    /// Check edits with real language servers
    Servers,
    /// Compare definitions with universal-ctags and language servers, and count the calls of questions about code
    Definitions,
    /// Check spans and metrics with OpenTelemetry's protocol definitions
    Telemetry,
    /// Check identities over HTTP with an issuer of access tokens and the client of the protocol's SDK
    Identity,
    /// Check `toolcrib sandboxd` with the client of Kubernetes' agent-sandbox
    Sandboxd,
    /// Check commands in gVisor, with `outer = "gvisor"`
    Gvisor,
    /// Check backups with a server that has the interface of S3: kills, failures of the network, damaged objects
    Backup {
        /// Rounds of random changes and kills
        #[arg(long, default_value_t = 50)]
        rounds: u32,
        /// Seed of the random changes
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Test the Python and npm packages
    Packages,
    /// Test the adapters of the packages with the agent frameworks, or only with these: NAME (Python), npm:NAME
    Frameworks {
        /// Names of frameworks
        names: Vec<String>,
    },
    /// Run the job array of examples/slurm on a Slurm cluster of one node
    Slurm,
    /// Test the app of `toolcrib page` in Chromium
    Page {
        /// Write docs/images/page-*.png instead
        #[arg(long)]
        screenshots: bool,
    },
    /// Build the product quickly, and show a session of an agent with undo
    Demo,
    /// Run a benchmark
    Bench(Rest),
    /// Run stress tests: races, faults, kills, full disks
    Torture(Rest),
    /// Run fuzz targets on mutations of fuzz/seeds
    Fuzz(Rest),
    /// Build a release into dist/, check that one can be built, or test its installation
    Dist(Rest),
}

/// The arguments of another program.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    error::exit_code(run(Task::parse()))
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Ci { steps } => ci::run(&steps),
        Task::Coverage => coverage::report(),
        Task::Tidy => tidy::check(),
        Task::Layering => layering::check(),
        Task::Deny { advisories: false } => deny::check(),
        Task::Deny { advisories: true } => deny::advisories(),
        Task::Docs => generated_docs::run(),
        Task::Book => book::run(),
        Task::Picture => picture::run(),
        Task::Formats => tool_formats::check(),
        Task::Clients => clients::run(),
        Task::Notebooks => notebooks::check(),
        Task::Servers => language_servers::check(),
        Task::Definitions => definitions::run(),
        Task::Telemetry => telemetry::check(),
        Task::Identity => identity::check(),
        Task::Sandboxd => sandboxd::check(),
        Task::Gvisor => gvisor::check(),
        Task::Backup { rounds, seed } => backup::check(rounds, seed),
        Task::Packages => packages::check(),
        Task::Frameworks { names } => packages::frameworks(&names),
        Task::Slurm => slurm::check(),
        Task::Page { screenshots: false } => page::check(),
        Task::Page { screenshots: true } => page::screenshots(),
        Task::Demo => demo::run(),
        Task::Bench(rest) => task_programs::bench(&rest.arguments),
        Task::Torture(rest) => task_programs::torture(&rest.arguments),
        Task::Fuzz(rest) => task_programs::fuzz(&rest.arguments),
        Task::Dist(rest) => task_programs::dist(&rest.arguments),
    }
}
