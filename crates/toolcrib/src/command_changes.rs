//! The file changes of one command, captured as they happen.

mod git_directory;
mod head_notes;
mod index_and_config;
mod lost_refs;
mod repository_state;
mod running_changes;
mod unfinished_operation;
mod work_trees;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};
use toolcrib_exec::{FileAccess, FileAction, has_no_writer};
use toolcrib_fs::{
    About, Action, BulkReader, CaptureClass, CaptureLimits, CapturedChanges, ChangeCapture,
    ChangedFile, Journal, Settling, Version, Workspace, Writer, Written,
};
use toolcrib_search::{IgnoreLookup, VERSION_CONTROL};
use toolcrib_text::visible_name;

pub(crate) use self::repository_state::RepositoryNotes;
use self::repository_state::RepositoryStates;
pub(crate) use self::running_changes::RunningChanges;
use crate::phrases::counted;

/// Number of hard-linked files that are named.
const MAX_SHARED: usize = 3;

/// Limit of remembered renames.
const MAX_RENAMES: usize = 32;

/// Captures the changes of one command. The supervisor thread reports them; calls collect them.
#[derive(Debug)]
pub(crate) struct CommandChanges {
    capture: ChangeCapture,
    workspace: Workspace,
    /// By root.
    ignored: HashMap<PathBuf, IgnoreLookup>,
    own_paths: Vec<PathBuf>,
    heads: Mutex<RepositoryStates>,
    /// Renamed paths, old and new. A rename may have failed.
    renames: Mutex<Vec<(PathBuf, PathBuf)>>,
    /// Recorded changes that no call has collected yet.
    uncollected: Mutex<NewChanges>,
    has_ended: AtomicBool,
    /// The number of tools that write files on which the command may have an operation pending. Its changes are recorded
    /// afterwards.
    writing_tools: Mutex<usize>,
    no_tool_writes: Condvar,
    /// The changes of all running commands, with its own.
    running: Arc<RunningChanges>,
}

/// Changes of a command since they were last collected.
#[derive(Debug, Default)]
pub(crate) struct NewChanges {
    pub(crate) files: Vec<ChangedFile>,
    /// Created directories that contain no changed file.
    pub(crate) made: Vec<PathBuf>,
    /// Removed directories that contained no changed file.
    pub(crate) removed: Vec<PathBuf>,
    /// Paths that the command tried to rename, old and new.
    pub(crate) renames: Vec<(PathBuf, PathBuf)>,
    /// Ids of the changes in the journal.
    pub(crate) ids: Vec<u64>,
    pub(crate) repositories: RepositoryNotes,
    /// Changes that could not be observed or recorded, in words.
    pub(crate) warnings: Vec<String>,
}

impl CommandChanges {
    /// For a command that has not started yet.
    pub(crate) fn begin(
        workspace: &Workspace,
        own_paths: Vec<PathBuf>,
        journal: Option<Journal>,
        about: About,
        running: &Arc<RunningChanges>,
    ) -> Arc<CommandChanges> {
        let with_path = |tree: BulkReader| (tree.path().to_owned(), IgnoreLookup::new(tree));
        let changes = Arc::new(CommandChanges {
            ignored: workspace.trees().map(with_path).collect(),
            own_paths,
            heads: Mutex::default(),
            renames: Mutex::default(),
            workspace: workspace.clone(),
            capture: ChangeCapture::new(
                workspace.clone(),
                journal,
                about,
                CaptureLimits::default(),
            ),
            uncollected: Mutex::default(),
            has_ended: AtomicBool::new(false),
            writing_tools: Mutex::new(0),
            no_tool_writes: Condvar::new(),
            running: running.clone(),
        });
        running.add(&changes);
        changes
    }

    /// Changes since the last call of this method. Notes have git commands for the directory of the next command.
    pub(crate) fn take(&self, next_directory: &Path) -> NewChanges {
        let _recording = self.wait_for_tools();
        let mut uncollected = self.uncollected.lock();
        uncollected.add(self.settle(!self.has_ended.load(Ordering::Relaxed)));
        let mut new = std::mem::take(&mut *uncollected);
        new.repositories = self.heads.lock().take_notes(&self.workspace, next_directory);
        new.renames = std::mem::take(&mut *self.renames.lock());
        new
    }

    /// Called before the command changes these paths.
    pub(crate) fn before_change(&self, accesses: &[FileAccess]) {
        self.remember_rename(accesses);
        let is_whole = |action: &FileAction| {
            matches!(action, FileAction::RenameFrom | FileAction::RenameTo(_))
        };
        let written = accesses
            .iter()
            .map(|FileAccess { path, action, .. }| Written { path, whole: is_whole(action) });
        let written: Vec<Written<'_>> = written.collect();
        for FileAccess { path, action, .. } in accesses {
            let whole = is_whole(action);
            self.heads.lock().before_change(&self.workspace, path);
            self.capture
                .touch(path, whole, &|path, is_directory| self.capture_class(path, is_directory));
        }
        // Afterwards, so that a content that another command is just removing is stored here or there.
        self.running.taken_over_by_command(&written, self);
    }

    /// Called if the command may not change a path.
    pub(crate) fn note_refused(&self, path: &Path) {
        self.heads.lock().note_refused(path);
    }

    fn remember_rename(&self, accesses: &[FileAccess]) {
        let path = |is_one: fn(&FileAction) -> bool| {
            let access = accesses.iter().find(|access| is_one(&access.action));
            access.map(|access| access.path.clone())
        };
        let from = path(|action| *action == FileAction::RenameFrom);
        let to = path(|action| matches!(action, FileAction::RenameTo(_)));
        let (Some(from), Some(to)) = (from, to) else { return };
        if self.capture_class(&from, false) == CaptureClass::Excluded {
            return;
        }
        let mut renames = self.renames.lock();
        let earlier = renames.iter().position(|(_, last)| *last == from);
        let pair = match earlier {
            Some(at) => (renames.remove(at).0, to),
            None => (from, to),
        };
        if renames.len() < MAX_RENAMES && !renames.contains(&pair) {
            renames.push(pair);
        }
    }

    /// Whether a command that still runs has changed files since its changes were last recorded.
    pub(crate) fn has_unrecorded(&self) -> bool {
        !self.has_ended.load(Ordering::Relaxed) && self.capture.has_tracked_changes()
    }

    /// Sets the id of the command.
    pub(crate) fn set_job_id(&self, id: &str) {
        self.capture.set_command_id(id);
    }

    /// Whether the running command may be changing this file.
    pub(crate) fn may_be_changing(&self, path: &Path) -> bool {
        !self.has_ended.load(Ordering::Relaxed) && self.capture.is_captured(path)
    }

    /// The captured version of a file, which Undo restores.
    pub(crate) fn captured(&self, path: &Path) -> Option<Version> {
        self.capture.kept(path)
    }

    /// Called if a change could not be supervised.
    pub(crate) fn add_unobserved(&self, why: &io::Error) {
        let mut uncollected = self.uncollected.lock();
        let warning = format!("a change could not be recorded and cannot be undone: {why}");
        if !uncollected.warnings.contains(&warning) {
            uncollected.warnings.push(warning);
        }
    }

    /// Called when no process of the command is new.
    pub(crate) fn command_ended(&self) {
        let _recording = self.wait_for_tools();
        let mut uncollected = self.uncollected.lock();
        uncollected.add(self.settle(false));
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Called before a tool writes these paths. If the command may have an operation pending there, its changes are not
    /// recorded until the result is dropped.
    fn take_over_by_tool(&self, written: &[Written<'_>]) -> Option<WritingTool<'_>> {
        let mut writing_tools = self.writing_tools.lock();
        self.take_over(written, Writer::Tool).then(|| {
            *writing_tools += 1;
            WritingTool(self)
        })
    }

    /// Waits for tools that write files on which the command may have an operation pending. No other one begins until the
    /// result is dropped.
    fn wait_for_tools(&self) -> MutexGuard<'_, usize> {
        let mut writing_tools = self.writing_tools.lock();
        self.no_tool_writes.wait_while(&mut writing_tools, |count| *count > 0);
        writing_tools
    }

    /// Called before another program writes these paths. It waits while the changes are recorded: they must not include
    /// what that program writes. Returns whether the command may have an operation pending.
    fn take_over(&self, written: &[Written<'_>], writer: Writer) -> bool {
        let _uncollected = self.uncollected.lock();
        self.settling(|settling| self.capture.take_over(written, writer, settling))
    }

    fn settle(&self, still_runs: bool) -> CapturedChanges {
        let parts = self.heads.lock().changed_parts(&self.workspace);
        self.capture.set_repository_parts(parts);
        self.settling(|settling| self.capture.settle(still_runs, settling))
    }

    fn settling<T>(&self, record: impl FnOnce(&Settling<'_>) -> T) -> T {
        let class = |path: &Path, is_directory: bool| self.capture_class(path, is_directory);
        record(&Settling { class: &class, has_no_writer: &|file| has_no_writer(file) })
    }

    fn capture_class(&self, path: &Path, is_directory: bool) -> CaptureClass {
        let is_own = self.own_paths.iter().any(|own| path.starts_with(own));
        let names = || path.components().map(|component| component.as_os_str());
        // Version control keeps its own history. Restoring half of it is worse than restoring none.
        if is_own || names().any(|name| VERSION_CONTROL.iter().any(|known| name == *known)) {
            return CaptureClass::Excluded;
        }
        let place = self.workspace.tree_of(path);
        let is_ignored = place.is_some_and(|(tree, relative)| {
            self.ignored.get(tree.path()).is_some_and(|ignored| {
                if is_directory { ignored.has_directory(&relative) } else { ignored.has(&relative) }
            })
        });
        if is_ignored { CaptureClass::Ignored } else { CaptureClass::Tracked }
    }
}

/// A tool that writes files on which a command may have an operation pending.
struct WritingTool<'a>(&'a CommandChanges);

impl Drop for WritingTool<'_> {
    fn drop(&mut self) {
        *self.0.writing_tools.lock() -= 1;
        self.0.no_tool_writes.notify_all();
    }
}

impl NewChanges {
    /// Adds changed files. One that was changed twice is named once.
    fn add_files(&mut self, files: Vec<ChangedFile>) {
        let known = self.files.iter().enumerate().map(|(at, file)| (file.path.clone(), at));
        let mut known: HashMap<PathBuf, usize> = known.collect();
        for file in files {
            match known.get(&file.path).and_then(|at| self.files.get_mut(*at)) {
                Some(first) => {
                    if first.action != Action::Created || file.action == Action::Deleted {
                        first.action = file.action;
                    }
                    first.lost = first.lost.take().or(file.lost);
                    first.versions.1 = file.versions.1;
                }
                None => {
                    known.insert(file.path.clone(), self.files.len());
                    self.files.push(file);
                }
            }
        }
    }

    fn add(&mut self, settled: CapturedChanges) {
        self.add_files(settled.files);
        self.made.extend(settled.made);
        self.removed.extend(settled.removed);
        self.ids.extend(settled.ids);
        let shared = settled.shared.iter().take(MAX_SHARED);
        self.warnings.extend(shared.map(|path| {
            format!(
                "{} has other hard links, which changed with it: an undo restores this path only",
                visible_name(path.as_os_str().as_encoded_bytes())
            )
        }));
        self.warnings.extend(settled.modes.iter().take(MAX_SHARED).map(|path| {
            format!(
                "the mode of the directory {} was changed; an undo does not restore it",
                visible_name(path.as_os_str().as_encoded_bytes())
            )
        }));
        if let Some(more) = settled.modes.len().checked_sub(MAX_SHARED).filter(|more| *more > 0) {
            let more = counted(more as u64, "more directory");
            self.warnings
                .push(format!("the modes of {more} were changed; an undo does not restore them"));
        }
        if settled.shared.len() > MAX_SHARED {
            let more = settled.shared.len() - MAX_SHARED;
            self.warnings.push(format!("{more} more of the modified files have other hard links"));
        }
        self.warnings.extend(settled.incomplete.iter().map(|directory| {
            format!(
                "{} was renamed and has too many files: an undo does not restore all of them",
                directory.display()
            )
        }));
        self.warnings.extend(settled.failed.map(|error| {
            format!(
                "the changes are not in the journal yet: {} {}",
                error.path().display(),
                error.detail()
            )
        }));
    }
}
