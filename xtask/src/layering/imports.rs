//! Finds the paths that a source file uses, outside tests.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};
use toolcrib_devtools::error::Result;

/// A path within the crate, without its last `crate::`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) segments: Vec<String>,
}

/// The paths that a file uses. `module` is the path of the file's module.
pub(super) fn imports_of(source: &str, module: &[String]) -> Result<Vec<Import>> {
    let file = syn::parse_file(source)?;
    let mut collector = Collector { module: module.to_vec(), imports: Vec::new() };
    collector.visit_file(&file);
    Ok(collector.imports)
}

/// The items that the root of a crate re-exports, with their top-level modules.
pub(super) fn reexports_of(source: &str) -> Result<BTreeMap<String, String>> {
    let mut reexports = BTreeMap::new();
    for item in syn::parse_file(source)?.items {
        let Item::Use(item) = item else { continue };
        if matches!(item.vis, Visibility::Inherited) {
            continue;
        }
        for path in leaves(&item.tree, &[]) {
            let path: Vec<&String> =
                path.iter().filter(|name| *name != "crate" && *name != "self").collect();
            if let (Some(&module), Some(&name)) = (path.first(), path.last()) {
                reexports.insert(name.clone(), module.clone());
            }
        }
    }
    Ok(reexports)
}

/// Every path of a tree of imports.
fn leaves(tree: &UseTree, prefix: &[String]) -> Vec<Vec<String>> {
    let with = |name: &syn::Ident| {
        let mut path = prefix.to_vec();
        path.push(name.to_string());
        path
    };
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &with(&path.ident)),
        UseTree::Name(name) => vec![with(&name.ident)],
        UseTree::Rename(rename) => vec![with(&rename.ident)],
        UseTree::Glob(_) => vec![prefix.to_vec()],
        UseTree::Group(group) => group.items.iter().flat_map(|tree| leaves(tree, prefix)).collect(),
    }
}

struct Collector {
    module: Vec<String>,
    imports: Vec<Import>,
}

impl Collector {
    /// Records a path that begins with `crate`, `self` or `super`.
    fn record(&mut self, path: &[String]) {
        let mut base = match path.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => self.module.clone(),
            _ => return,
        };
        for name in path {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => {
                    base.pop();
                }
                name => base.push(name.to_owned()),
            }
        }
        self.imports.push(Import { segments: base });
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).iter().any(is_test_only) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for path in leaves(&item.tree, &[]) {
            self.record(&path);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 {
            self.record(&names);
        }
        visit::visit_path(self, path);
    }
}

fn is_test_only(attribute: &Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    list.path.is_ident("cfg") && list.tokens.to_string() == "test"
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(source: &str, module: &[&str]) -> Vec<String> {
        let module: Vec<String> = module.iter().map(|&name| name.to_owned()).collect();
        let imports = imports_of(source, &module).unwrap();
        imports.iter().map(|import| import.segments.join("::")).collect()
    }

    #[test]
    fn finds_imports_and_paths() {
        let source = "
            use crate::a::{B, c::D as E, f::*};
            use super::g;
            fn h(i: crate::j::K) { super::l::m(i) }
            mod n { use super::super::o; }
        ";
        assert_eq!(
            imports(source, &["p", "q"]),
            ["a::B", "a::c::D", "a::f", "p::g", "j::K", "p::l::m", "p::o"]
        );
    }

    #[test]
    fn skips_tests_and_other_crates() {
        let source = "
            use std::fmt;
            #[cfg(test)] use crate::a;
            #[cfg(test)] #[path = \"t.rs\"] mod tests { use crate::b; }
        ";
        assert_eq!(imports(source, &["c"]), [] as [&str; 0]);
    }

    #[test]
    fn reads_reexports() {
        let source = "pub use self::a::{B, c::D}; pub(crate) use crate::e::F; use g::H;";
        let found = reexports_of(source).unwrap();
        let expected = [("B", "a"), ("D", "a"), ("F", "e")];
        assert_eq!(
            found,
            expected.map(|(name, module)| (name.to_owned(), module.to_owned())).into()
        );
    }
}
