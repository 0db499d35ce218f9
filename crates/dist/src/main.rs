//! Everything that a release consists of, in `dist/`.
//!
//! The same sources give the same bytes: programs are built by a pinned compiler and linker without the paths of the
//! machine, and archives have sorted entries, fixed owners and the time of the commit.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers: it reads files, starts processes and prints; the bans are for the library"
)]

mod archive;
mod archive_entry;
mod build;
mod checksums;
mod components;
mod deb;
mod install_test;
mod licences;
mod man_and_completions;
mod mcp_registry;
mod npm;
mod oci;
mod release_check;
mod release_info;
mod sbom;
mod target;
mod wheel;
mod workflow;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use toolcrib_devtools::error::{self, Result};
use toolcrib_devtools::workspace;

use build::Program;
use install_test::Part;
use release_info::Release;
use target::{TARGETS, Target};

/// Builds a release into dist/
#[derive(Debug, Parser)]
#[command(name = "dist")]
struct Arguments {
    /// Targets to build for; all of them if none is given
    #[arg(value_parser = PossibleValuesParser::new(TARGETS.iter().map(|target| target.name)))]
    targets: Vec<String>,
    /// Only check that a release could be made of this tree
    #[arg(long, conflicts_with_all = ["targets", "test"])]
    check: bool,
    /// Install the artefacts in dist/ as users do, and use them: all parts, or these
    #[arg(long, value_name = "PART", num_args = 0.., conflicts_with = "targets")]
    test: Option<Vec<Part>>,
}

fn main() -> ExitCode {
    error::exit_code(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.test {
        Some(parts) => install_test::run(parts),
        None if arguments.check => release_check::run(),
        None => {
            let is_chosen = |target: &&Target| {
                arguments.targets.is_empty()
                    || arguments.targets.iter().any(|name| name == target.name)
            };
            release(&TARGETS.iter().filter(is_chosen).collect::<Vec<_>>())
        }
    }
}

/// The directory of the artefacts.
fn directory() -> PathBuf {
    workspace::root().join("dist")
}

/// Builds what can be built here. Fails at the end if a target is missing, because a release has all of them.
fn release(targets: &[&'static Target]) -> Result<()> {
    let release = Release::current()?;
    release_check::release_metadata(&release)?;
    let directory = directory();
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    let (mut programs, mut missing) = (Vec::new(), Vec::new());
    for target in targets {
        match build::build(target) {
            Ok(program) => programs.push(program),
            Err(problem) => {
                println!("{} is left out: {problem}", target.name);
                missing.push(target.name);
            }
        }
    }
    let artefacts = artefacts(&release, &programs)?;
    for artefact in &artefacts {
        fs::write(directory.join(&artefact.name), &artefact.bytes)?;
        println!("{:>10}  {}", archive::readable_size(artefact.bytes.len()), artefact.name);
    }
    fs::write(directory.join(checksums::NAME), checksums::of(&artefacts))?;
    println!("dist/{} has their checksums", checksums::NAME);
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("dist/ has no program for {}", missing.join(", ")).into())
    }
}

/// A file of a release.
struct Artefact {
    name: String,
    bytes: Vec<u8>,
}

/// All artefacts that can be made of these programs, by name.
fn artefacts(release: &Release, programs: &[Program]) -> Result<Vec<Artefact>> {
    let pages = man_and_completions::generate(programs)?;
    let mut artefacts = Vec::new();
    for program in programs {
        artefacts.push(archive::release_tarball(release, program, &pages)?);
        if program.target.debian.is_some() {
            artefacts.push(deb::package(release, program, &pages)?);
        }
        if program.target.wheel.is_some() {
            artefacts.push(wheel::wheel(release, program)?);
        }
        if program.target.node.is_some() {
            artefacts.push(npm::platform_package(release, program)?);
        }
    }
    artefacts.push(npm::main_package(release)?);
    artefacts.push(oci::image(release, programs)?);
    artefacts.push(sbom::bill_of_materials(release)?);
    artefacts.push(mcp_registry::server_json(release)?);
    artefacts.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(artefacts)
}
