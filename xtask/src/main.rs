//! The project's own tasks: `cargo xtask` lists them.
//!
//! In Rust rather than in shell or yaml, so that what CI does runs the same on any machine, and is
//! read, formatted, linted and tested like everything else. One file a task; this one has the table.

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

/// One row of `cargo xtask`.
struct Task {
    name: &'static str,
    /// What may stand after the name.
    arguments: &'static str,
    what: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const TASKS: &[Task] = &[
    Task {
        name: "ci",
        arguments: "[STEP… | --list]",
        what: "everything that must hold, step by step; or only the steps named",
        run: ci::run,
    },
    Task {
        name: "tidy",
        arguments: "",
        what: "the house rules that neither rustfmt nor clippy know",
        run: tidy::run,
    },
    Task { name: "layering", arguments: "", what: "which crate may use which", run: layering::run },
    Task {
        name: "deny",
        arguments: "[--advisories]",
        what: "licences, duplicates and sources of what we depend on",
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
        what: "`toolcrib tools --format …`, judged by the client libraries of the APIs",
        run: formats::run,
    },
    Task {
        name: "clients",
        arguments: "",
        what: "the MCP server, used by clients that others wrote",
        run: clients::run,
    },
    Task {
        name: "notebooks",
        arguments: "",
        what: "edits of notebooks, judged by Jupyter's own library",
        run: notebooks::run,
    },
    Task {
        name: "bench",
        arguments: "[NAME] [--rounds N]",
        what: "measures; without a name it lists what there is",
        run: bench::run,
    },
    Task {
        name: "torture",
        arguments: "[KIND [PART…]] [--smoke] [--rounds N]",
        what: "races, faults, kills, full disks; without a kind it lists what there is",
        run: torture::run,
    },
    Task {
        name: "fuzz",
        arguments: "[TARGET] [--seconds N] [--seed S]",
        what: "odd inputs without end, made of fuzz/seeds; without a target all of them",
        run: fuzz::run,
    },
    Task {
        name: "trial",
        arguments: "[NAME DIRECTORY]",
        what: "how good we are on files of others; without a name it lists what there is",
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
