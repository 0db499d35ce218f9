//! Lists the ignored files only, for a second search when the first one found nothing.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use crate::ignore_rules::RuleScope;
use crate::listing::{ListedDirectory, ListedKind, Listing};
use crate::walk::{Task, Walk, Worker, store_directory, walk_pending};

/// Lists the files that `listing` lacks because they are ignored. `walk` has the parameters of `listing`, but
/// includes ignored files.
pub fn walk_ignored(walk: &Walk<'_>, listing: &Listing) -> Listing {
    let mut partial: Vec<&ListedDirectory> =
        listing.directories_below_top().filter(|listed| listed.pruned.ignored() > 0).collect();
    partial.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    // The first directory links to all of them at any depth. Each has its own path.
    let mut first = ListedDirectory { path: walk.start.to_owned(), ..ListedDirectory::default() };
    let (mut directories, mut pending) = (vec![Arc::default()], Vec::new());
    let mut worker = Worker::new(walk);
    for old in partial {
        if walk.stop.is_over() {
            break;
        }
        let directory = u32::try_from(directories.len()).unwrap_or(u32::MAX);
        first.push(OsStr::new(""), ListedKind::Directory(directory));
        let (path, hidden) = (old.path.clone(), old.hidden);
        let task = Task { directory, path, hidden, rules: RuleScope::default() };
        let (listed, subdirectories) = worker.list(&task, None);
        let (listed, subdirectories) = without(old, listed, subdirectories);
        directories.push(Arc::default());
        store_directory(
            &mut directories,
            &mut pending,
            task,
            listed,
            subdirectories,
            None,
            &mut HashMap::new(),
        );
    }
    directories[0] = Arc::new(first);
    let (directories, complete) = walk_pending(walk, directories, pending);
    let complete = complete && listing.complete && !walk.stop.is_over();
    Listing { directories: Arc::new(directories), complete, ..Listing::default() }
}

/// Removes the entries that `old` already has.
fn without(
    old: &ListedDirectory,
    mut all: ListedDirectory,
    subdirectories: Vec<(OsString, RuleScope)>,
) -> (ListedDirectory, Vec<(OsString, RuleScope)>) {
    let (names, entries) = (std::mem::take(&mut all.names), std::mem::take(&mut all.entries));
    let whole = ListedDirectory { names, entries, ..ListedDirectory::default() };
    for entry in whole.entries.iter().filter(|entry| !old.contains(whole.name(**entry))) {
        all.push(whole.name(*entry), entry.kind);
    }
    let subdirectories =
        subdirectories.into_iter().filter(|(name, _)| !old.contains(name)).collect();
    (all, subdirectories)
}
