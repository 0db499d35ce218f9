//! Stress tests under conditions that ordinary tests do not create: races, faults, crashes, full disks. Each kind
//! ends with a report and fails if data was lost, torn or leaked. Everything happens in temporary directories.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers: it reads files, starts processes and prints; the bans are for the library"
)]

mod diff;
mod exec;
mod fleet;
mod fs;
mod index;
mod patch;
mod pdf;
mod policy;
mod report;
mod sandbox;
mod search;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use toolcrib_devtools::error::{self, Result};
use toolcrib_devtools::peers::{self, Peers};
use toolcrib_devtools::product;

/// Runs stress tests
#[derive(Debug, Parser)]
#[command(name = "torture", arg_required_else_help = true)]
struct Arguments {
    /// The kind of test; with --smoke, all kinds if none is given
    #[command(subcommand)]
    kind: Option<Kind>,
    #[command(flatten)]
    effort: Effort,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Files: racers, injected faults, kills, a full disk, two editors of one file
    Fs { parts: Vec<fs::Part> },
    /// ApplyPatch on the commits of repositories, compared with git and GNU patch
    Patch {
        /// Repositories; a generated one if none is given
        repositories: Vec<PathBuf>,
    },
    /// Diffs of random edits, compared with git's
    Diff,
    /// Commands: daemons and every way to end them, large and slow output, thousands of commands
    Exec { parts: Vec<exec::Part> },
    /// A simulation of many nodes: leases and failover with deaths, hangs, partitions, clocks that differ
    Fleet,
    /// Scripts under strace: an allowed script runs only analyzed commands
    Policy,
    /// Escape attempts at levels 4, 3 and 2, as root and as nobody, with canaries outside
    Sandbox,
    /// Glob and Grep compared with ripgrep and fd, on directories and on a changing tree
    Search {
        /// Directories; this repository if none is given
        directories: Vec<PathBuf>,
    },
    /// Searches with an index compared with searches without: patterns, changes, lost events, kills
    Index {
        /// Beginnings of the names of parts
        parts: Vec<String>,
    },
    /// The words of PDFs, compared with those of pdftotext and pypdf
    Pdf {
        /// A directory of PDFs
        directory: PathBuf,
    },
}

/// The extent of a run.
#[derive(Debug, Clone, Copy, Args)]
struct Effort {
    /// Run only a sample that takes a minute
    #[arg(long, global = true)]
    smoke: bool,
    /// Number of rounds
    #[arg(long, global = true, value_name = "N", value_parser = at_least_one)]
    rounds: Option<usize>,
}

impl Effort {
    /// Builds the program to test.
    fn build(self) -> Result<PathBuf> {
        if self.smoke { product::build_debug() } else { product::build_release() }
    }

    /// Installs the programs to compare with.
    fn peers(self) -> Result<Peers> {
        if self.smoke { peers::install_debug() } else { peers::install() }
    }
}

fn at_least_one(word: &str) -> std::result::Result<usize, String> {
    word.parse().ok().filter(|count| *count > 0).ok_or_else(|| "not a number above 0".to_owned())
}

fn main() -> ExitCode {
    error::exit_code(run(Arguments::parse()))
}

fn run(arguments: Arguments) -> Result<()> {
    let effort = arguments.effort;
    match arguments.kind {
        Some(kind) => kind.run(effort),
        None if effort.smoke => Kind::smoke().into_iter().try_for_each(|kind| kind.run(effort)),
        None => Err("name a kind, or --smoke for a sample of all".into()),
    }
}

impl Kind {
    /// The kinds of a smoke run. The others need files from outside this repository (PDF), or repeat tests of a
    /// library with more rounds (diff).
    fn smoke() -> [Kind; 8] {
        [
            Kind::Fs { parts: Vec::new() },
            Kind::Patch { repositories: Vec::new() },
            Kind::Exec { parts: Vec::new() },
            Kind::Fleet,
            Kind::Policy,
            Kind::Sandbox,
            Kind::Search { directories: Vec::new() },
            Kind::Index { parts: Vec::new() },
        ]
    }

    fn run(self, effort: Effort) -> Result<()> {
        match self {
            Kind::Fs { parts } => fs::run(&parts, effort),
            Kind::Patch { repositories } => patch::run(&repositories, effort),
            Kind::Diff => diff::run(effort),
            Kind::Exec { parts } => exec::run(&parts, effort),
            Kind::Fleet => fleet::run(effort),
            Kind::Policy => policy::run(effort),
            Kind::Sandbox => sandbox::run(effort),
            Kind::Search { directories } => search::run(&directories, effort),
            Kind::Index { parts } => index::run(&parts, effort),
            Kind::Pdf { directory } => pdf::run(&directory),
        }
    }
}
