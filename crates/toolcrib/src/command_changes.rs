//! What a command changes, seen as it happens.

mod heads;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_exec::{FileAccess, FileAction};
use toolcrib_fs::{
    About, CaptureClass, CaptureLimits, CapturedChanges, ChangeCapture, ChangedFile, TreeReader,
    Workspace,
};
use toolcrib_search::{IgnoreLookup, VERSION_CONTROL};
use toolcrib_text::visible_name;

use self::heads::Heads;
use crate::runtime::Runtime;

/// As many files with other names are named.
const MAX_SHARED: usize = 3;

/// What one command changes: told by the thread that lets its calls wait, asked for by calls.
#[derive(Debug)]
pub(crate) struct Trail {
    footprint: ChangeCapture,
    workspace: Workspace,
    /// By the root.
    ignored: HashMap<PathBuf, IgnoreLookup>,
    own: Vec<PathBuf>,
    heads: Mutex<Heads>,
    /// What is settled and nobody has asked for yet.
    untold: Mutex<PathClass>,
    /// No process of the command is left.
    is_over: AtomicBool,
}

/// What a command has changed since somebody asked last.
#[derive(Debug, Default)]
pub(crate) struct PathClass {
    pub(crate) files: Vec<ChangedFile>,
    /// Directories that it made, with no changed file in them.
    pub(crate) made: Vec<PathBuf>,
    /// Directories that it removed, with no changed file in them.
    pub(crate) removed: Vec<PathBuf>,
    /// The changes in the journal that it makes up.
    pub(crate) ids: Vec<u64>,
    /// The heads of repositories that it has moved, in words.
    pub(crate) moved_heads: Vec<String>,
    /// What could not be seen, or not be kept, in words.
    pub(crate) troubles: Vec<String>,
}

impl Trail {
    /// Of a command that has not begun.
    pub(crate) fn begin(runtime: &Runtime, about: About) -> Trail {
        let (workspace, journal) = (runtime.workspace().clone(), runtime.journal().cloned());
        let with_path = |tree: TreeReader| (tree.path().to_owned(), IgnoreLookup::new(tree));
        Trail {
            ignored: workspace.trees().map(with_path).collect(),
            own: runtime.own().to_vec(),
            heads: Mutex::default(),
            workspace: workspace.clone(),
            footprint: ChangeCapture::new(workspace, journal, about, CaptureLimits::default()),
            untold: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// What it has changed since this was asked last.
    pub(crate) fn take(&self) -> PathClass {
        let mut untold = self.lock();
        untold.add(self.settle(!self.is_over.load(Ordering::Relaxed)));
        let mut left = std::mem::take(&mut *untold);
        left.moved_heads = self.heads().take_moved(&self.workspace);
        left
    }

    /// The command is about to change these.
    pub(crate) fn touched(&self, accesses: &[FileAccess]) {
        for FileAccess { path, action, .. } in accesses {
            let whole = matches!(action, FileAction::RenameFrom | FileAction::RenameTo(_));
            self.heads().touched(&self.workspace, path);
            self.footprint.touch(path, whole, &|path, is_directory| self.worth(path, is_directory));
        }
    }

    /// Names the command, once it has an id.
    pub(crate) fn name_shell(&self, id: &str) {
        self.footprint.name_shell(id);
    }

    /// Whether the command was about to change a file, and still runs.
    pub(crate) fn may_be_changing(&self, path: &Path) -> bool {
        !self.is_over.load(Ordering::Relaxed) && self.footprint.has_touched(path)
    }

    /// The mode of a file that is kept as it was before the command, so that Undo brings it back.
    pub(crate) fn kept_mode(&self, path: &Path) -> Option<u32> {
        self.footprint.kept(path).map(|version| version.mode)
    }

    /// A change could not be supervised.
    pub(crate) fn unseen(&self, why: &io::Error) {
        let mut untold = self.lock();
        let trouble = format!("a change could not be recorded and cannot be undone: {why}");
        if !untold.troubles.contains(&trouble) {
            untold.troubles.push(trouble);
        }
    }

    /// No process of the command is left.
    pub(crate) fn over(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.lock().add(self.settle(false));
    }

    fn settle(&self, still_runs: bool) -> CapturedChanges {
        self.footprint.settle(still_runs, &|path, is_directory| self.worth(path, is_directory))
    }

    fn worth(&self, path: &Path, is_directory: bool) -> CaptureClass {
        let is_own = self.own.iter().any(|own| path.starts_with(own));
        let names = || path.components().map(|component| component.as_os_str());
        // Version control keeps its own history, and half of it brought back is worse than none.
        if is_own || names().any(|name| VERSION_CONTROL.iter().any(|known| name == *known)) {
            return CaptureClass::Nothing;
        }
        let place = self.workspace.tree_of(path);
        let is_ignored = place.is_some_and(|(tree, relative)| {
            self.ignored.get(tree.path()).is_some_and(|ignored| match is_directory {
                true => ignored.has_directory(&relative),
                false => ignored.has(&relative),
            })
        });
        if is_ignored { CaptureClass::Little } else { CaptureClass::Much }
    }

    fn heads(&self) -> MutexGuard<'_, Heads> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, PathClass> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PathClass {
    fn add(&mut self, settled: CapturedChanges) {
        self.files.extend(settled.files);
        self.made.extend(settled.made);
        self.removed.extend(settled.removed);
        self.ids.extend(settled.id);
        let shared = settled.shared.iter().take(MAX_SHARED);
        self.troubles.extend(shared.map(|path| {
            format!(
                "{} has other names (hard links) with the same content: an undo restores this name only",
                visible_name(path.as_os_str().as_encoded_bytes())
            )
        }));
        if settled.shared.len() > MAX_SHARED {
            let more = settled.shared.len() - MAX_SHARED;
            self.troubles.push(format!("{more} more of the modified files have other names"));
        }
        self.troubles.extend(settled.incomplete.iter().map(|directory| {
            format!(
                "{} was renamed and has more files than are kept: an undo does not bring all of them back",
                directory.display()
            )
        }));
        self.troubles.extend(settled.failed.map(|error| {
            format!(
                "what it changed is not in the journal yet: {} {}",
                error.path().display(),
                error.detail()
            )
        }));
    }
}
