//! What somebody else changes: a command, for one.
//!
//! Whoever sees it coming says so of each name before it is changed ([`Footprint::touch`]). What is there
//! is kept then, once, and noted on disk, so that it is not lost with the process. When the other is done
//! ([`Footprint::settle`]), what is there now is compared with what was, and what differs is a change in
//! the journal like any other: it can be seen, and taken back.
//!
//! Not everything is kept. A build may rewrite gigabytes that nobody wants back; so each file and each
//! command has its measure ([`Measure`]), and what went beyond it is said.
//!
//! What is kept here is not waited for to be on disk, as a [`crate::Change`] does: it outlives the process,
//! and not always a power cut. A command that writes a thousand files would else wait for the disk a
//! thousand times.

mod entry;
mod limits;

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use self::limits::{CaptureClass, CaptureLimits, NotKept, SizeLimits};

use self::entry::{DirectoryStamp, Spot, Standing};
use self::limits::Spent;
use crate::error::FsError;
use crate::journal::{
    About, Effects, Entry, FileChange, Followed, Journal, KeptDirectory, KeptPath, Version,
};
use crate::tree_reader::Stamp;
use crate::workspace::Workspace;

/// As many names in a directory that is renamed are looked at.
const MAX_BENEATH: usize = 200_000;

/// What a command, or somebody else, is changing.
#[derive(Debug)]
pub struct ChangeCapture {
    workspace: Workspace,
    journal: Option<Journal>,
    about: Mutex<About>,
    measure: CaptureLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    touched: BTreeMap<PathBuf, Touched>,
    spent: Spent,
    note: Option<Followed>,
    /// Directories that were renamed, and had more in them than is looked at.
    incomplete: Vec<PathBuf>,
    /// The modes of roots that were touched.
    root_modes: BTreeMap<PathBuf, u32>,
}

#[derive(Debug)]
struct Touched {
    before: Before,
    worth: CaptureClass,
    /// If a directory is there in the end, all that is in it came with it.
    whole: bool,
    /// The directory that was there was gone at some time.
    vacated: bool,
}

/// What was there before.
#[derive(Debug)]
enum Before {
    Nothing,
    Kept(Version),
    /// A file that is not kept.
    Lost(Stamp, NotKept),
    Directory(DirectoryStamp),
    /// A FIFO, a socket or a device; never kept.
    Other,
}

/// What a capture asks its owner at [`ChangeCapture::settle`].
pub struct Settling<'a> {
    /// Returns the class of a path. The second argument is whether it is a directory.
    pub class: &'a dyn Fn(&Path, bool) -> CaptureClass,
    /// Whether no descriptor and no mapping can write a file that is open for reading here. Then the command does
    /// not change it any more without another call of [`ChangeCapture::touch`].
    pub has_no_writer: &'a dyn Fn(BorrowedFd<'_>) -> bool,
}

/// Tells what a path is worth. The second argument is whether it is a directory.
type Judge<'a> = &'a dyn Fn(&Path, bool) -> CaptureClass;

impl Touched {
    fn new(before: Before, worth: CaptureClass, whole: bool) -> Touched {
        Touched { before, worth, whole, vacated: false }
    }

    /// Whether a directory that is there now is another than there was, so that all in it is new.
    fn is_new_directory(&self, now: &Standing) -> bool {
        match (&self.before, now) {
            (Before::Directory(was), Standing::Directory(now)) => {
                self.vacated || was.identity != now.identity
            }
            _ => true,
        }
    }
}

/// What has changed, since it was settled last.
#[derive(Debug, Default)]
pub struct CapturedChanges {
    /// The number of the change in the journal; nothing, if there is none or nothing of it could be kept.
    pub id: Option<u64>,
    /// Each file, in the order of the paths.
    pub files: Vec<ChangedFile>,
    /// Why it could not be put into the journal.
    pub failed: Option<FsError>,
    /// Directories that were made and have no changed file in them.
    pub made: Vec<PathBuf>,
    /// Directories that were removed and had no changed file in them.
    pub removed: Vec<PathBuf>,
    /// Directories that were renamed and had more files in them than are kept.
    pub incomplete: Vec<PathBuf>,
    /// Files that were modified and have other names (hard links), which were modified with them.
    pub shared: Vec<PathBuf>,
    /// Directories with another mode, which is not undone.
    pub modes: Vec<PathBuf>,
}

/// A file or symlink that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its real path.
    pub path: PathBuf,
    /// What has happened to it.
    pub action: Action,
    /// Whether it was worth little.
    pub ignored: bool,
    /// Why that cannot be taken back.
    pub lost: Option<NotKept>,
}

/// What has happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// It was not there before.
    Created,
    /// It says something else, or has another mode.
    Modified,
    /// It is not there any more.
    Deleted,
}

impl ChangeCapture {
    /// Of somebody who has changed nothing yet. Without a journal what changes is seen and not kept.
    pub fn new(
        workspace: Workspace,
        journal: Option<Journal>,
        about: About,
        measure: CaptureLimits,
    ) -> ChangeCapture {
        let (about, state) = (Mutex::new(about), Mutex::default());
        ChangeCapture { workspace, journal, about, measure, state }
    }

    /// What is at a real path is about to be changed, or something is about to be made there. If a directory
    /// is there, then only as a `whole`: it is renamed. `worth` is asked for the files that this means.
    pub fn touch(&self, path: &Path, whole: bool, worth: Judge<'_>) {
        let mut state = self.lock();
        let Some(spot) = Spot::of(&self.workspace, path) else {
            if let Some(mode) = Spot::root_mode(&self.workspace, path) {
                state.root_modes.entry(path.to_owned()).or_insert(mode);
            }
            return;
        };
        if let Some(known) = state.touched.get_mut(path) {
            known.whole |= whole;
            known.vacated |= matches!(spot.look(), Standing::Nothing);
            return;
        }
        let standing = spot.look();
        let is_directory = matches!(standing, Standing::Directory(_));
        if is_directory && whole {
            let (beneath, complete) = spot.beneath(MAX_BENEATH);
            if !complete {
                state.incomplete.push(path.to_owned());
            }
            for file in beneath {
                if let Some(spot) = Spot::of(&self.workspace, &file) {
                    let standing = spot.look();
                    let worth = worth(&file, matches!(standing, Standing::Directory(_)));
                    self.touch_one(&mut state, (&spot, standing), worth, false);
                }
            }
        }
        self.touch_one(&mut state, (&spot, standing), worth(path, is_directory), whole);
    }

    /// Whether what is at this path was about to be changed, and is not settled yet.
    pub fn has_touched(&self, path: &Path) -> bool {
        self.lock().touched.contains_key(path)
    }

    /// What a file said before it was touched, if that is kept.
    pub fn kept(&self, path: &Path) -> Option<Version> {
        match self.lock().touched.get(path)?.before {
            Before::Kept(version) => Some(version),
            Before::Nothing | Before::Directory(_) | Before::Lost(..) | Before::Other => None,
        }
    }

    /// Compares the touched files with what they were, adds the differences to the journal, and starts over. A
    /// command that still runs may have files open: those that have a writer are compared again the next time.
    /// Later changes of the others are not the command's, unless it touches them again.
    pub fn settle(&self, still_runs: bool, settling: &Settling<'_>) -> CapturedChanges {
        let mut state = std::mem::take(&mut *self.lock());
        let mut settled = CapturedChanges::default();
        let (mut effects, mut open) = (Effects::default(), Vec::new());
        self.add_what_came_along(&mut state);
        settled.incomplete = std::mem::take(&mut state.incomplete);
        let root_modes = std::mem::take(&mut state.root_modes);
        let State { touched, spent, note, .. } = &mut state;
        for (path, touched) in touched {
            let Some(spot) = Spot::of(&self.workspace, path) else { continue };
            let now = spot.look();
            let is_file = matches!(now, Standing::File { .. });
            let is_shared = matches!(&now, Standing::File { stamp } if stamp.is_shared);
            // Asked before the content is read: a writer that is gone by then has written all of it.
            let has_writer =
                || !spot.open().is_some_and(|file| (settling.has_no_writer)(file.as_fd()));
            if still_runs && is_file && has_writer() {
                open.push((path.clone(), touched.worth));
            }
            match (&touched.before, &now) {
                (Before::Directory(was), Standing::Directory(now)) => {
                    if was.mode != now.mode && was.identity == now.identity {
                        settled.modes.push(path.clone());
                    }
                }
                (Before::Directory(was), _) => {
                    effects.removed.push(KeptDirectory::new(path, was.mode));
                }
                (_, Standing::Directory(_)) => effects.made.push(KeptPath::new(path)),
                _ => {}
            }
            let compared = self.compare(&spot, &touched.before, now, touched.worth, spent);
            let Some((action, outcome)) = compared else { continue };
            let (change, lost) = match outcome {
                Ok(change) => (Some(change), None),
                Err(lost) => (None, Some(lost)),
            };
            if is_shared && action == Action::Modified {
                settled.shared.push(path.clone());
            }
            let ignored = touched.worth != CaptureClass::Much;
            if lost.is_some() {
                effects.not_kept.push(KeptPath::new(path));
            }
            settled.files.push(ChangedFile { path: path.clone(), action, ignored, lost });
            effects.files.extend(change);
        }
        for (root, mode) in root_modes {
            if Spot::root_mode(&self.workspace, &root).is_some_and(|now| now != mode) {
                settled.modes.push(root);
            }
        }
        effects.not_kept.extend(settled.modes.iter().map(|path| KeptPath::new(path)));
        settled.made = settled.without_files(effects.made.iter().map(KeptPath::path));
        settled.removed = settled.without_files(effects.removed.iter().map(KeptDirectory::path));
        let mut directories = settled.made.iter().chain(&settled.removed).chain(&settled.modes);
        effects.only_ignored = settled.files.iter().all(|file| file.ignored)
            && directories.all(|directory| (settling.class)(directory, true) != CaptureClass::Much);
        if let Some(journal) = &self.journal
            && !effects.is_empty()
        {
            let undoable = !effects.has_nothing_to_undo();
            match journal.add(self.about(), effects, note.as_ref()) {
                Ok(id) => settled.id = undoable.then_some(id),
                Err(error) => settled.failed = Some(error),
            }
        }
        // A file that was kept just now is kept at no cost once more: the journal has its content.
        for (path, worth) in open {
            self.touch(&path, false, &|_, _| worth);
        }
        // What could not be put into the journal stays noted, and the next start tries again.
        if settled.failed.is_none()
            && let Some(note) = note.take()
        {
            note.remove();
        }
        settled
    }

    /// Names the command whose changes these are, once it has an id.
    pub fn name_shell(&self, id: &str) {
        let mut about = self.about.lock().unwrap_or_else(PoisonError::into_inner);
        about.shell = Some(id.to_owned());
    }

    /// What a crash interrupted: as noted, up to what is there now.
    pub(crate) fn of_note(
        workspace: &Workspace,
        journal: &Journal,
        note: Followed,
        noted: Vec<Entry>,
        about: About,
    ) -> ChangeCapture {
        let footprint = ChangeCapture::new(
            workspace.clone(),
            Some(journal.clone()),
            about,
            CaptureLimits::default(),
        );
        let mut state = footprint.lock();
        state.note = Some(note);
        for Entry { files, removed, .. } in noted {
            for file in files {
                let before = file.before.map_or(Before::Nothing, Before::Kept);
                state.touched.insert(file.path(), Touched::new(before, CaptureClass::Much, false));
            }
            for directory in removed {
                let stamp = DirectoryStamp { identity: (0, 0), mode: directory.mode };
                let touched = Touched::new(Before::Directory(stamp), CaptureClass::Much, false);
                state.touched.insert(directory.path(), touched);
            }
        }
        drop(state);
        footprint
    }

    fn touch_one(
        &self,
        state: &mut State,
        (spot, standing): (&Spot, Standing),
        worth: CaptureClass,
        whole: bool,
    ) {
        let path = spot.path();
        if worth == CaptureClass::Nothing || state.touched.contains_key(&path) {
            return;
        }
        // What is in a directory that was not there before, was not there either.
        let is_new = path.ancestors().skip(1).any(|above| self.is_new_directory(state, above));
        let before = match standing {
            Standing::Nothing => Before::Nothing,
            _ if is_new => Before::Nothing,
            Standing::File { stamp, .. } => match self.keep(state, spot, worth) {
                Ok(version) => Before::Kept(version),
                Err(lost) => Before::Lost(stamp, lost),
            },
            Standing::Link => match self.keep(state, spot, worth) {
                Ok(version) => Before::Kept(version),
                Err(_) => Before::Other,
            },
            Standing::Directory(stamp) => Before::Directory(stamp),
            Standing::Other | Standing::Unknown(_) => Before::Other,
        };
        // Without the note it is forgotten if the process dies now, and only then.
        let _ = match &before {
            Before::Nothing => {
                self.note(state, |note| note.add_file(FileChange::new(&path, None, None)))
            }
            Before::Directory(stamp) => {
                self.note(state, |note| note.add_directory(KeptDirectory::new(&path, stamp.mode)))
            }
            _ => Ok(()),
        };
        state.touched.insert(path, Touched::new(before, worth, whole));
    }

    /// Whether something that was touched has become a directory since, or another one.
    fn is_new_directory(&self, state: &State, path: &Path) -> bool {
        let Some(touched) = state.touched.get(path) else { return false };
        let standing = || Spot::of(&self.workspace, path).map(|spot| spot.look());
        touched.is_new_directory(&standing().unwrap_or(Standing::Nothing))
    }

    /// Keeps what a file says before it is changed.
    fn keep(
        &self,
        state: &mut State,
        spot: &Spot,
        worth: CaptureClass,
    ) -> Result<Version, NotKept> {
        let journal = self.journal.as_ref().ok_or(NotKept::NoJournal)?;
        let (content, mode) = state.spent.read(&self.measure, spot, worth)?;
        let version = Version::of(&content, mode);
        // First what it is called, so that nobody takes it for something that nobody needs.
        let change = FileChange::new(&spot.path(), Some(version), None);
        self.note(state, |note| note.add_file(change)).map_err(NotKept::Failed)?;
        journal.keep(&content).map_err(NotKept::Failed)?;
        Ok(version)
    }

    fn note(
        &self,
        state: &mut State,
        add: impl FnOnce(&mut Followed) -> Result<(), FsError>,
    ) -> Result<(), FsError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let note = match &mut state.note {
            Some(note) => note,
            None => state.note.insert(journal.follow(&self.about())?),
        };
        add(note)
    }

    fn about(&self) -> About {
        self.about.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is in directories that were renamed to where they are: nobody has named it.
    fn add_what_came_along(&self, state: &mut State) {
        let directories: Vec<(PathBuf, CaptureClass, Spot)> = state
            .touched
            .iter()
            .filter(|(_, touched)| touched.whole)
            .filter_map(|(path, touched)| {
                let spot = Spot::of(&self.workspace, path)?;
                let now = spot.look();
                let came = matches!(now, Standing::Directory(_)) && touched.is_new_directory(&now);
                came.then(|| (path.clone(), touched.worth, spot))
            })
            .collect();
        for (path, worth, spot) in directories {
            let (beneath, complete) = spot.beneath(MAX_BENEATH);
            if !complete {
                state.incomplete.push(path);
            }
            for file in beneath {
                let new = Touched::new(Before::Nothing, worth, false);
                state.touched.entry(file).or_insert(new);
            }
        }
    }

    /// What has happened to a file, and the change that it is; or why that cannot be taken back.
    fn compare(
        &self,
        spot: &Spot,
        before: &Before,
        now: Standing,
        worth: CaptureClass,
        spent: &mut Spent,
    ) -> Option<(Action, Result<FileChange, NotKept>)> {
        let path = spot.path();
        let gone =
            |version: Version| (Action::Deleted, Ok(FileChange::new(&path, Some(version), None)));
        let there = matches!(now, Standing::File { .. } | Standing::Link);
        match (before, now) {
            (Before::Other, Standing::Unknown(_)) => None,
            (Before::Nothing | Before::Directory(_), Standing::Unknown(errno)) => {
                Some((Action::Created, Err(NotKept::Unreadable(errno))))
            }
            // Whether it is still there, and what it says, undoing could not recognise.
            (_, Standing::Unknown(errno)) => {
                Some((Action::Modified, Err(NotKept::Unreadable(errno))))
            }
            (Before::Nothing | Before::Directory(_), Standing::Other) => {
                Some((Action::Created, Err(NotKept::NoFile)))
            }
            (Before::Nothing | Before::Directory(_), _) if there => {
                let after = self.keep_now(spot, worth, spent);
                let change = after.map(|after| FileChange::new(&path, None, Some(after)));
                Some((Action::Created, change))
            }
            (Before::Nothing | Before::Directory(_), _) => None,
            (Before::Kept(was), _) if there => {
                let after = match self.keep_now(spot, worth, spent) {
                    Ok(after) if after == *was => return None,
                    after => after,
                };
                let change = after.map(|after| FileChange::new(&path, Some(*was), Some(after)));
                Some((Action::Modified, change))
            }
            (Before::Kept(was), _) => Some(gone(*was)),
            (Before::Lost(was, _), Standing::File { stamp, .. }) if stamp == *was => None,
            (Before::Lost(_, lost), _) if there => Some((Action::Modified, Err(lost.clone()))),
            (Before::Lost(_, lost), _) => Some((Action::Deleted, Err(lost.clone()))),
            (Before::Other, Standing::Other) => None,
            (Before::Other, _) if there => Some((Action::Modified, Err(NotKept::NoFile))),
            (Before::Other, _) => Some((Action::Deleted, Err(NotKept::NoFile))),
        }
    }

    /// Keeps what a file says now, which undoing must recognise and redoing bring back.
    fn keep_now(
        &self,
        spot: &Spot,
        worth: CaptureClass,
        spent: &mut Spent,
    ) -> Result<Version, NotKept> {
        let journal = self.journal.as_ref().ok_or(NotKept::NoJournal)?;
        let (content, mode) = spent.read(&self.measure, spot, worth)?;
        journal.keep(&content).map_err(NotKept::Failed)?;
        Ok(Version::of(&content, mode))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CapturedChanges {
    /// Those of some directories that have no changed file in them.
    fn without_files(&self, directories: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
        // Files are in the order of their paths, so those in a directory follow it at once.
        let has_files = |directory: &PathBuf| {
            let after = self.files.partition_point(|file| file.path <= *directory);
            self.files.get(after).is_some_and(|file| file.path.starts_with(directory))
        };
        directories.filter(|directory| !has_files(directory)).collect()
    }
}
