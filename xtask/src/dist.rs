//! `cargo xtask dist`: everything that a release consists of, in `dist/`.
//!
//! The same sources give the same bytes: programs are built by a pinned compiler and linker without the paths of the
//! machine, and archives have sorted entries, fixed owners and the time of the commit.

mod archive;
mod build;
mod check;
mod checksums;
mod components;
mod deb;
mod install_test;
mod licences;
mod mcp_registry;
mod npm;
mod oci;
mod pages;
mod release;
mod sbom;
mod target;
mod wheel;
mod workflow;

use std::fs;
use std::path::PathBuf;

use crate::error::Result;
use crate::{nearest, workspace};
use build::Program;
use release::Release;
use target::{TARGETS, Target};

/// The task.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--check"] => check(),
        ["--test", parts @ ..] => install_test::run(parts),
        targets => release(&chosen(targets)?),
    }
}

/// What CI has the time for: that a release could be made of this tree.
pub(crate) fn check() -> Result<()> {
    check::run()
}

/// Where the artefacts go.
fn directory() -> PathBuf {
    workspace::root().join("dist")
}

fn chosen(names: &[&str]) -> Result<Vec<&'static Target>> {
    if names.is_empty() {
        return Ok(TARGETS.iter().collect());
    }
    let all_names = || TARGETS.iter().map(|target| target.name);
    let named = |name: &&str| {
        let target = TARGETS.iter().find(|target| target.name == *name);
        target.ok_or_else(|| nearest::unknown("target", name, all_names()).into())
    };
    names.iter().map(named).collect()
}

fn release(targets: &[&'static Target]) -> Result<()> {
    let release = Release::current()?;
    check::release_metadata(&release)?;
    let directory = directory();
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    let programs =
        targets.iter().map(|target| build::build(target)).collect::<Result<Vec<Program>>>()?;
    let artefacts = artefacts(&release, &programs)?;
    for artefact in &artefacts {
        fs::write(directory.join(&artefact.name), &artefact.bytes)?;
        println!("{:>10}  {}", archive::readable_size(artefact.bytes.len()), artefact.name);
    }
    fs::write(directory.join(checksums::NAME), checksums::of(&artefacts))?;
    println!("dist/{} has their checksums", checksums::NAME);
    Ok(())
}

/// A file of a release.
struct Artefact {
    name: String,
    bytes: Vec<u8>,
}

/// All artefacts that can be made of these programs, by name.
fn artefacts(release: &Release, programs: &[Program]) -> Result<Vec<Artefact>> {
    let pages = pages::generate(programs)?;
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
