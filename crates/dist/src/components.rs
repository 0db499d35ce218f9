//! The crates in the program, for the bill of materials and the licence texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::{metadata, workspace};

use super::target::TARGETS;

/// A crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Component {
    pub(super) name: String,
    pub(super) version: String,
    /// SPDX expression.
    pub(super) licence: Option<String>,
    /// SHA-256 of the published crate; none for ours.
    pub(super) checksum: Option<String>,
    /// Where its sources are on this machine.
    pub(super) directory: PathBuf,
    /// Runs in the compiler only.
    pub(super) is_macro: bool,
    /// Package URLs of the crates that it uses.
    pub(super) uses: Vec<String>,
}

impl Component {
    /// Its name for tools that look up vulnerabilities.
    pub(super) fn package_url(&self) -> String {
        package_url(&self.name, &self.version)
    }
}

fn package_url(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}

/// The product and everything that is linked into it or expanded into it, in the order of their names.
pub(super) fn of_product() -> Result<Vec<Component>> {
    let triples: Vec<String> = TARGETS.iter().map(|target| target.triple.to_owned()).collect();
    let checksums = checksums(&fs::read_to_string(workspace::root().join("Cargo.lock"))?)?;
    reachable(&metadata::resolved(&triples)?, "toolcrib-cli", &checksums)
}

/// By name and version.
type Checksums = BTreeMap<(String, String), String>;

fn checksums(lock: &str) -> Result<Checksums> {
    let lock: toml::Table = lock.parse()?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let packages = packages.ok_or("Cargo.lock has no packages")?;
    let text = |package: &toml::Value, key| Some(package.get(key)?.as_str()?.to_owned());
    Ok(packages
        .iter()
        .filter_map(|package| {
            let key = (text(package, "name")?, text(package, "version")?);
            Some((key, text(package, "checksum")?))
        })
        .collect())
}

fn reachable(graph: &Value, product: &str, checksums: &Checksums) -> Result<Vec<Component>> {
    let by_id = |list: &'static str, of: &'static str| -> Result<BTreeMap<&str, &Value>> {
        let holder = if of.is_empty() { Some(graph) } else { graph.get(of) };
        let values = metadata::list(holder.unwrap_or(&Value::Null), list)?;
        values.iter().map(|value| Ok((metadata::text(value, "id")?, value))).collect()
    };
    let (packages, nodes) = (by_id("packages", "")?, by_id("nodes", "resolve")?);
    let named =
        |package: &&&Value| metadata::text(package, "name").is_ok_and(|name| name == product);
    let start = packages.values().find(named).ok_or("the product is not in the graph")?;
    let mut pending = vec![metadata::text(start, "id")?];
    let mut seen = BTreeSet::new();
    let mut components = Vec::new();
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        let uses = used_by(nodes.get(id).ok_or("a package is not in the graph")?)?;
        let package = packages.get(id).ok_or("a node of the graph is no package")?;
        components.push(component(package, &uses, &packages, checksums)?);
        pending.extend(uses);
    }
    components.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    Ok(components)
}

/// Without tests and build scripts: of them, nothing is in the program.
fn used_by(node: &Value) -> Result<Vec<&str>> {
    let is_normal = |kind: &Value| kind.get("kind").is_some_and(Value::is_null);
    let mut uses = Vec::new();
    for dependency in metadata::list(node, "deps")? {
        if metadata::list(dependency, "dep_kinds")?.iter().any(is_normal) {
            uses.push(metadata::text(dependency, "pkg")?);
        }
    }
    Ok(uses)
}

fn component(
    package: &Value,
    uses: &[&str],
    packages: &BTreeMap<&str, &Value>,
    checksums: &Checksums,
) -> Result<Component> {
    let text = |key| metadata::text(package, key).map(str::to_owned);
    let (name, version) = (text("name")?, text("version")?);
    let is_macro = metadata::list(package, "targets")?.iter().any(|target| {
        let kinds = target.get("kind").and_then(Value::as_array);
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "proc-macro"))
    });
    let used_url = |id: &&str| -> Result<String> {
        let used = packages.get(id).ok_or("a used package is missing")?;
        Ok(package_url(metadata::text(used, "name")?, metadata::text(used, "version")?))
    };
    let mut uses = uses.iter().map(used_url).collect::<Result<Vec<String>>>()?;
    uses.sort();
    let manifest = text("manifest_path")?;
    Ok(Component {
        checksum: checksums.get(&(name.clone(), version.clone())).cloned(),
        licence: text("license").ok(),
        directory: Path::new(&manifest).parent().unwrap_or(Path::new("/")).to_owned(),
        name,
        version,
        is_macro,
        uses,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_in_the_program_is_listed() {
        let package = |name: &str, kind: &str| {
            json!({
                "id": name, "name": name, "version": "1.0.0", "license": "MIT",
                "manifest_path": format!("/src/{name}/Cargo.toml"), "targets": [{"kind": [kind]}],
            })
        };
        let uses =
            |name: &str, kind: Option<&str>| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let graph = json!({
            "packages": [
                package("product", "bin"), package("used", "lib"), package("derive", "proc-macro"),
                package("test-only", "lib"), package("cc", "lib"), package("stranger", "lib"),
            ],
            "resolve": {"nodes": [
                {"id": "product", "deps": [uses("used", None), uses("test-only", Some("dev"))]},
                {"id": "used", "deps": [uses("derive", None), uses("cc", Some("build"))]},
                {"id": "derive", "deps": []}, {"id": "test-only", "deps": []},
                {"id": "cc", "deps": []}, {"id": "stranger", "deps": []},
            ]},
        });
        let lock = "[[package]]\nname = \"used\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n";
        let found = reachable(&graph, "product", &checksums(lock).unwrap()).unwrap();
        let names: Vec<&str> = found.iter().map(|component| component.name.as_str()).collect();
        assert_eq!(names, ["derive", "product", "used"]);
        assert!(found[0].is_macro && !found[2].is_macro);
        assert_eq!(found[1].uses, ["pkg:cargo/used@1.0.0"]);
        assert_eq!(found[2].checksum.as_deref(), Some("abc"));
        assert_eq!(found[2].directory, Path::new("/src/used"));
    }
}
