//! `cargo xtask dist --test`: the artefacts in `dist/` are installed as users do it, and used.
//!
//! Registries are local, and every installation has a home directory of its own. Nothing is published.

mod cargo;
mod deb;
mod emulated;
mod image;
mod npm;
mod program;
mod python;
mod server;
mod user;

use super::release::Release;
use crate::error::Result;
use crate::nearest;

struct Part {
    name: &'static str,
    run: fn(&Release) -> Result<()>,
}

/// Quick ones first.
const PARTS: &[Part] = &[
    Part { name: "deb", run: deb::run },
    Part { name: "image", run: image::run },
    Part { name: "npm", run: npm::run },
    Part { name: "python", run: python::run },
    Part { name: "program", run: program::run },
    Part { name: "emulated", run: emulated::run },
    Part { name: "cargo", run: cargo::run },
];

/// All parts, or those named.
pub(super) fn run(names: &[&str]) -> Result<()> {
    let release = Release::current()?;
    for name in names {
        if !PARTS.iter().any(|part| part.name == *name) {
            return Err(nearest::unknown("part", name, PARTS.iter().map(|part| part.name)).into());
        }
    }
    for part in PARTS.iter().filter(|part| names.is_empty() || names.contains(&part.name)) {
        println!("── {}", part.name);
        (part.run)(&release)?;
    }
    Ok(())
}
