//! Records changes that another program makes, such as a command.
//!
//! The supervisor reports each path before it is changed ([`ChangeCapture::touch`]). The current content is
//! then stored, once, and noted on disk, so that it is not lost with the process. When the command is done
//! ([`ChangeCapture::settle`]), the current content is compared with the stored one, and the differences
//! become a change in the journal like any other: it can be shown and undone.
//!
//! Not everything is stored. A build may rewrite gigabytes of generated files; so each file and each command
//! has limits ([`CaptureLimits`]), and exceeding them is reported.
//!
//! Unlike a [`crate::Change`], this does not wait until the content is on disk: it survives a crash of the
//! process, but not always a power failure. Otherwise a command that writes a thousand files would wait for
//! the disk a thousand times.

mod limits;
mod others;
mod path_state;
mod take_over;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

pub use self::limits::{CaptureClass, CaptureLimits, NotKept, SizeLimits};
pub use self::take_over::{Writer, Written};

use self::limits::Usage;
use self::others::OthersChanges;
use self::path_state::{DirectoryFingerprint, PathState, WritablePath};
use self::take_over::Finished;
use crate::bulk_reader::Stamp;
use crate::error::FsError;
use crate::journal::{
    About, CaptureNote, DirectoryMode, Effects, Entry, FileChange, Journal, KeptDirectory,
    KeptPath, Version,
};
use crate::unix_time::now_ms;
use crate::workspace::Workspace;

/// The largest number of paths in a renamed directory that are examined.
const MAX_DESCENDANTS: usize = 200_000;

/// The changes of a command or another program.
#[derive(Debug)]
pub struct ChangeCapture {
    workspace: Workspace,
    journal: Option<Journal>,
    about: Mutex<About>,
    limits: CaptureLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    touched: BTreeMap<PathBuf, CapturedPath>,
    usage: Usage,
    note: Option<CaptureNote>,
    /// Renamed directories with more paths than are examined.
    incomplete: Vec<PathBuf>,
    /// The modes of roots that were touched.
    root_modes: BTreeMap<PathBuf, u32>,
    /// Paths in new directories that others have written: they are not new with their directory.
    by_others: BTreeSet<PathBuf>,
    /// The number of the last change in the journal when the first path was touched.
    last_id: Option<u64>,
    /// Changes of files that others have written since.
    finished: BTreeMap<PathBuf, Finished>,
}

#[derive(Debug)]
struct CapturedPath {
    before: Before,
    class: CaptureClass,
    others: Others,
    /// The time when it was touched.
    touched_ms: u64,
    /// If the path is a directory in the end, everything in it is new.
    whole: bool,
    /// The original directory was missing at some point.
    was_missing: bool,
}

/// Whether others may have written a path, too, since it was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    None,
    /// The command has only a descriptor of the file with this identity, which others have written or replaced.
    WriteFile((u64, u64)),
    /// They have written the path.
    WritePath,
}

/// The state before the first change.
#[derive(Debug)]
enum Before {
    Nothing,
    Kept(Version),
    /// A file or a symlink whose content was not stored. A file has a stamp.
    NotStored(Option<Stamp>, NotKept),
    Directory(DirectoryFingerprint),
    /// A FIFO, a socket or a device, which is never stored.
    Other,
}

/// What a capture asks its owner at [`ChangeCapture::settle`].
pub struct Settling<'a> {
    /// Asked about directories, and about the contents of renamed ones.
    pub class: Classify<'a>,
    /// Whether no descriptor and no mapping can write a file that is open for reading here. Then the command does
    /// not change it any more without another call of [`ChangeCapture::touch`].
    pub has_no_writer: &'a dyn Fn(BorrowedFd<'_>) -> bool,
}

/// Returns the capture class of a path. The second argument is whether it is a directory.
pub type Classify<'a> = &'a dyn Fn(&Path, bool) -> CaptureClass;

impl CapturedPath {
    fn new(before: Before, class: CaptureClass, whole: bool) -> CapturedPath {
        let (others, touched_ms, was_missing) = (Others::None, now_ms(), false);
        CapturedPath { before, class, others, touched_ms, whole, was_missing }
    }

    /// Whether the command has only a descriptor of a file that is no longer at the path.
    fn is_of_another_file(&self, now: &PathState) -> bool {
        let Others::WriteFile(identity) = self.others else { return false };
        !matches!(now, PathState::File { stamp } if stamp.identity == identity)
    }

    /// Whether a directory that exists now is not the original one, so that everything in it is new.
    fn is_new_directory(&self, now: &PathState) -> bool {
        match (&self.before, now) {
            (Before::Directory(was), PathState::Directory(now)) => {
                self.was_missing || was.identity != now.identity
            }
            _ => true,
        }
    }
}

/// The changes since the last call of [`ChangeCapture::settle`].
#[derive(Debug, Default)]
pub struct CapturedChanges {
    /// The numbers of the changes in the journal that have something to undo. There are several if the command changed
    /// files again after others had written them.
    pub ids: Vec<u64>,
    /// The changed files, sorted by path. One that was changed again occurs twice.
    pub files: Vec<ChangedFile>,
    /// The error if the journal could not record the change.
    pub failed: Option<FsError>,
    /// Created directories without changed files.
    pub made: Vec<PathBuf>,
    /// Removed directories without changed files.
    pub removed: Vec<PathBuf>,
    /// Renamed directories with more files than are stored.
    pub incomplete: Vec<PathBuf>,
    /// Modified files with other hard links, which were modified as well.
    pub shared: Vec<PathBuf>,
    /// Directories with another mode, which is not undone.
    pub modes: Vec<PathBuf>,
}

/// A changed file or symlink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// The real path.
    pub path: PathBuf,
    /// What happened to it.
    pub action: Action,
    /// Whether ignore files exclude it.
    pub ignored: bool,
    /// Why the change cannot be undone.
    pub lost: Option<NotKept>,
    /// The versions before and after. `None` if it did not exist, or was not kept.
    pub versions: (Option<Version>, Option<Version>),
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// It did not exist before.
    Created,
    /// Its content or mode is different.
    Modified,
    /// It no longer exists.
    Deleted,
}

impl Action {
    fn of(change: &FileChange) -> Action {
        match (change.before, change.after) {
            (None, _) => Action::Created,
            (Some(_), Some(_)) => Action::Modified,
            (Some(_), None) => Action::Deleted,
        }
    }
}

impl ChangeCapture {
    /// Creates an empty capture. Without a journal, changes are detected but not stored.
    pub fn new(
        workspace: Workspace,
        journal: Option<Journal>,
        about: About,
        limits: CaptureLimits,
    ) -> ChangeCapture {
        let (about, state) = (Mutex::new(about), Mutex::default());
        ChangeCapture { workspace, journal, about, limits, state }
    }

    /// Reports that the file at a real path is about to be changed or created. `whole` means that a directory
    /// there is renamed. `class` returns the capture class of each affected path.
    pub fn touch(&self, path: &Path, whole: bool, class: Classify<'_>) {
        let mut state = self.state.lock();
        let Some(target) = WritablePath::of(&self.workspace, path) else {
            if let Some(mode) = WritablePath::root_mode(&self.workspace, path) {
                state.root_modes.entry(path.to_owned()).or_insert(mode);
            }
            return;
        };
        let state_now = target.state();
        if state.touched.get(path).is_some_and(|known| known.is_of_another_file(&state_now)) {
            state.touched.remove(path);
        }
        if let Some(known) = state.touched.get_mut(path) {
            known.whole |= whole;
            known.was_missing |= matches!(state_now, PathState::Nothing);
            if whole {
                self.touch_files_of_others(&mut state, path, class);
            }
            return;
        }
        let is_directory = matches!(state_now, PathState::Directory(_));
        if is_directory && whole {
            let (descendants, complete) = target.descendants(MAX_DESCENDANTS);
            if !complete {
                state.incomplete.push(path.to_owned());
            }
            for file in descendants {
                if let Some(target) = WritablePath::of(&self.workspace, &file) {
                    let state_now = target.state();
                    let class = class(&file, matches!(state_now, PathState::Directory(_)));
                    self.touch_one(&mut state, (&target, state_now), class, false);
                }
            }
        }
        self.touch_one(&mut state, (&target, state_now), class(path, is_directory), whole);
    }

    /// Whether a change of this path was reported since the last [`ChangeCapture::settle`].
    pub fn is_captured(&self, path: &Path) -> bool {
        self.state.lock().touched.contains_key(path)
    }

    /// Whether changes of tracked paths were reported since the last [`ChangeCapture::settle`].
    pub fn has_tracked_changes(&self) -> bool {
        let state = self.state.lock();
        let mut classes = state
            .touched
            .values()
            .map(|touched| touched.class)
            .chain(state.finished.values().map(|finished| finished.class));
        classes.any(|class| class == CaptureClass::Tracked)
    }

    /// The version of a file before its first change. `None` if it was not stored.
    pub fn kept(&self, path: &Path) -> Option<Version> {
        match self.state.lock().touched.get(path)?.before {
            Before::Kept(version) => Some(version),
            Before::Nothing | Before::Directory(_) | Before::NotStored(..) | Before::Other => None,
        }
    }

    /// Compares the touched files with what they were, adds the differences to the journal, and starts over. A
    /// command that still runs may have files open: those that have a writer are compared again the next time.
    /// Later changes of the others are not the command's, unless it touches them again.
    pub fn settle(&self, still_runs: bool, settling: &Settling<'_>) -> CapturedChanges {
        let mut state = std::mem::take(&mut *self.state.lock());
        let mut settled = CapturedChanges::default();
        let (mut effects, mut open, mut modes) = (Effects::default(), Vec::new(), Vec::new());
        self.add_renamed_contents(&mut state, settling.class);
        settled.incomplete = std::mem::take(&mut state.incomplete);
        let root_modes = std::mem::take(&mut state.root_modes);
        // What the command has changed again, after others, is another change.
        let (mut again, mut finished) = (Vec::new(), BTreeSet::new());
        let others = self.others_changes(&state);
        for (path, Finished { class, action, outcome }) in std::mem::take(&mut state.finished) {
            settled.add_file(&mut effects, &path, class, (action, outcome));
            finished.insert(path);
        }
        let State { touched, usage, note, .. } = &mut state;
        for (path, touched) in touched {
            let Some(target) = WritablePath::of(&self.workspace, path) else { continue };
            let now = target.state();
            if touched.is_of_another_file(&now) {
                continue;
            }
            let is_shared = matches!(&now, PathState::File { stamp } if stamp.is_shared);
            // Asked before the content is read: a writer that is gone by then has written all of it.
            if still_runs && has_writer(&target, &now, settling) {
                open.push((path.clone(), touched.class, touched.others));
            }
            match (&touched.before, &now) {
                (Before::Directory(was), PathState::Directory(now))
                    if was.mode != now.mode && was.identity == now.identity =>
                {
                    modes.push(DirectoryMode::new(path, was.mode, now.mode));
                }
                (Before::Directory(_), PathState::Directory(_)) => {}
                (Before::Directory(was), _) => {
                    effects.removed.push(KeptDirectory::new(path, was.mode));
                }
                (_, PathState::Directory(_)) => effects.made.push(KeptPath::new(path)),
                _ => {}
            }
            let compared = self.compare(&target, &touched.before, now, touched.class, usage);
            let Some((action, outcome)) = compared else { continue };
            // An undo of it would remove what the others wrote.
            let outcome =
                if touched.others == Others::None { outcome } else { Err(NotKept::Contested) };
            if is_shared && action == Action::Modified {
                settled.shared.push(path.clone());
            }
            let parts = match outcome.map(|change| others.own_parts(&change, touched.touched_ms)) {
                Ok(Some(parts)) => {
                    parts.into_iter().map(|part| (Action::of(&part), Ok(part))).collect()
                }
                Ok(None) => vec![(action, Err(NotKept::Contested))],
                Err(not_kept) => vec![(action, Err(not_kept))],
            };
            let first = usize::from(finished.contains(path));
            for (at, part) in (first..).zip(parts) {
                let effects = round(&mut effects, &mut again, at);
                settled.add_file(effects, path, touched.class, part);
            }
        }
        settled.files.sort_by(|one, other| one.path.cmp(&other.path));
        for (root, mode) in root_modes {
            let now = WritablePath::root_mode(&self.workspace, &root).filter(|now| *now != mode);
            modes.extend(now.map(|now| DirectoryMode::new(&root, mode, now)));
        }
        settled.modes = modes.iter().map(DirectoryMode::path).collect();
        let is_tracked =
            |mode: &DirectoryMode| (settling.class)(&mode.path(), true) == CaptureClass::Tracked;
        effects.modes = modes.into_iter().filter(is_tracked).collect();
        settled.made = settled.without_files(effects.made.iter().map(KeptPath::path));
        settled.removed = settled.without_files(effects.removed.iter().map(KeptDirectory::path));
        let mut directories = settled.made.iter().chain(&settled.removed).chain(&settled.modes);
        effects.only_ignored = settled.files.iter().all(|file| file.ignored)
            && directories
                .all(|directory| (settling.class)(directory, true) != CaptureClass::Tracked);
        let changes = std::iter::once(effects).chain(again);
        let changes: Vec<Effects> = changes.filter(|effects| !effects.is_empty()).collect();
        if let Some(journal) = &self.journal
            && !changes.is_empty()
        {
            let undoable: Vec<bool> =
                changes.iter().map(|effects| !effects.has_nothing_to_undo()).collect();
            match journal.add(&self.about(), changes, note.as_ref()) {
                Ok(ids) => {
                    if let (Some(known), Some(own)) = (&mut self.state.lock().last_id, ids.last()) {
                        *known = (*known).max(*own);
                    }
                    let ids = ids.into_iter().zip(undoable);
                    settled.ids = ids.filter_map(|(id, undoable)| undoable.then_some(id)).collect();
                }
                Err(error) => settled.failed = Some(error),
            }
        }
        // Storing a file again costs nothing: the journal already has its content.
        for (path, class, others) in open {
            self.touch(&path, false, &|_, _| class);
            if let Some(touched) = self.state.lock().touched.get_mut(&path) {
                touched.others = others;
            }
        }
        // If the journal could not record the change, the note stays, and the next start tries again.
        if settled.failed.is_none()
            && let Some(note) = note.take()
        {
            note.remove();
        }
        settled
    }

    /// Sets the id of the command that makes the changes, once it is known.
    pub fn set_command_id(&self, id: &str) {
        let mut about = self.about.lock();
        about.shell = Some(id.to_owned());
    }

    /// Sets the parts of repositories that the command has changed.
    pub fn set_repository_parts(&self, parts: Vec<String>) {
        let mut about = self.about.lock();
        about.repository_parts = parts;
    }

    /// Restores the capture of a crashed process from its note.
    pub(crate) fn from_note(
        workspace: &Workspace,
        journal: &Journal,
        note: CaptureNote,
        noted: Vec<Entry>,
        about: About,
    ) -> ChangeCapture {
        let capture = ChangeCapture::new(
            workspace.clone(),
            Some(journal.clone()),
            about,
            CaptureLimits::default(),
        );
        let mut state = capture.state.lock();
        state.note = Some(note);
        for Entry { files, removed, not_kept, .. } in noted {
            let ended: Vec<PathBuf> = not_kept.iter().map(KeptPath::path).collect();
            for file in files {
                if ended.contains(&file.path()) {
                    state.finished.insert(file.path(), Finished::noted(file));
                    continue;
                }
                let before = file.before.map_or(Before::Nothing, Before::Kept);
                state
                    .touched
                    .insert(file.path(), CapturedPath::new(before, CaptureClass::Tracked, false));
            }
            ended.iter().for_each(|path| drop(state.touched.remove(path)));
            for directory in removed {
                let stamp = DirectoryFingerprint { identity: (0, 0), mode: directory.mode };
                let touched =
                    CapturedPath::new(Before::Directory(stamp), CaptureClass::Tracked, false);
                state.touched.insert(directory.path(), touched);
            }
        }
        drop(state);
        capture
    }

    fn touch_one(
        &self,
        state: &mut State,
        (target, state_now): (&WritablePath, PathState),
        class: CaptureClass,
        whole: bool,
    ) {
        let path = target.path();
        if class == CaptureClass::Excluded || state.touched.contains_key(&path) {
            return;
        }
        if state.last_id.is_none() {
            state.last_id = self.journal.as_ref().and_then(|journal| journal.last_id().ok());
        }
        // A path in a new directory did not exist before, unless others made it there.
        let is_new = !state.by_others.contains(&path) && self.is_in_new_directory(state, &path);
        let before = match state_now {
            PathState::Nothing => Before::Nothing,
            _ if is_new => Before::Nothing,
            PathState::File { stamp, .. } => match self.store_before(state, target, class) {
                Ok(version) => Before::Kept(version),
                Err(not_kept) => Before::NotStored(Some(stamp), not_kept),
            },
            PathState::Symlink => match self.store_before(state, target, class) {
                Ok(version) => Before::Kept(version),
                Err(not_kept) => Before::NotStored(None, not_kept),
            },
            PathState::Directory(stamp) => Before::Directory(stamp),
            PathState::Other | PathState::Unknown(_) => Before::Other,
        };
        // If this fails, the path is only lost if the process dies before it is settled.
        let _ = match &before {
            Before::Nothing => {
                self.note(state, |note| note.add_file(FileChange::new(&path, None, None)))
            }
            Before::Directory(stamp) => {
                self.note(state, |note| note.add_directory(KeptDirectory::new(&path, stamp.mode)))
            }
            _ => Ok(()),
        };
        state.touched.insert(path, CapturedPath::new(before, class, whole));
    }

    /// Whether a path is in a directory that is new since it was reported.
    fn is_in_new_directory(&self, state: &State, path: &Path) -> bool {
        path.ancestors().skip(1).any(|above| self.is_new_directory(state, above))
    }

    /// Whether a reported path has become a directory, or another directory, since.
    fn is_new_directory(&self, state: &State, path: &Path) -> bool {
        let Some(touched) = state.touched.get(path) else { return false };
        let state_now = || WritablePath::of(&self.workspace, path).map(|target| target.state());
        touched.is_new_directory(&state_now().unwrap_or(PathState::Nothing))
    }

    /// Stores the content of a file before it is changed.
    fn store_before(
        &self,
        state: &mut State,
        target: &WritablePath,
        class: CaptureClass,
    ) -> Result<Version, NotKept> {
        let journal = self.journal.as_ref().ok_or(NotKept::NoJournal)?;
        let (content, mode) = state.usage.read(&self.limits, target, class)?;
        let version = Version::of(&content, mode);
        // The note comes first, so that garbage collection does not remove the content.
        let change = FileChange::new(&target.path(), Some(version), None);
        self.note(state, |note| note.add_file(change)).map_err(NotKept::Failed)?;
        journal.store_content(&content).map_err(NotKept::Failed)?;
        Ok(version)
    }

    fn note(
        &self,
        state: &mut State,
        add: impl FnOnce(&mut CaptureNote) -> Result<(), FsError>,
    ) -> Result<(), FsError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let note = match &mut state.note {
            Some(note) => note,
            None => state.note.insert(journal.begin_capture(&self.about())?),
        };
        add(note)
    }

    /// What others have recorded since the first path was touched.
    fn others_changes(&self, state: &State) -> OthersChanges {
        let Some((journal, first)) = self.journal.as_ref().zip(state.last_id) else {
            return OthersChanges::default();
        };
        OthersChanges::since(journal, first)
    }

    fn about(&self) -> About {
        self.about.lock().clone()
    }

    /// Adds the contents of directories that were renamed to their path: these paths were not reported.
    /// Their class is that of their new paths.
    fn add_renamed_contents(&self, state: &mut State, class: Classify<'_>) {
        let directories: Vec<(PathBuf, WritablePath)> = state
            .touched
            .iter()
            .filter(|(_, touched)| touched.whole)
            .filter_map(|(path, touched)| {
                let target = WritablePath::of(&self.workspace, path)?;
                let now = target.state();
                let is_new =
                    matches!(now, PathState::Directory(_)) && touched.is_new_directory(&now);
                is_new.then(|| (path.clone(), target))
            })
            .collect();
        for (path, target) in directories {
            let (descendants, complete) = target.descendants(MAX_DESCENDANTS);
            if !complete {
                state.incomplete.push(path);
            }
            for file in descendants {
                if state.by_others.contains(&file) {
                    continue;
                }
                let now = WritablePath::of(&self.workspace, &file).map(|target| target.state());
                let class = class(&file, matches!(now, Some(PathState::Directory(_))));
                let new = CapturedPath::new(Before::Nothing, class, false);
                state.touched.entry(file).or_insert(new);
            }
        }
    }

    /// Compares a file with its state before. Returns the action and the change, or why the change cannot be
    /// undone.
    fn compare(
        &self,
        target: &WritablePath,
        before: &Before,
        now: PathState,
        class: CaptureClass,
        usage: &mut Usage,
    ) -> Option<(Action, Result<FileChange, NotKept>)> {
        let path = target.path();
        let deleted =
            |version: Version| (Action::Deleted, Ok(FileChange::new(&path, Some(version), None)));
        let exists = matches!(now, PathState::File { .. } | PathState::Symlink);
        match (before, now) {
            (Before::Other, PathState::Unknown(_)) => None,
            (Before::Nothing | Before::Directory(_), PathState::Unknown(errno)) => {
                Some((Action::Created, Err(NotKept::Unreadable(errno))))
            }
            // Undo could not recognise the current content.
            (_, PathState::Unknown(errno)) => {
                Some((Action::Modified, Err(NotKept::Unreadable(errno))))
            }
            (Before::Nothing | Before::Directory(_), PathState::Other) => {
                Some((Action::Created, Err(NotKept::NoFile)))
            }
            (Before::Nothing | Before::Directory(_), _) if exists => {
                let after = self.store_now(target, class, usage);
                let change = after.map(|after| FileChange::new(&path, None, Some(after)));
                Some((Action::Created, change))
            }
            (Before::Nothing | Before::Directory(_), _) => None,
            (Before::Kept(was), _) if exists => {
                let after = match self.store_now(target, class, usage) {
                    Ok(after) if after == *was => return None,
                    after => after,
                };
                let change = after.map(|after| FileChange::new(&path, Some(*was), Some(after)));
                Some((Action::Modified, change))
            }
            (Before::Kept(was), _) => Some(deleted(*was)),
            (Before::NotStored(was, _), PathState::File { stamp, .. }) if Some(stamp) == *was => {
                None
            }
            (Before::NotStored(_, not_kept), _) if exists => {
                Some((Action::Modified, Err(not_kept.clone())))
            }
            (Before::NotStored(_, not_kept), _) => Some((Action::Deleted, Err(not_kept.clone()))),
            (Before::Other, PathState::Other) => None,
            (Before::Other, _) if exists => Some((Action::Modified, Err(NotKept::NoFile))),
            (Before::Other, _) => Some((Action::Deleted, Err(NotKept::NoFile))),
        }
    }

    /// Stores the current content of a file, which undo must recognise and redo must restore.
    fn store_now(
        &self,
        target: &WritablePath,
        class: CaptureClass,
        usage: &mut Usage,
    ) -> Result<Version, NotKept> {
        let journal = self.journal.as_ref().ok_or(NotKept::NoJournal)?;
        let (content, mode) = usage.read(&self.limits, target, class)?;
        journal.store_content(&content).map_err(NotKept::Failed)?;
        Ok(Version::of(&content, mode))
    }
}

/// The effects of the command before others changed a file (0), or after their change with this number.
fn round<'a>(first: &'a mut Effects, again: &'a mut Vec<Effects>, at: usize) -> &'a mut Effects {
    let Some(at) = at.checked_sub(1) else { return first };
    let new = || Effects { only_ignored: true, ..Effects::default() };
    again.resize_with(again.len().max(at + 1), new);
    &mut again[at]
}

/// Whether a descriptor or a mapping may write a file.
fn has_writer(target: &WritablePath, now: &PathState, settling: &Settling<'_>) -> bool {
    matches!(now, PathState::File { .. })
        && !target.open().is_ok_and(|(file, _)| (settling.has_no_writer)(file.as_fd()))
}

impl CapturedChanges {
    /// Adds a changed file to these changes and to the effects that the journal records.
    fn add_file(
        &mut self,
        effects: &mut Effects,
        path: &Path,
        class: CaptureClass,
        (action, outcome): (Action, Result<FileChange, NotKept>),
    ) {
        let ignored = class != CaptureClass::Tracked;
        effects.only_ignored &= ignored;
        let (change, lost) = match outcome {
            Ok(change) => (Some(change), None),
            Err(not_kept) => (None, Some(not_kept)),
        };
        // A build may change any number of ignored files that are not stored, and Undo skips those.
        if lost.is_some() && ignored {
            effects.ignored_not_kept += 1;
        } else if lost.is_some() {
            effects.not_kept.push(KeptPath::new(path));
        }
        let versions = change.as_ref().map(|change| (change.before, change.after));
        let (path, versions) = (path.to_owned(), versions.unwrap_or_default());
        self.files.push(ChangedFile { path, action, ignored, lost, versions });
        effects.files.extend(change);
    }

    /// The directories without changed files.
    fn without_files(&self, directories: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
        // Files are sorted by path, so those in a directory directly follow it.
        let has_files = |directory: &PathBuf| {
            let after = self.files.partition_point(|file| file.path <= *directory);
            self.files.get(after).is_some_and(|file| file.path.starts_with(directory))
        };
        directories.filter(|directory| !has_files(directory)).collect()
    }
}
