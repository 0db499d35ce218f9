//! The packages of our dependency graph, from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::metadata;

/// All packages in the graph, sorted by name and version.
pub(super) struct Graph {
    pub(super) packages: Vec<Package>,
}

pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// The SPDX expression of its manifest.
    pub(super) licence: Option<String>,
    /// The source; `None` for packages of this repository.
    pub(super) source: Option<String>,
    /// Dependencies with a wildcard version, except path dependencies, which are our own crates.
    pub(super) wildcards: Vec<String>,
}

impl Graph {
    pub(super) fn parse(metadata: &Value) -> Result<Self> {
        // `packages` may contain more than the graph of the requested platforms.
        let nodes = metadata::list(metadata.get("resolve").unwrap_or(&Value::Null), "nodes")?;
        let ids = nodes.iter().map(|node| metadata::text(node, "id"));
        let ids: BTreeSet<&str> = ids.collect::<Result<_>>()?;
        let mut packages = Vec::new();
        for package in metadata::list(metadata, "packages")? {
            if ids.contains(metadata::text(package, "id")?) {
                packages.push(Package::parse(package)?);
            }
        }
        packages.sort_by_key(Package::spec);
        Ok(Self { packages })
    }

    /// The registry of most packages. It has no fixed name, so that a mirror works too.
    pub(super) fn default_registry(&self) -> Option<&str> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let sources = self.packages.iter().filter_map(|package| package.source.as_deref());
        for source in sources.filter(|source| is_registry(source)) {
            *counts.entry(source).or_default() += 1;
        }
        counts.into_iter().max_by_key(|&(_, count)| count).map(|(source, _)| source)
    }
}

impl Package {
    /// The notation of deny.toml.
    pub(super) fn spec(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    fn parse(package: &Value) -> Result<Self> {
        let optional = |key| package.get(key).and_then(Value::as_str).map(str::to_owned);
        let mut wildcards = Vec::new();
        for dependency in metadata::list(package, "dependencies")? {
            let has_path = dependency.get("path").is_some_and(Value::is_string);
            if !has_path && metadata::text(dependency, "req")? == "*" {
                wildcards.push(metadata::text(dependency, "name")?.to_owned());
            }
        }
        Ok(Self {
            name: metadata::text(package, "name")?.to_owned(),
            version: metadata::text(package, "version")?.to_owned(),
            licence: optional("license"),
            source: optional("source"),
            wildcards,
        })
    }
}

/// Whether a source is a git or a sparse registry index.
fn is_registry(source: &str) -> bool {
    source.starts_with("registry+") || source.starts_with("sparse+")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, source: Option<&str>) -> Value {
        json!({
            "id": name, "name": name, "version": "1.0.0", "license": "MIT", "source": source,
            "dependencies": [
                {"name": "any", "req": "*"},
                {"name": "ours", "req": "*", "path": "/x"},
                {"name": "serde", "req": "^1"},
            ],
        })
    }

    #[test]
    fn ignores_packages_outside_the_graph() {
        let metadata = json!({
            "packages": [
                package("b", Some("registry+a")),
                package("windows", Some("registry+b")),
                package("a", Some("registry+a")),
                package("ours", None),
                package("forked", Some("git+c")),
            ],
            "resolve": {"nodes": [{"id": "a"}, {"id": "b"}, {"id": "ours"}, {"id": "forked"}]},
        });
        let graph = Graph::parse(&metadata).unwrap();
        let specs: Vec<String> = graph.packages.iter().map(Package::spec).collect();
        assert_eq!(specs, ["a@1.0.0", "b@1.0.0", "forked@1.0.0", "ours@1.0.0"]);
        assert_eq!(graph.default_registry(), Some("registry+a"));
        assert_eq!(graph.packages[0].wildcards, ["any"]);
    }
}
