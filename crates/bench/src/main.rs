//! Benchmarks, printed as Markdown. No benchmark fails because of its times. Each fails on a wrong result,
//! because the time of a wrong result means nothing.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers: it reads files, starts processes and prints; the bans are for the library"
)]

mod exec;
mod files;
mod growth;
mod mcp;
mod net;
mod patch;
mod policy;
mod replies;
mod report;
mod search;
mod start;
mod table;
mod text;
mod times;
mod workspaces;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use toolcrib_devtools::error::{self, Result};
use toolcrib_devtools::product;

use self::report::Report;

/// Runs benchmarks
#[derive(Debug, Parser)]
#[command(name = "bench", arg_required_else_help = true)]
struct Arguments {
    /// The benchmark. With --smoke, all of them if none is given
    #[arg(required_unless_present = "smoke")]
    bench: Option<Bench>,
    /// Run few rounds of the debug build, to check the results only
    #[arg(long, conflicts_with = "rounds")]
    smoke: bool,
    /// Number of measured rounds
    #[arg(long, value_name = "N", default_value_t = Rounds::DEFAULT.measured, value_parser = at_least_one)]
    rounds: usize,
    /// Measure this program instead of building one
    #[arg(long, value_name = "PATH", conflicts_with = "smoke")]
    program: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Bench {
    /// One `toolcrib call Read` from spawn to exit, compared with cat and node
    Start,
    /// A change, a long listing and an edit, compared with fsync and rename, ls -f, sed -i
    Files,
    /// Large files read and edited, small Reads, compared with wc -l, tail, cp and fsync, cat
    Text,
    /// A patch over 500 files, compared with git apply, in memory and on disk
    Patch,
    /// `true` through Bash compared with a bare spawn, a flood compared with cat, a large server
    Exec,
    /// Connections of commands to a listed host compared with direct ones: latency, and throughput of 1 and 64 streams
    Net,
    /// Grep and Glob compared with ripgrep and fd, on the kernel's sources and on this repository
    Search,
    /// A decision on a call, from a file to a script of 20 kB
    Policy,
    /// The characters of replies to an hour of an agent's calls
    Replies,
    /// The MCP server compared with the official one for Node, rust-mcp-filesystem and Desktop Commander
    Mcp,
    /// Many workspaces in one process over HTTP: opening, memory of each, small Reads in one
    Workspaces,
    /// How cost grows with the number of files, the changes in the journal and the bytes of output
    Growth,
}

/// The number of rounds.
#[derive(Clone, Copy)]
struct Rounds {
    /// Rounds that only fill the caches and are not counted.
    warm_up: usize,
    measured: usize,
    /// Whether this run only checks the results.
    is_smoke: bool,
    /// The program to measure, if it is not to be built.
    program: Option<&'static Path>,
}

impl Rounds {
    const DEFAULT: Rounds = Rounds { warm_up: 20, measured: 300, is_smoke: false, program: None };
    const SMOKE: Rounds = Rounds { warm_up: 0, measured: 1, is_smoke: true, program: None };

    /// For rounds that take long: at most this many, and few to fill the caches.
    fn at_most(self, measured: usize) -> Rounds {
        Rounds { warm_up: self.warm_up.min(2), measured: self.measured.min(measured), ..self }
    }

    /// Builds the program to measure.
    fn build(self) -> Result<PathBuf> {
        match self.program {
            Some(program) => Ok(program.to_owned()),
            None if self.is_smoke => product::build_debug(),
            None => product::build_dist(),
        }
    }

    /// Builds an example that measures within its own process.
    fn build_example(self, package: &str, name: &str) -> Result<PathBuf> {
        if self.is_smoke {
            product::build_debug_example(name)
        } else {
            product::build_dist_example(package, name)
        }
    }
}

fn at_least_one(word: &str) -> std::result::Result<usize, String> {
    word.parse().ok().filter(|count| *count > 0).ok_or_else(|| "not a number above 0".to_owned())
}

fn main() -> ExitCode {
    error::exit_code(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<()> {
    let rounds = if arguments.smoke {
        Rounds::SMOKE
    } else {
        // Lives as long as the benchmarks.
        let program = arguments.program.clone().map(|path| &*path.leak());
        Rounds { measured: arguments.rounds, program, ..Rounds::DEFAULT }
    };
    match arguments.bench {
        Some(bench) => bench.run(rounds),
        None => Bench::value_variants().iter().try_for_each(|bench| bench.run(rounds)),
    }
}

impl Bench {
    fn run(self, rounds: Rounds) -> Result<()> {
        let run = match self {
            Bench::Start => start::run,
            Bench::Files => files::run,
            Bench::Text => text::run,
            Bench::Patch => patch::run,
            Bench::Exec => exec::run,
            Bench::Net => net::run,
            Bench::Search => search::run,
            Bench::Policy => policy::run,
            Bench::Replies => replies::run,
            Bench::Mcp => mcp::run,
            Bench::Workspaces => workspaces::run,
            Bench::Growth => growth::run,
        };
        let mut report = Report::default();
        run(rounds, &mut report)?;
        if rounds.is_smoke {
            // The times of a debug build in one round are not worth a comparison.
            return Ok(());
        }
        let name = self.to_possible_value().map(|value| value.get_name().to_owned());
        report.end(&name.unwrap_or_default())
    }
}
