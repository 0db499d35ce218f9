//! Packages for npm: one for each platform with the program, and one that starts it and has the TypeScript API.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Map, Value, json};
use toolcrib_devtools::error::Result;
use toolcrib_devtools::{node, process, workspace};

use super::Artefact;
use super::archive::{files_below, gzip, tar};
use super::archive_entry::Entry;
use super::build::Program;
use super::licences;
use super::release_info::{Release, SUMMARY};
use super::target::TARGETS;

/// Where the sources of the main package are.
const SOURCES: &str = "packaging/npm";

/// The package of one platform.
pub(super) fn platform_package(release: &Release, program: &Program) -> Result<Artefact> {
    let cpu = program.target.node.ok_or("this target has no npm package")?;
    let manifest = json!({
        "name": platform_name(cpu),
        "version": release.version,
        "description": format!("The program of the package toolcrib for linux-{cpu}"),
        "license": "MIT OR Apache-2.0",
        "os": ["linux"],
        "cpu": [cpu],
        "preferUnplugged": true,
    });
    let mut entries = licences::entries()?;
    entries.push(Entry::program("bin/toolcrib", program.bytes()?));
    package(release, &format!("toolcrib-linux-{cpu}"), &manifest, entries)
}

/// The package that people name. It depends on those of the platforms, of which npm installs the one that fits.
pub(super) fn main_package(release: &Release) -> Result<Artefact> {
    let mut entries = files_below(&sources())?;
    entries.retain(|entry| entry.path == "README.md" || entry.path.starts_with("bin/"));
    entries.extend(compiled_modules()?);
    for name in licences::OURS {
        entries.push(Entry::file(name, fs::read(workspace::root().join(name))?));
    }
    package(release, "toolcrib", &main_manifest(&source_manifest()?, &release.version), entries)
}

/// The modules and their types, compiled by the compiler that the manifest names. They are not in the repository, so
/// they cannot be out of date.
fn compiled_modules() -> Result<Vec<Entry>> {
    let compiler = node::install_manifest("npm-package", &sources().join("package.json"))?;
    let output = tempfile::tempdir()?;
    let mut tsc = Command::new(compiler.file(".bin/tsc"));
    tsc.arg("--project").arg(sources().join("tsconfig.json"));
    tsc.arg("--typeRoots").arg(compiler.file("@types")).arg("--outDir").arg(output.path());
    process::run(&mut tsc)?;
    let mut entries = files_below(output.path())?;
    for entry in &mut entries {
        entry.path = format!("dist/{}", entry.path);
    }
    Ok(entries)
}

/// The manifest in the repository, which has no version, and dependencies and scripts for development only.
pub(super) fn source_manifest() -> Result<Map<String, Value>> {
    let path = sources().join("package.json");
    Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
}

fn sources() -> PathBuf {
    workspace::root().join(SOURCES)
}

fn main_manifest(source: &Map<String, Value>, version: &str) -> Value {
    let mut manifest = source.clone();
    for development in ["scripts", "devDependencies"] {
        manifest.remove(development);
    }
    manifest.insert("version".into(), version.into());
    manifest.insert("description".into(), SUMMARY.into());
    let cpus = TARGETS.iter().filter_map(|target| target.node);
    let platforms = cpus.map(|cpu| (platform_name(cpu), Value::from(version)));
    manifest.insert("optionalDependencies".into(), platforms.collect::<Map<_, _>>().into());
    manifest.into()
}

fn platform_name(cpu: &str) -> String {
    format!("@toolcrib/linux-{cpu}")
}

/// The archive that `npm publish` takes.
fn package(
    release: &Release,
    name: &str,
    manifest: &Value,
    mut entries: Vec<Entry>,
) -> Result<Artefact> {
    let manifest = serde_json::to_string_pretty(manifest)? + "\n";
    entries.push(Entry::file("package.json", manifest));
    for entry in &mut entries {
        entry.path = format!("package/{}", entry.path);
    }
    let bytes = gzip(&tar(entries, release.time)?)?;
    Ok(Artefact { name: format!("npm-{name}-{}.tgz", release.version), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_package_depends_on_the_same_version_of_each_platform() {
        let manifest = main_manifest(&source_manifest().unwrap(), "1.2.3");
        assert_eq!(manifest["version"], "1.2.3");
        let platforms = json!({"@toolcrib/linux-x64": "1.2.3", "@toolcrib/linux-arm64": "1.2.3"});
        assert_eq!(manifest["optionalDependencies"], platforms);
    }

    #[test]
    fn no_script_runs_at_installation() {
        let manifest = main_manifest(&source_manifest().unwrap(), "1.2.3");
        assert_eq!(manifest.get("scripts"), None);
        assert_eq!(manifest.get("dependencies"), None);
        assert_eq!(manifest.get("devDependencies"), None);
    }

    #[test]
    fn every_peer_dependency_is_optional() {
        let manifest = source_manifest().unwrap();
        let (peers, meta) = (&manifest["peerDependencies"], &manifest["peerDependenciesMeta"]);
        for name in peers.as_object().unwrap().keys() {
            assert_eq!(meta[name]["optional"], true, "{name}");
        }
    }
}
