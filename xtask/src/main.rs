//! The project's tasks. `cargo xtask` lists them.
//!
//! They are written in Rust rather than in shell or YAML, so that CI runs the same on any machine and its
//! code is formatted, linted and tested like all other code. One file per task; this file has the table.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "xtask is a program for people: it reads files, starts processes and prints; the bans \
              are for the library"
)]

mod bench;
mod book;
mod ci;
mod clients;
mod conversation;
mod demo;
mod deny;
mod dist;
mod docs;
mod error;
mod formats;
mod fuzz;
mod layering;
mod metadata;
mod nearest;
mod node;
mod notebooks;
mod oracle;
mod packages;
mod peers;
mod picture;
mod process;
mod product;
mod python;
mod random;
mod sandbox;
mod stage;
mod tidy;
mod torture;
mod trial;
mod watchdog;
mod workspace;

use std::process::ExitCode;

use error::{Result, Usage};

/// A row in the list of tasks.
struct Task {
    name: &'static str,
    /// The arguments, for the help.
    arguments: &'static str,
    what: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const TASKS: &[Task] = &[
    Task {
        name: "ci",
        arguments: "[STEP… | --list]",
        what: "runs all checks, or only the named steps",
        run: ci::run,
    },
    Task {
        name: "tidy",
        arguments: "",
        what: "checks house rules that neither rustfmt nor clippy check",
        run: tidy::run,
    },
    Task {
        name: "layering",
        arguments: "",
        what: "checks which crate depends on which",
        run: layering::run,
    },
    Task {
        name: "deny",
        arguments: "[--advisories]",
        what: "checks licences, duplicates and sources of dependencies",
        run: deny::run,
    },
    Task {
        name: "docs",
        arguments: "",
        what: "writes the generated pages of docs/",
        run: docs::run,
    },
    Task { name: "book", arguments: "", what: "builds docs/ with mdBook", run: book::run },
    Task {
        name: "picture",
        arguments: "",
        what: "writes docs/demo.svg: a command deletes files, and undo restores them",
        run: picture::run,
    },
    Task {
        name: "formats",
        arguments: "",
        what: "checks `toolcrib tools --format …` with the client libraries of the APIs",
        run: formats::run,
    },
    Task {
        name: "clients",
        arguments: "",
        what: "tests the MCP server with third-party clients",
        run: clients::run,
    },
    Task {
        name: "notebooks",
        arguments: "",
        what: "checks edits of notebooks with Jupyter's library",
        run: notebooks::run,
    },
    Task {
        name: "bench",
        arguments: "[NAME] [--rounds N]",
        what: "runs a benchmark; lists them without a name",
        run: bench::run,
    },
    Task {
        name: "torture",
        arguments: "[KIND [PART…]] [--smoke] [--rounds N]",
        what: "runs stress tests: races, faults, kills, full disks; lists them without a kind",
        run: torture::run,
    },
    Task {
        name: "fuzz",
        arguments: "[TARGET] [--seconds N] [--seed S]",
        what: "runs fuzz targets on mutations of fuzz/seeds; all of them without a target",
        run: fuzz::run,
    },
    Task {
        name: "trial",
        arguments: "[NAME DIRECTORY]",
        what: "evaluates results on third-party files; lists the trials without a name",
        run: trial::run,
    },
    Task {
        name: "dist",
        arguments: "[TARGET… | --check | --test]",
        what: "builds a release into dist/; --check tells if one can be built, --test installs it",
        run: dist::run,
    },
    Task {
        name: "demo",
        arguments: "",
        what: "builds the product quickly, and shows a session of an agent with undo",
        run: demo::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<()> {
    let Some((word, rest)) = arguments.split_first() else {
        print_help();
        return Ok(());
    };
    if ["help", "--help", "-h"].contains(&word.as_str()) {
        print_help();
        return Ok(());
    }
    match TASKS.iter().find(|task| task.name == word) {
        Some(task) => (task.run)(rest),
        None => Err(nearest::unknown("task", word, TASKS.iter().map(|task| task.name)).into()),
    }
}

fn print_help() {
    println!("cargo xtask TASK\n");
    for task in TASKS {
        let usage = format!("{} {}", task.name, task.arguments);
        println!("  {usage:<39}{}", task.what);
    }
}
