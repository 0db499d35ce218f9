//! Checks the order of the modules within each crate.
//!
//! `xtask/module-order.toml` has the top-level modules of each crate in groups, top first. A module uses only
//! modules of later groups, so there is no cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::metadata;

use super::imports::{Import, imports_of, reexports_of};

const ORDER_FILE: &str = "xtask/module-order.toml";

/// The order of modules, by crate: groups, top first.
type Order = BTreeMap<String, Vec<Vec<String>>>;

/// A use of one top-level module by another.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    from: String,
    to: String,
    /// The file, and the path in it.
    example: String,
}

/// Returns a line for each module that is missing from the order, or that uses a module above it.
pub(super) fn problems(workspace: &Path, packages: &Value) -> Result<Vec<String>> {
    let order: Order = toml::from_str(&fs::read_to_string(workspace.join(ORDER_FILE))?)?;
    let mut problems = Vec::new();
    let mut names = BTreeSet::new();
    for package in metadata::list(packages, "packages")? {
        let name = metadata::text(package, "name")?;
        let manifest = PathBuf::from(metadata::text(package, "manifest_path")?);
        let source = manifest.parent().ok_or("a manifest without a directory")?.join("src");
        let groups = order.get(name).map(Vec::as_slice).unwrap_or_default();
        let (modules, edges) = module_graph(&source)?;
        problems.extend(problems_of(name, groups, &modules, &edges));
        names.insert(name);
    }
    let unknown = order.keys().filter(|name| !names.contains(name.as_str()));
    problems.extend(unknown.map(|name| format!("{name} is in {ORDER_FILE}, but is no crate")));
    Ok(problems)
}

fn problems_of(
    name: &str,
    groups: &[Vec<String>],
    modules: &BTreeSet<String>,
    edges: &BTreeSet<Edge>,
) -> Vec<String> {
    let position = |module: &str| groups.iter().position(|group| group.iter().any(|m| m == module));
    let missing = modules.iter().filter(|module| position(module).is_none());
    let missing = missing.map(|module| {
        let uses = edges.iter().filter(|edge| edge.from == **module);
        let highest = uses.filter_map(|edge| position(&edge.to)).min();
        let place = highest.and_then(|highest| groups.get(highest));
        let place =
            place.map_or("anywhere".to_owned(), |group| format!("above {}", group.join(", ")));
        format!("{name}: module `{module}` is not in {ORDER_FILE}: add it {place}")
    });
    let gone = groups.iter().flatten().filter(|module| !modules.contains(*module));
    let gone =
        gone.map(|module| format!("{name}: {ORDER_FILE} names `{module}`, which is no module"));
    let upward = edges.iter().filter(|edge| {
        position(&edge.from).zip(position(&edge.to)).is_some_and(|(from, to)| from >= to)
    });
    let upward = upward.map(|Edge { from, to, example }| {
        format!("{name}: `{from}` may not use `{to}`, which is not below it ({example})")
    });
    missing.chain(gone).chain(upward).collect()
}

/// The top-level modules of a crate, and one example of each use between them.
fn module_graph(source: &Path) -> Result<(BTreeSet<String>, BTreeSet<Edge>)> {
    let mut files = Vec::new();
    collect_files(source, &mut files)?;
    let modules: BTreeSet<String> =
        files.iter().filter_map(|file| module_path(source, file)?.into_iter().next()).collect();
    let mut reexports = BTreeMap::new();
    for root in
        ["lib.rs", "main.rs"].map(|name| source.join(name)).iter().filter(|root| root.exists())
    {
        reexports.extend(reexports_of(&fs::read_to_string(root)?)?);
    }
    let mut edges: BTreeMap<(String, String), String> = BTreeMap::new();
    for file in &files {
        let Some(path) = module_path(source, file).filter(|path| !path.is_empty()) else {
            continue;
        };
        for Import { segments } in imports_of(&fs::read_to_string(file)?, &path)? {
            let Some(first) = segments.first() else { continue };
            let used = if modules.contains(first) { Some(first) } else { reexports.get(first) };
            if let Some(used) = used.filter(|used| **used != path[0] && modules.contains(*used)) {
                let shown = file.strip_prefix(source).unwrap_or(file).display();
                let example = format!("{shown}: {}", segments.join("::"));
                edges.entry((path[0].clone(), used.clone())).or_insert(example);
            }
        }
    }
    let edges = edges.into_iter().map(|((from, to), example)| Edge { from, to, example });
    Ok((modules, edges.collect()))
}

/// The names of the modules around and in a file. Empty for the root. `None` for a program of its own and for a
/// file of tests.
fn module_path(source: &Path, file: &Path) -> Option<Vec<String>> {
    let relative = file.strip_prefix(source).ok()?.with_extension("");
    let names: Vec<String> =
        relative.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let is_test = |name: &String| name == "tests" || name.ends_with("_tests");
    match names.as_slice() {
        [root] if root == "lib" || root == "main" => Some(Vec::new()),
        [bin, ..] if bin == "bin" => None,
        names if names.iter().any(is_test) => None,
        _ => Some(names),
    }
}

fn collect_files(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str) -> Edge {
        Edge { from: from.to_owned(), to: to.to_owned(), example: format!("{from}.rs") }
    }

    fn check(groups: &[&[&str]], modules: &[&str], edges: Vec<Edge>) -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let groups: Vec<Vec<String>> = groups.iter().map(|group| owned(group)).collect();
        let modules = modules.iter().map(|&name| name.to_owned()).collect();
        problems_of("crate", &groups, &modules, &edges.into_iter().collect())
    }

    #[test]
    fn accepts_uses_of_later_groups_only() {
        let groups: &[&[&str]] = &[&["top"], &["left", "right"], &["base"]];
        let modules = ["top", "left", "right", "base"];
        let fine = vec![edge("top", "base"), edge("left", "base"), edge("top", "right")];
        assert_eq!(check(groups, &modules, fine), [] as [&str; 0]);
        let wrong = vec![edge("base", "left"), edge("left", "right")];
        assert_eq!(
            check(groups, &modules, wrong),
            [
                "crate: `base` may not use `left`, which is not below it (base.rs)",
                "crate: `left` may not use `right`, which is not below it (left.rs)",
            ]
        );
    }

    #[test]
    fn names_missing_and_extra_modules() {
        let found = check(&[&["base", "gone"]], &["base", "new"], vec![edge("new", "base")]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].ends_with("add it above base, gone"), "{found:?}");
        assert!(found[1].ends_with("names `gone`, which is no module"), "{found:?}");
    }
}
