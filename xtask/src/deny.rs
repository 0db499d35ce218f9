//! `cargo xtask deny`: checks licences, duplicates and sources of our dependencies against deny.toml.
//!
//! cargo-deny takes minutes to compile, so CI does not use it. This task reads the same deny.toml and the
//! same graph, supports the settings that we use, and rejects all others. `cargo deny check` gives the same
//! result. Advisories need a network and cargo-deny itself.

mod config;
mod graph;
mod licence;

use std::collections::BTreeMap;
use std::fs;

use toolcrib_devtools::error::Result;
use toolcrib_devtools::{metadata, process, workspace};

use config::Config;
use graph::{Graph, Package};

/// Checks everything except the advisories.
pub(crate) fn check() -> Result<()> {
    let config = Config::parse(&fs::read_to_string(workspace::root().join("deny.toml"))?)?;
    let graph = Graph::parse(&metadata::resolved(&config.platforms)?)?;
    for skip in unneeded_skips(&config, &graph) {
        println!("note: {skip} no longer exists: remove it from deny.toml");
    }
    let problems = problems(&config, &graph);
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("{} packages: licences, duplicates and sources are fine", graph.packages.len());
        Ok(())
    } else {
        Err("dependencies violate deny.toml: see above".into())
    }
}

pub(crate) fn advisories() -> Result<()> {
    if process::probe(&mut process::cargo(&["deny", "--version"])).is_some() {
        process::run(&mut process::cargo(&["deny", "--all-features", "check", "advisories"]))
    } else {
        Err("advisories need cargo-deny: `cargo install --locked cargo-deny`, then retry".into())
    }
}

fn problems(config: &Config, graph: &Graph) -> Vec<String> {
    let mut problems = Vec::new();
    for package in &graph.packages {
        problems.extend(licence_problem(config, package));
        problems.extend(source_problem(graph.default_registry(), package));
        problems.extend(package.wildcards.iter().map(|used| {
            format!("{}: `{used} = \"*\"` accepts any version: name one", package.name)
        }));
    }
    problems.extend(duplicates(config, graph));
    problems
}

fn licence_problem(config: &Config, package: &Package) -> Option<String> {
    let Package { name, version, .. } = package;
    let Some(expression) = &package.licence else {
        return Some(format!("{name} {version}: names no licence (SPDX): do not depend on it"));
    };
    match licence::satisfied(expression, |licence| config.licences.contains(licence)) {
        Ok(true) => None,
        Ok(false) => Some(format!("{name} {version}: licence `{expression}` is not allowed")),
        Err(why) => Some(format!("{name} {version}: licence `{expression}`: {why}")),
    }
}

fn source_problem(default_registry: Option<&str>, package: &Package) -> Option<String> {
    let source = package.source.as_deref()?;
    if Some(source) == default_registry {
        return None;
    }
    let from = if source.starts_with("git+") {
        "from git"
    } else {
        "from a registry other than the default"
    };
    Some(format!("{} {}: {from}: use a published version", package.name, package.version))
}

fn duplicates(config: &Config, graph: &Graph) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in graph.packages.iter().filter(|package| !config.skips(package)) {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    versions
        .into_iter()
        .map(|(name, versions)| {
            let versions = versions.join(" and ");
            format!(
                "{name} exists as {versions}: `cargo tree --workspace -i {name}@VERSION` says \
                 for whom; agree on one, or skip one in deny.toml with the reason"
            )
        })
        .collect()
}

fn unneeded_skips<'a>(config: &'a Config, graph: &Graph) -> Vec<&'a str> {
    let is_there = |skip: &str| graph.packages.iter().any(|package| package.spec() == skip);
    config.skips.iter().map(String::as_str).filter(|skip| !is_there(skip)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = "registry+https://registry.example/index";

    fn package(name: &str, version: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: Some("MIT".to_owned()),
            source: Some(REGISTRY.to_owned()),
            wildcards: Vec::new(),
        }
    }

    /// The problems of one package among good ones.
    fn problems_with(bad: Package) -> Vec<String> {
        let config = Config {
            platforms: Vec::new(),
            licences: ["MIT".to_owned()].into(),
            skips: vec!["syn@2.0.1".to_owned()],
        };
        let mut packages = vec![package("serde", "1.0.0"), package("syn", "3.0.0"), bad];
        packages.sort_by_key(Package::spec);
        problems(&config, &Graph { packages })
    }

    #[test]
    fn a_good_graph_has_no_problem() {
        assert_eq!(problems_with(package("memchr", "2.0.0")), [] as [&str; 0]);
        let ours = Package { source: None, ..package("toolcrib", "0.1.0") };
        assert_eq!(problems_with(ours), [] as [&str; 0]);
    }

    #[test]
    fn rejects_a_licence_that_is_not_listed() {
        let bad = Package { licence: Some("GPL-3.0".to_owned()), ..package("x", "1.0.0") };
        assert_eq!(problems_with(bad), ["x 1.0.0: licence `GPL-3.0` is not allowed"]);
        let bad = Package { licence: None, ..package("x", "1.0.0") };
        assert_eq!(problems_with(bad).len(), 1);
    }

    #[test]
    fn rejects_a_second_version_without_a_skip() {
        let problems = problems_with(package("serde", "0.9.0"));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("serde exists as 0.9.0 and 1.0.0: "));
        assert_eq!(problems_with(package("syn", "2.0.1")), [] as [&str; 0]);
    }

    #[test]
    fn rejects_other_sources_than_the_default_registry() {
        let from = |source: &str| {
            problems_with(Package { source: Some(source.to_owned()), ..package("x", "1.0.0") })
        };
        assert_eq!(
            from("git+https://example.com/x"),
            ["x 1.0.0: from git: use a published version"]
        );
        assert_eq!(
            from("registry+https://other.example/index"),
            ["x 1.0.0: from a registry other than the default: use a published version"]
        );
    }

    #[test]
    fn rejects_a_wildcard_version() {
        let bad = Package { wildcards: vec!["serde".to_owned()], ..package("x", "1.0.0") };
        assert_eq!(problems_with(bad), ["x: `serde = \"*\"` accepts any version: name one"]);
    }
}
