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

mod measure;
mod spot;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use self::measure::{Lost, Measure, Share, Worth};

use self::measure::Spent;
use self::spot::{Spot, Standing};
use crate::error::FsError;
use crate::journal::{About, FileChange, Followed, Journal, KeptPath, Version};
use crate::tree::Stamp;
use crate::workspace::Workspace;

/// As many names in a directory that is renamed are looked at.
const MAX_BENEATH: usize = 200_000;

/// What a command, or somebody else, is changing.
#[derive(Debug)]
pub struct Footprint {
    workspace: Workspace,
    journal: Option<Journal>,
    about: About,
    measure: Measure,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    touched: BTreeMap<PathBuf, Touched>,
    spent: Spent,
    note: Option<Followed>,
    /// Directories that were renamed, and had more in them than is looked at.
    incomplete: Vec<PathBuf>,
}

#[derive(Debug)]
struct Touched {
    before: Before,
    worth: Worth,
    /// If a directory is there in the end, all that is in it came with it.
    whole: bool,
}

/// What was there before.
#[derive(Debug)]
enum Before {
    Nothing,
    Kept(Version),
    /// A file that is not kept.
    Lost(Stamp, Lost),
    /// A link or another thing that is no file; never kept.
    Other,
}

/// What has changed, since it was settled last.
#[derive(Debug, Default)]
pub struct Settled {
    /// The number of the change in the journal; nothing, if there is none or nothing of it could be kept.
    pub id: Option<u64>,
    /// Each file, in the order of the paths.
    pub files: Vec<ChangedFile>,
    /// Why it could not be put into the journal.
    pub failed: Option<FsError>,
    /// Directories that were renamed and had more files in them than are kept.
    pub incomplete: Vec<PathBuf>,
    /// Files that were modified and have other names (hard links), which were modified with them.
    pub shared: Vec<PathBuf>,
}

/// A file that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its real path.
    pub path: PathBuf,
    /// What has happened to it.
    pub action: Action,
    /// Whether it was worth little.
    pub ignored: bool,
    /// Why that cannot be taken back.
    pub lost: Option<Lost>,
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

impl Footprint {
    /// Of somebody who has changed nothing yet. Without a journal what changes is seen and not kept.
    pub fn new(
        workspace: Workspace,
        journal: Option<Journal>,
        about: About,
        measure: Measure,
    ) -> Footprint {
        Footprint { workspace, journal, about, measure, state: Mutex::default() }
    }

    /// What is at a real path is about to be changed, or something is about to be made there. If a directory
    /// is there, then only as a `whole`: it is renamed. `worth` is asked for the files that this means.
    pub fn touch(&self, path: &Path, whole: bool, worth: &dyn Fn(&Path) -> Worth) {
        let Some(spot) = Spot::of(&self.workspace, path) else { return };
        let mut state = self.lock();
        if state.touched.contains_key(path) {
            return;
        }
        let standing = spot.look();
        if matches!(standing, Standing::Directory) && whole {
            let (beneath, complete) = spot.beneath(MAX_BENEATH);
            if !complete {
                state.incomplete.push(path.to_owned());
            }
            for file in beneath {
                if let Some(spot) = Spot::of(&self.workspace, &file) {
                    self.touch_one(&mut state, (&spot, spot.look()), worth(&file), false);
                }
            }
        }
        self.touch_one(&mut state, (&spot, standing), worth(path), whole);
    }

    /// What a file said before it was touched, if that is kept.
    pub fn kept(&self, path: &Path) -> Option<Version> {
        match self.lock().touched.get(path)?.before {
            Before::Kept(version) => Some(version),
            Before::Nothing | Before::Lost(..) | Before::Other => None,
        }
    }

    /// Compares, puts what differs into the journal, and begins anew. If the other still runs, it may still
    /// have files open: those that were touched are compared once more the next time.
    pub fn settle(&self, still_runs: bool) -> Settled {
        let mut state = std::mem::take(&mut *self.lock());
        let mut settled = Settled::default();
        let (mut changes, mut directories, mut open) = (Vec::new(), Vec::new(), Vec::new());
        self.add_what_came_along(&mut state);
        settled.incomplete = std::mem::take(&mut state.incomplete);
        let State { touched, spent, note, .. } = &mut state;
        for (path, touched) in touched {
            let Some(spot) = Spot::of(&self.workspace, path) else { continue };
            if still_runs && matches!(spot.look(), Standing::File { .. }) {
                open.push((path.clone(), touched.worth));
            }
            let (file, change) = match (&touched.before, spot.look()) {
                (Before::Nothing, Standing::Directory) => {
                    directories.push(KeptPath::new(path));
                    continue;
                }
                (before, now) => match self.compare(&spot, before, now, touched.worth, spent) {
                    Some((action, outcome)) => {
                        let (change, lost) = match outcome {
                            Ok(change) => (Some(change), None),
                            Err(lost) => (None, Some(lost)),
                        };
                        let ignored = touched.worth != Worth::Much;
                        (ChangedFile { path: path.clone(), action, ignored, lost }, change)
                    }
                    None => continue,
                },
            };
            let is_shared = matches!(spot.look(), Standing::File { stamp } if stamp.is_shared);
            if is_shared && file.action == Action::Modified {
                settled.shared.push(path.clone());
            }
            settled.files.push(file);
            changes.extend(change);
        }
        if let Some(journal) = &self.journal
            && !(changes.is_empty() && directories.is_empty())
        {
            let noted = journal.add(self.about.clone(), changes, directories, note.as_ref());
            match noted {
                Ok(id) => settled.id = Some(id),
                Err(error) => settled.failed = Some(error),
            }
        }
        // A file that was kept just now is kept at no cost once more: the journal has its content.
        for (path, worth) in open {
            self.touch(&path, false, &|_| worth);
        }
        // What could not be put into the journal stays noted, and the next start tries again.
        if settled.failed.is_none()
            && let Some(note) = note.take()
        {
            note.remove();
        }
        settled
    }

    /// What a crash interrupted: as noted, up to what is there now.
    pub(crate) fn of_note(
        workspace: &Workspace,
        journal: &Journal,
        note: Followed,
        files: Vec<FileChange>,
        about: About,
    ) -> Footprint {
        let footprint =
            Footprint::new(workspace.clone(), Some(journal.clone()), about, Measure::default());
        let mut state = footprint.lock();
        state.note = Some(note);
        for file in files {
            let before = file.before.map_or(Before::Nothing, Before::Kept);
            let touched = Touched { before, worth: Worth::Much, whole: false };
            state.touched.insert(file.path(), touched);
        }
        drop(state);
        footprint
    }

    fn touch_one(
        &self,
        state: &mut State,
        (spot, standing): (&Spot, Standing),
        worth: Worth,
        whole: bool,
    ) {
        let path = spot.path();
        if worth == Worth::Nothing || state.touched.contains_key(&path) {
            return;
        }
        // What is in a directory that was not one before, was not there either.
        let is_new = path.ancestors().skip(1).any(|above| state.touched.contains_key(above));
        let before = match standing {
            Standing::Directory => return,
            Standing::Nothing => Before::Nothing,
            _ if is_new => Before::Nothing,
            Standing::File { stamp, .. } => match self.keep(state, spot, worth) {
                Ok(version) => Before::Kept(version),
                Err(lost) => Before::Lost(stamp, lost),
            },
            Standing::Other => Before::Other,
        };
        if matches!(before, Before::Nothing) {
            // Without the note it is forgotten if the process dies now, and only then.
            let _ = self.note(state, &path, None);
        }
        state.touched.insert(path, Touched { before, worth, whole });
    }

    /// Keeps what a file says before it is changed.
    fn keep(&self, state: &mut State, spot: &Spot, worth: Worth) -> Result<Version, Lost> {
        let journal = self.journal.as_ref().ok_or(Lost::NoJournal)?;
        let (content, mode) = state.spent.read(&self.measure, spot, worth)?;
        let version = Version::of(&content, mode);
        // First what it is called, so that nobody takes it for something that nobody needs.
        self.note(state, &spot.path(), Some(version)).map_err(Lost::Failed)?;
        journal.keep(&content).map_err(Lost::Failed)?;
        Ok(version)
    }

    fn note(&self, state: &mut State, path: &Path, before: Option<Version>) -> Result<(), FsError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let note = match &mut state.note {
            Some(note) => note,
            None => state.note.insert(journal.follow(&self.about)?),
        };
        note.add(FileChange::new(path, before, None))
    }

    /// What is in directories that were renamed to where nothing was: nobody has named them.
    fn add_what_came_along(&self, state: &mut State) {
        let directories: Vec<(PathBuf, Worth)> = state
            .touched
            .iter()
            .filter(|(_, touched)| touched.whole && matches!(touched.before, Before::Nothing))
            .map(|(path, touched)| (path.clone(), touched.worth))
            .collect();
        for (path, worth) in directories {
            let Some(spot) = Spot::of(&self.workspace, &path) else { continue };
            if !matches!(spot.look(), Standing::Directory) {
                continue;
            }
            let (beneath, complete) = spot.beneath(MAX_BENEATH);
            if !complete {
                state.incomplete.push(path.clone());
            }
            for file in beneath {
                let new = Touched { before: Before::Nothing, worth, whole: false };
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
        worth: Worth,
        spent: &mut Spent,
    ) -> Option<(Action, Result<FileChange, Lost>)> {
        let path = spot.path();
        let gone =
            |version: Version| (Action::Deleted, Ok(FileChange::new(&path, Some(version), None)));
        match (before, now) {
            (Before::Nothing, Standing::File { .. }) => {
                let after = self.keep_now(spot, worth, spent);
                let change = after.map(|after| FileChange::new(&path, None, Some(after)));
                Some((Action::Created, change))
            }
            (Before::Nothing, Standing::Other) => Some((Action::Created, Err(Lost::NoFile))),
            (Before::Nothing, _) => None,
            (Before::Kept(was), Standing::File { .. }) => {
                let after = match self.keep_now(spot, worth, spent) {
                    Ok(after) if after == *was => return None,
                    after => after,
                };
                let change = after.map(|after| FileChange::new(&path, Some(*was), Some(after)));
                Some((Action::Modified, change))
            }
            (Before::Kept(was), _) => Some(gone(*was)),
            (Before::Lost(was, _), Standing::File { stamp, .. }) if stamp == *was => None,
            (Before::Lost(_, lost), Standing::File { .. }) => {
                Some((Action::Modified, Err(lost.clone())))
            }
            (Before::Lost(_, lost), _) => Some((Action::Deleted, Err(lost.clone()))),
            (Before::Other, Standing::Nothing) => Some((Action::Deleted, Err(Lost::NoFile))),
            (Before::Other, Standing::File { .. }) => Some((Action::Modified, Err(Lost::NoFile))),
            (Before::Other, _) => None,
        }
    }

    /// Keeps what a file says now, which undoing must recognise and redoing bring back.
    fn keep_now(&self, spot: &Spot, worth: Worth, spent: &mut Spent) -> Result<Version, Lost> {
        let journal = self.journal.as_ref().ok_or(Lost::NoJournal)?;
        let (content, mode) = spent.read(&self.measure, spot, worth)?;
        journal.keep(&content).map_err(Lost::Failed)?;
        Ok(Version::of(&content, mode))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
