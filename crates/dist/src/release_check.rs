//! `cargo xtask dist --check`: checks whether a release could be made from this tree, without building the
//! product.
//!
//! The packages are made with a script in place of the program, and installed by pip and npm without a network.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::{metadata, process, workspace};

use super::archive_entry::Entry;
use super::build::Program;
use super::man_and_completions::ManAndCompletions;
use super::release_info::Release;
use super::target::TARGETS;
use super::{Artefact, deb, licences, mcp_registry, npm, oci, sbom, wheel, workflow};

/// What the stand-in prints.
const GREETING: &str = "the stand-in ran";

/// The task.
pub(super) fn run() -> Result<()> {
    let release = Release::current()?;
    release_metadata(&release)?;
    packaged_files()?;
    workflow::check()?;
    let scratch = tempfile::tempdir()?;
    packages(&release, scratch.path())?;
    println!("version {}: a release can be made", release.version);
    Ok(())
}

/// Versions, changelog and the metadata that registries ask for.
pub(super) fn release_metadata(release: &Release) -> Result<()> {
    let root = workspace::root();
    let changelog = fs::read_to_string(root.join("CHANGELOG.md"))?;
    let members = metadata::of_members()?;
    let mut problems = Vec::new();
    problems.extend(changelog_problem(&changelog, &release.version));
    for package in published(&members)? {
        problems.extend(package_problems(package, &release.version)?);
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

/// A version without a section, or with an empty one.
fn changelog_problem(changelog: &str, version: &str) -> Option<String> {
    let heading = format!("## {version}");
    let mut lines = changelog.lines().skip_while(|line| *line != heading).skip(1);
    let section = lines.by_ref().take_while(|line| !line.starts_with("## "));
    let is_empty = section.filter(|line| !line.trim().is_empty()).count() == 0;
    is_empty.then(|| format!("CHANGELOG.md has no section `{heading}`, or an empty one"))
}

/// The crates that are made for others.
pub(super) fn published(members: &Value) -> Result<Vec<&Value>> {
    let packages = metadata::list(members, "packages")?;
    Ok(packages.iter().filter(|package| is_published(package)).collect())
}

fn is_published(package: &Value) -> bool {
    // `publish = false` is an empty list of registries.
    !package
        .get("publish")
        .is_some_and(|registries| registries.as_array().is_some_and(Vec::is_empty))
}

fn package_problems(package: &Value, version: &str) -> Result<Vec<String>> {
    let name = metadata::text(package, "name")?;
    let mut problems = Vec::new();
    if metadata::text(package, "version")? != version {
        problems.push(format!("{name}: the version is not that of the workspace"));
    }
    for field in ["description", "license", "readme"] {
        if metadata::text(package, field).is_err() {
            problems.push(format!("{name}: no `{field}`"));
        }
    }
    for field in ["keywords", "categories"] {
        if metadata::list(package, field).is_ok_and(<[Value]>::is_empty) {
            problems.push(format!("{name}: no `{field}`"));
        }
    }
    for dependency in metadata::list(package, "dependencies")? {
        let is_ours = dependency.get("path").is_some_and(Value::is_string);
        let is_for_tests = dependency.get("kind").is_some_and(|kind| kind == "dev");
        let required = metadata::text(dependency, "req")?;
        if is_ours && !is_for_tests && required != format!("={version}") {
            let used = metadata::text(dependency, "name")?;
            problems.push(format!("{name}: uses {used} `{required}` instead of `={version}`"));
        }
    }
    Ok(problems)
}

/// Every crate is packaged with its README and its licences.
fn packaged_files() -> Result<()> {
    let members = metadata::of_members()?;
    for package in published(&members)? {
        let name = metadata::text(package, "name")?;
        let words =
            ["package", "--quiet", "--list", "--allow-dirty", "--locked", "--package", name];
        let listed = process::capture(&mut process::cargo(&words))?;
        for file in ["README.md"].into_iter().chain(licences::OURS) {
            if !listed.lines().any(|line| line == file) {
                return Err(format!("{name}: `cargo package` leaves out {file}").into());
            }
        }
    }
    Ok(())
}

/// Each kind of package, made with the stand-in and installed.
fn packages(release: &Release, scratch: &Path) -> Result<()> {
    let target = TARGETS.iter().find(|target| target.runs_here() && target.node.is_some());
    let target = target.ok_or("no package is made for this machine")?;
    let path = scratch.join("stand-in");
    let script = Entry::program("stand-in", format!("#!/bin/sh\necho '{GREETING}'\n"));
    fs::write(&path, &script.bytes)?;
    let program = Program { target, path };
    let pages = ManAndCompletions { manuals: Vec::new(), completions: Vec::new() };
    sbom::check(&save(&sbom::bill_of_materials(release)?, scratch)?)?;
    mcp_registry::server_json(release)?;
    oci::image(release, std::slice::from_ref(&program))?;
    let deb = deb::package(release, &program, &pages)?;
    if process::probe(Command::new("dpkg-deb").arg("--version")).is_some() {
        let shown =
            process::capture(Command::new("dpkg-deb").arg("--info").arg(save(&deb, scratch)?))?;
        greets("dpkg-deb", &shown, "Package: toolcrib")?;
    }
    installed_by_pip(&wheel::wheel(release, &program)?, scratch)?;
    let node = [npm::main_package(release)?, npm::platform_package(release, &program)?];
    installed_by_npm(&node, scratch)
}

fn installed_by_pip(wheel: &Artefact, scratch: &Path) -> Result<()> {
    let place = scratch.join("python");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]);
    pip.arg("--root-user-action=ignore").arg("--target").arg(&place).arg(save(wheel, scratch)?);
    process::run(&mut pip)?;
    greets("pip", &process::capture(&mut Command::new(place.join("bin/toolcrib")))?, GREETING)
}

fn installed_by_npm(packages: &[Artefact], scratch: &Path) -> Result<()> {
    let place = scratch.join("node");
    fs::create_dir(&place)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--offline", "--no-audit", "--no-fund", "--no-package-lock"]);
    npm.arg("--prefix").arg(&place).env("npm_config_cache", scratch.join("npm-cache"));
    for package in packages {
        npm.arg(save(package, scratch)?);
    }
    process::run(npm.current_dir(&place))?;
    let program = place.join("node_modules/.bin/toolcrib");
    greets("npm", &process::capture(&mut Command::new(program))?, GREETING)
}

fn save(artefact: &Artefact, directory: &Path) -> Result<std::path::PathBuf> {
    let path = directory.join(&artefact.name);
    fs::write(&path, &artefact.bytes)?;
    Ok(path)
}

fn greets(who: &str, printed: &str, expected: &str) -> Result<()> {
    if printed.contains(expected) {
        Ok(())
    } else {
        Err(format!("{who}: expected `{expected}`, found `{printed}`").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_version_needs_a_section_with_content() {
        let changelog = "# Changelog\n\n## Unreleased\n\n- a\n\n## 1.0.0\n\n- b\n\n## 0.9.0\n\n";
        assert_eq!(changelog_problem(changelog, "1.0.0"), None);
        for version in ["0.9.0", "1.0", "2.0.0"] {
            assert!(changelog_problem(changelog, version).is_some(), "{version}");
        }
    }

    #[test]
    fn what_registries_ask_for_is_checked() {
        let mut package = json!({
            "name": "a", "version": "1.0.0", "description": "x", "license": "MIT", "readme": "README.md",
            "keywords": ["x"], "categories": ["x"], "publish": null,
            "dependencies": [
                {"name": "b", "path": "/b", "kind": null, "req": "=1.0.0"},
                {"name": "testkit", "path": "/t", "kind": "dev", "req": "*"},
            ],
        });
        assert!(is_published(&package));
        assert_eq!(package_problems(&package, "1.0.0").unwrap(), [] as [&str; 0]);
        package["dependencies"][0]["req"] = "*".into();
        package["keywords"] = json!([]);
        package["publish"] = json!([]);
        assert_eq!(package_problems(&package, "1.0.0").unwrap().len(), 2);
        assert!(!is_published(&package));
    }
}
