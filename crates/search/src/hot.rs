//! The file table of a process that lives long: what was listed for one question serves the next.
//!
//! It is exact without anybody watching. Whatever appears, goes or is renamed in a directory changes the
//! directory's stamp, and a rule that changes changes the stamp of its file; so at each question every
//! directory and every ignore file is asked for its stamp, and those that are not what they were are
//! listed again. That takes a twentieth of a walk. What files say is never kept here.
//!
//! This is also where a watch would tell which directories to ask, and where an index would hang.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use toolcrib_fs::Tree;

use crate::listing::{Listed, Listing};
use crate::ordered::in_order;
use crate::walk::{Walk, list_again, walk};

/// Listings of whole roots, the one used last at the end.
#[derive(Debug, Default)]
pub struct Tables {
    kept: Mutex<Vec<Kept>>,
}

#[derive(Debug)]
struct Kept {
    root: PathBuf,
    directories: Arc<Vec<Listed>>,
}

/// So many roots are kept.
const ROOTS: usize = 4;

/// A root of more directories is walked each time: to keep it would take too much memory.
const MAX_DIRECTORIES: usize = 100_000;

impl Tables {
    /// Lists as [`walk`] does, and quicker where the root was listed before.
    pub fn list(&self, asked: &Walk<'_>) -> Listing {
        // What is usually left out is not in a table.
        if asked.ignored || !asked.named.is_empty() {
            return walk(asked);
        }
        let Some(kept) = self.take(asked.tree) else { return self.list_new(asked) };
        let Some(directories) = refresh(asked, kept) else { return self.list_new(asked) };
        self.keep(asked.tree, directories.clone());
        let starts_at = |listed: &Listed| !listed.gone && listed.path == asked.start;
        match directories.iter().position(starts_at) {
            // Beneath a hidden directory that was named, nothing is hidden: the table has it otherwise.
            Some(top) if !directories[top].hidden => {
                Listing { directories, top: u32::try_from(top).unwrap_or(0), complete: true }
            }
            _ => walk(asked),
        }
    }

    fn list_new(&self, asked: &Walk<'_>) -> Listing {
        let listing = walk(asked);
        let is_root = asked.start.as_os_str().is_empty();
        if is_root && listing.complete && listing.directories.len() <= MAX_DIRECTORIES {
            self.keep(asked.tree, listing.directories.clone());
        }
        listing
    }

    /// Takes a table out, so that nobody else changes it meanwhile; who comes at the same time walks.
    fn take(&self, tree: &Tree) -> Option<Arc<Vec<Listed>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|kept| kept.root == tree.path())?;
        Some(kept.remove(at).directories)
    }

    fn keep(&self, tree: &Tree, directories: Arc<Vec<Listed>>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.root != tree.path());
        if kept.len() >= ROOTS {
            kept.remove(0);
        }
        kept.push(Kept { root: tree.path().to_owned(), directories });
    }
}

/// The table as it must be now; nothing, if only a walk can tell.
fn refresh(asked: &Walk<'_>, kept: Arc<Vec<Listed>>) -> Option<Arc<Vec<Listed>>> {
    let (mut at, mut changed, mut rules_changed, mut gone) = (0, Vec::new(), false, 0);
    in_order(
        &kept,
        || (),
        |(), listed| compare(asked.tree, listed),
        |listed, state| {
            match state {
                State::Same => {}
                State::Changed => changed.push(at),
                State::RulesChanged => rules_changed = true,
            }
            gone += usize::from(listed.gone);
            at += 1;
            !rules_changed
        },
    );
    if rules_changed || asked.stop.now() || gone > kept.len() / 4 {
        return None;
    }
    if changed.is_empty() {
        return Some(kept);
    }
    // Somebody still reads the table as it was: let them, and walk.
    let kept = Arc::try_unwrap(kept).ok()?;
    list_again(asked, kept, &changed).map(Arc::new)
}

enum State {
    Same,
    Changed,
    RulesChanged,
}

fn compare(tree: &Tree, listed: &Listed) -> State {
    if listed.gone {
        return State::Same;
    }
    let rules_same = listed.ignore_stamps.iter().all(|(then, path)| tree.stamp(path) == *then);
    let now = tree.stamp(&listed.path);
    match (rules_same, now.is_some() && now == listed.stamp) {
        (false, _) => State::RulesChanged,
        (_, true) => State::Same,
        (_, false) => State::Changed,
    }
}
