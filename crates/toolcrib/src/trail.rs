//! What a command changes, seen as it happens.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_exec::{Touch, Witness};
use toolcrib_fs::{About, ChangedFile, Footprint, Measure, Settled, Tree, Worth};
use toolcrib_search::Ignored;

use crate::runtime::Runtime;

/// Version control keeps its own history, and half of it brought back is worse than none.
const OWN_HISTORY: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// What one command changes: told by the thread that lets its calls wait, asked for by calls.
#[derive(Debug)]
pub(crate) struct Trail {
    footprint: Footprint,
    ignored: Vec<(PathBuf, Ignored)>,
    own: Vec<PathBuf>,
    /// What is settled and nobody has asked for yet.
    untold: Mutex<Left>,
}

/// What a command has changed since somebody asked last.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) files: Vec<ChangedFile>,
    /// The changes in the journal that it makes up.
    pub(crate) ids: Vec<u64>,
    /// What could not be seen, or not be kept, in words.
    pub(crate) troubles: Vec<String>,
}

impl Trail {
    /// Of a command that has not begun.
    pub(crate) fn begin(runtime: &Runtime, about: About) -> Trail {
        let (workspace, journal) = (runtime.workspace().clone(), runtime.journal().cloned());
        let with_path = |tree: Tree| (tree.path().to_owned(), Ignored::new(tree));
        Trail {
            ignored: workspace.trees().map(with_path).collect(),
            own: runtime.own().to_vec(),
            footprint: Footprint::new(workspace, journal, about, Measure::default()),
            untold: Mutex::default(),
        }
    }

    /// What it has changed since this was asked last.
    pub(crate) fn take(&self) -> Left {
        let mut untold = self.lock();
        untold.add(self.footprint.settle());
        std::mem::take(&mut *untold)
    }

    fn worth(&self, path: &Path) -> Worth {
        let is_own = self.own.iter().any(|own| path.starts_with(own));
        let names = || path.components().map(|component| component.as_os_str());
        if is_own || names().any(|name| OWN_HISTORY.iter().any(|own| name == *own)) {
            return Worth::Nothing;
        }
        // The innermost root knows best.
        let roots = self.ignored.iter().filter_map(|(root, ignored)| {
            Some((root.as_os_str().len(), path.strip_prefix(root).ok()?, ignored))
        });
        match roots.max_by_key(|(length, ..)| *length) {
            Some((_, relative, ignored)) if ignored.has(relative) => Worth::Little,
            _ => Worth::Much,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Left> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness for Trail {
    fn touched(&self, touches: &[Touch]) {
        for touch in touches {
            self.footprint.touch(&touch.path, touch.whole, &|path| self.worth(path));
        }
    }

    fn blind(&self, why: &io::Error) {
        let mut untold = self.lock();
        let trouble =
            format!("not all that it changed could be seen, so Undo may not know it: {why}");
        if !untold.troubles.contains(&trouble) {
            untold.troubles.push(trouble);
        }
    }

    fn over(&self) {
        self.lock().add(self.footprint.settle());
    }
}

impl Left {
    fn add(&mut self, settled: Settled) {
        self.files.extend(settled.files);
        self.ids.extend(settled.id);
        self.troubles.extend(settled.failed.map(|error| {
            format!(
                "what it changed is not in the journal yet: {} {}",
                error.path().display(),
                error.detail()
            )
        }));
    }
}
