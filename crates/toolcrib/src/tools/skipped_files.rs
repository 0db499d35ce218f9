//! Files that Glob and Grep did not search, and the messages about them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcrib_search::Pruned;

use crate::cx::{Cx, SearchScope};
use crate::phrases::{counted, it_or_them};

/// The files that a search skipped.
pub(super) struct SkippedFiles<'a> {
    pub(super) cx: &'a Cx<'a>,
    pub(super) scope: &'a SearchScope,
    pub(super) pruned: &'a Pruned,
}

impl SkippedFiles<'_> {
    /// The number of ignored entries and some of their names: `3 ignored entries (dist/, a.log, …)`.
    pub(super) fn ignored(&self) -> Option<String> {
        let all = self.pruned.ignored();
        (all > 0).then(|| {
            let names = self.names(&self.pruned.ignored_names, all);
            format!("{} ({names})", counted(all, "ignored entry"))
        })
    }

    /// The pronoun for the ignored entries.
    pub(super) fn pronoun(&self) -> &'static str {
        it_or_them(self.pruned.ignored())
    }

    /// Notes about directories that could not be searched.
    pub(super) fn unsearched_notes(&self) -> Vec<String> {
        let mut unsearched_notes = Vec::new();
        let Pruned { unreadable, unreadable_names, too_deep, .. } = self.pruned;
        if *unreadable > 0 {
            let names = self.names(unreadable_names, *unreadable);
            unsearched_notes.push(format!("{} cannot be read: {names}", directories(*unreadable)));
        }
        if *too_deep > 0 {
            unsearched_notes.push(format!("{} too deep to be opened", directories(*too_deep)));
        }
        let hidden = self.hidden();
        if !hidden.is_empty() {
            let names = self.names(&hidden, hidden.len() as u64);
            let paths = counted(hidden.len() as u64, "hidden path");
            unsearched_notes.push(format!("{paths} skipped: {names}"));
        }
        unsearched_notes
    }

    /// Existing hidden paths in the searched directory, relative to the root.
    fn hidden(&self) -> Vec<PathBuf> {
        let SearchScope { tree, hidden, .. } = self.scope;
        let relative = hidden.iter().filter_map(|path| path.strip_prefix(tree.path()).ok());
        let beneath = relative.filter(|path| path.starts_with(self.scope.start()));
        beneath.filter(|path| tree.may_have(path)).map(Path::to_owned).collect()
    }

    /// The same numbers as metadata.
    pub(super) fn facts(&self) -> Value {
        json!({
            "ignored_files": self.pruned.ignored_files,
            "ignored_directories": self.pruned.ignored_directories,
            "unreadable_directories": self.pruned.unreadable,
            "too_deep": self.pruned.too_deep,
        })
    }

    /// The first names, and an ellipsis if there are more.
    pub(super) fn names(&self, paths: &[PathBuf], all: u64) -> String {
        const NAMED: usize = 3;
        let shown = paths.iter().take(NAMED).map(|path| self.show(path));
        let mut names = shown.collect::<Vec<_>>().join(", ");
        if all > NAMED as u64 {
            names += ", …";
        }
        names
    }

    fn show(&self, path: &Path) -> String {
        let slash = if path.as_os_str().as_encoded_bytes().ends_with(b"/") { "/" } else { "" };
        self.cx.show_in(&self.scope.tree, path).trim_end_matches('/').to_owned() + slash
    }
}

fn directories(count: u64) -> String {
    counted(count, "directory")
}
