//! Crates: each is packaged, and `cargo install` builds the program from the packages alone.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::{metadata, process};

use super::new_user::NewUser;
use crate::checksums::sha256;
use crate::release_check::published;
use crate::release_info::Release;

pub(super) fn run(release: &Release) -> Result<()> {
    let user = NewUser::new()?;
    let registry = user.at("registry");
    vendor_dependencies(&registry)?;
    add_packages(release, &registry)?;
    let prefix = user.at("prefix");
    install(&registry, &prefix, &user.at("target"))?;
    user.try_out(release, &[&prefix.join("bin/toolcrib").display().to_string()])
}

/// Third-party crates, unpacked. They are not under test.
fn vendor_dependencies(registry: &Path) -> Result<()> {
    let mut vendor = process::cargo(&["vendor", "--quiet", "--locked", "--versioned-dirs"]);
    // It prints the configuration that `install` has.
    process::capture(vendor.arg(registry)).map(drop)
}

/// Our crates as they would be published. `cargo install` builds each of them, so they are not built here.
fn add_packages(release: &Release, registry: &Path) -> Result<()> {
    let members = metadata::of_members()?;
    let packages = Path::new(metadata::text(&members, "target_directory")?).join("package");
    let names = published(&members)?
        .into_iter()
        .map(|package| metadata::text(package, "name"))
        .collect::<Result<Vec<&str>>>()?;
    let mut package =
        process::cargo(&["package", "--quiet", "--locked", "--allow-dirty", "--no-verify"]);
    for name in &names {
        package.args(["--package", name]);
    }
    process::run(&mut package)?;
    for name in &names {
        let directory = format!("{name}-{}", release.version);
        let archive = packages.join(format!("{directory}.crate"));
        process::run(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(registry))?;
        let checksum = json!({"files": {}, "package": sha256(&fs::read(&archive)?)});
        let note = registry.join(directory).join(".cargo-checksum.json");
        fs::write(note, checksum.to_string())?;
    }
    println!("   {} crates are packaged", names.len());
    Ok(())
}

/// As from the registry of crates, which is replaced by the directory.
fn install(registry: &Path, prefix: &Path, target: &Path) -> Result<()> {
    let mut install = process::cargo(&["install", "--quiet", "--locked", "--offline"]);
    install.args(["--config", "source.crates-io.replace-with='packages'", "--config"]);
    install.arg(format!("source.packages.directory='{}'", registry.display()));
    install.arg("--root").arg(prefix).arg("toolcrib-cli").env("CARGO_TARGET_DIR", target);
    // Outside of the repository: its manifests do not count.
    process::run(install.current_dir(registry))
}
