//! Changing: the only ways in which a tool writes.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_fs::{
    About, Change, ChangeRecorder, Committed, Content, FsErrorKind, KeptPath, Locks, NewMode,
    ResolvedPath, Step, read_entry,
};
use toolcrib_policy::Effect;

use super::Cx;
use crate::error::{Error, ErrorKind};
use crate::metadata_field::MetadataField;
use crate::path_access::{entry, require_restorable, resolve};
use crate::seen_files::Seen;

/// Somebody who does not hold the lock changes the file again and again: so often is tried.
const TRIES: usize = 5;

/// What is to become of a file.
#[derive(Debug, Clone)]
pub struct FileEdit {
    /// The file.
    pub path: PathBuf,
    /// What it must say now; nothing, if it must not be there.
    pub was: Option<Content>,
    /// What it will say; nothing, if it is to go.
    pub now: Option<Content>,
    /// Its mode, if that is to be another.
    pub mode: Option<NewMode>,
}

/// A file that was changed by what it said.
#[derive(Debug)]
pub struct Updated {
    /// What it said; nothing, if it was not there.
    pub was: Option<Content>,
    /// What it says.
    pub now: Content,
    /// What there is to say about the change.
    pub changed: Changed,
}

/// What takes changes back.
#[derive(Debug)]
pub(crate) struct Restoring {
    /// Files and symlinks, by their real paths.
    pub(crate) edits: Vec<FileEdit>,
    /// The changes that are taken back.
    pub(crate) undoes: Vec<u64>,
    /// Only what they did at this path and beneath it.
    pub(crate) only: Option<PathBuf>,
    /// Protected files that get back what they said before.
    pub(crate) protected: Vec<PathBuf>,
    /// Directories to make, with their modes, each before those in it.
    pub(crate) needed: Vec<(PathBuf, u32)>,
    /// Directories that go if they are empty, each before those in it.
    pub(crate) unneeded: Vec<PathBuf>,
}

/// Directories that are made and removed with a change.
#[derive(Default)]
struct Directories {
    needed: Vec<(ResolvedPath, u32)>,
    unneeded: Vec<ResolvedPath>,
}

/// What a file said, nothing if it was not there, and what it says.
pub(crate) type Versions = (Option<Content>, Content);

/// What there is to say about a change.
#[derive(Debug, Clone, Default)]
pub struct Changed {
    /// Its number in the journal, if there is one.
    pub id: Option<u64>,
    /// What its caller should know, each a sentence.
    pub notes: Vec<String>,
    /// A file had another name (hard link), which keeps the old content.
    pub hard_link_broken: bool,
    /// A file was written in place, not replaced at once.
    pub in_place: bool,
}

impl Cx<'_> {
    /// Changes a file by what it says, under its lock, if the call said that it would write it: `change`
    /// gets what is there, nothing if there is no file, and answers what is to be there. It may be
    /// asked again, if somebody changed the file meanwhile. In a dry run nothing is written.
    pub fn update(
        &self,
        path: impl AsRef<Path>,
        mut change: impl FnMut(Option<&Content>) -> Result<Vec<u8>, Error>,
    ) -> Result<Updated, Error> {
        let path = path.as_ref();
        let (mut files, changed) =
            self.update_all(&[path], |was| Ok(vec![change(was[0].as_ref())?]))?;
        match files.pop() {
            Some((was, now)) => Ok(Updated { was, now, changed }),
            None => {
                Err(Error::new(ErrorKind::Internal, "one file was asked for, and none answered"))
            }
        }
    }

    /// The same for several files, all of them or none: `change` gets what each says and answers what each
    /// is to say. Answers that with what there is to say about the change.
    pub(crate) fn update_all(
        &self,
        paths: &[&Path],
        mut change: impl FnMut(&[Option<Content>]) -> Result<Vec<Vec<u8>>, Error>,
    ) -> Result<(Vec<Versions>, Changed), Error> {
        self.rework(paths, |was| {
            let now = change(was)?.into_iter().map(Content::from);
            let files: Vec<Versions> = was.iter().cloned().zip(now).collect();
            let edits = files.iter().zip(paths).filter_map(|((was, now), path)| {
                let (path, was, now) = (path.to_path_buf(), was.clone(), Some(now.clone()));
                (was != now).then_some(FileEdit { path, was, now, mode: None })
            });
            Ok((edits.collect(), files))
        })
    }

    /// Changes some of these files, all at once or none: `change` gets what each says, and answers what is
    /// to become of those that change, each by its path as it stands here, with whatever else the caller
    /// wants to know. It may be asked again, if somebody changed a file meanwhile.
    pub(crate) fn rework<T>(
        &self,
        paths: &[&Path],
        mut change: impl FnMut(&[Option<Content>]) -> Result<(Vec<FileEdit>, T), Error>,
    ) -> Result<(T, Changed), Error> {
        let mut tries = 0;
        loop {
            let places = paths.iter().map(|path| self.place_to_write(path));
            let places = places.collect::<Result<Vec<_>, _>>()?;
            let locks = self.lock(&places)?;
            let was = places.iter().map(|place| self.read_at(place));
            let was = was.collect::<Result<Vec<_>, _>>()?;
            let (edits, answer) = change(&was)?;
            if edits.is_empty() {
                return Ok((answer, Changed::default()));
            }
            let by_path: HashMap<&Path, ResolvedPath> = paths.iter().copied().zip(places).collect();
            let place_of = |edit: FileEdit| match by_path.get(edit.path.as_path()) {
                Some(place) => Ok((edit, place.clone())),
                None => Err(Error::new(ErrorKind::Internal, "a file changed that was not read")),
            };
            let edits = edits.into_iter().map(place_of).collect::<Result<Vec<_>, _>>()?;
            let known = self.known_after(&edits);
            tries += 1;
            match self.make(edits, locks.as_ref(), self.about.clone(), Directories::default()) {
                Err(error) if error.kind() == ErrorKind::Stale && tries < TRIES => {}
                made => {
                    let changed = made?;
                    self.remember(known);
                    return Ok((answer, changed));
                }
            }
        }
    }

    /// Takes changes back, all at once or nothing, if the call said that it would write whatever a change has
    /// written. The session is not shown what the files say then. In a dry run nothing is written.
    pub(crate) fn restore(&self, restoring: Restoring) -> Result<Changed, Error> {
        let Restoring { edits, undoes, only, protected, needed, unneeded } = restoring;
        let protected: HashSet<&PathBuf> = protected.iter().collect();
        let places = edits.iter().map(|edit| {
            let place = self.entry(&edit.path)?;
            match protected.contains(&edit.path) {
                true => Ok(place),
                false => require_restorable(self.runtime, &place).map(|()| place),
            }
        });
        let places = places.collect::<Result<Vec<_>, _>>()?;
        let locks = self.lock(&places)?;
        let only = only.as_deref().map(KeptPath::new);
        let about = About { undoes, only, ..self.about.clone() };
        let directories = Directories {
            needed: needed
                .iter()
                .map(|(path, mode)| Ok((self.entry(path)?, *mode)))
                .collect::<Result<_, Error>>()?,
            // One that cannot be found any more stays, as one does that is not empty.
            unneeded: unneeded.iter().flat_map(|path| self.entry(path)).collect(),
        };
        let edits: Vec<(FileEdit, ResolvedPath)> = edits.into_iter().zip(places).collect();
        let known = edits.iter().filter_map(|edit| self.known_restored(edit)).collect();
        let changed = self.make(edits, locks.as_ref(), about, directories)?;
        self.remember(known);
        Ok(changed)
    }

    /// The file or symlink that a change was made at, not followed, though its name be protected.
    pub(crate) fn entry(&self, path: &Path) -> Result<ResolvedPath, Error> {
        // The call must have said that it writes whatever a change has written.
        self.place(Effect::Write, Path::new("."))?;
        entry(self.runtime, self.session, path)
    }

    /// What is at a place of [`Cx::entry`]; nothing, if nothing is there.
    pub(crate) fn read_entry(&self, place: &ResolvedPath) -> Result<Option<Content>, Error> {
        read_entry(place, self.limits().edit_bytes).map_err(|error| self.fs_error(&error))
    }

    /// The call itself has said all of what a file says now.
    pub(crate) fn knows_whole(&self, real: &Path, now: &Content) {
        if !self.dry_run() {
            self.session().saw(real.to_owned(), Seen::whole(now));
        }
    }

    /// What a file says, if the call said that it would read or write it; nothing, if there is none.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<Content>, Error> {
        self.read_at(&self.place(Effect::Read, path)?)
    }

    /// The mode bits that a file has, if there is one.
    pub(crate) fn mode(&self, path: &Path) -> Result<Option<u32>, Error> {
        Ok(self.place(Effect::Read, path)?.mode())
    }

    fn read_at(&self, place: &ResolvedPath) -> Result<Option<Content>, Error> {
        if place.kind().is_none() {
            return Ok(None);
        }
        let bytes = self.open_at(place)?.read_all(self.limits().edit_bytes)?;
        Ok(Some(bytes.into()))
    }

    /// A place as it is now, which must be the one that was granted.
    fn place_to_write(&self, path: &Path) -> Result<ResolvedPath, Error> {
        let granted = self.place(Effect::Write, path)?;
        let place = resolve(self.runtime, self.session, Effect::Write, path)?;
        if place.path() == granted.path() {
            return Ok(place);
        }
        let message = format!("{} leads elsewhere now", self.show_place(&granted));
        Err(Error::new(ErrorKind::Stale, message).hint("Nothing was written. Try again."))
    }

    fn lock(&self, places: &[ResolvedPath]) -> Result<Option<Locks>, Error> {
        if self.dry_run() {
            return Ok(None);
        }
        Locks::acquire(places.iter()).map(Some).map_err(|error| self.fs_error(&error))
    }

    fn make(
        &self,
        edits: Vec<(FileEdit, ResolvedPath)>,
        locks: Option<&Locks>,
        about: About,
        directories: Directories,
    ) -> Result<Changed, Error> {
        self.check_cancelled()?;
        self.note_basis(&edits)?;
        let there = edits.iter().filter(|(edit, _)| edit.now.is_some());
        let written: Vec<PathBuf> = there.map(|(_, place)| place.path()).collect();
        let outside = edits.iter().map(|(_, place)| place).filter(|place| place.is_outside());
        let outside: Vec<PathBuf> = outside.map(ResolvedPath::path).collect();
        let change = Change::new(edits.into_iter().map(step).collect())
            .hard_links(self.runtime.hard_links())
            .needed_directories(directories.needed)
            .unneeded_directories(directories.unneeded);
        let outcome = match locks {
            None => change.check().map(|()| Committed::default()),
            Some(locks) => {
                let journal = self.runtime.journal();
                change.commit(locks, journal.map(|journal| ChangeRecorder { journal, about }))
            }
        };
        let committed = outcome.map_err(|error| {
            let for_caller = self.fs_error(&error);
            match error.kind() {
                FsErrorKind::Stale | FsErrorKind::Unsettled => for_caller,
                _ => for_caller.nothing_written(),
            }
        })?;
        if !self.dry_run() {
            self.written.borrow_mut().extend(written);
            if !outside.is_empty() {
                self.session.changed_outside(committed.id, outside);
            }
        }
        Ok(Changed::of(&committed))
    }

    /// What the session knows of files once these edits are made: a file as a whole, if it is new, or if the
    /// session knew it as a whole before.
    fn known_after(&self, edits: &[(FileEdit, ResolvedPath)]) -> Vec<(PathBuf, Option<Seen>)> {
        let known = |(edit, place): &(FileEdit, ResolvedPath)| {
            let path = place.path();
            let now = edit.now.as_ref().map(|now| {
                let before = self.session().seen(&path).filter(Seen::is_whole);
                let was = edit.was.as_ref().map(Content::hash);
                match was.is_none() || before.map(|before| before.hash) == was {
                    true => Seen::whole(now),
                    false => Seen::of(now),
                }
            });
            (path, now)
        };
        edits.iter().map(known).collect()
    }

    /// What the session knows of a file once it is restored: that it says something else, and not what. A file
    /// that it had not seen stays unseen; one that says again what the session saw is known as it was.
    fn known_restored(
        &self,
        (edit, place): &(FileEdit, ResolvedPath),
    ) -> Option<(PathBuf, Option<Seen>)> {
        let path = place.path();
        let Some(now) = &edit.now else { return Some((path, None)) };
        let before = self.session().seen(&path)?;
        (before.hash != now.hash()).then(|| (path, Some(Seen::of(now))))
    }

    fn remember(&self, known: Vec<(PathBuf, Option<Seen>)>) {
        if self.dry_run() {
            return;
        }
        for (path, now) in known {
            match now {
                Some(now) => self.session().saw(path, now),
                None => self.session().forget(&path),
            }
        }
    }

    /// Notes what the files say that are changed, and holds them to what somebody agreed to.
    fn note_basis(&self, edits: &[(FileEdit, ResolvedPath)]) -> Result<(), Error> {
        for (edit, place) in edits {
            let hash = edit.was.as_ref().map(Content::hash);
            self.basis.borrow_mut().insert(place.path(), hash);
            let Some(agreed) = &self.agreed else { continue };
            if agreed.get(&place.path()) != Some(&hash) {
                let message =
                    format!("{} changed while the question was open", self.show_place(place));
                return Err(Error::new(ErrorKind::Stale, message)
                    .hint("Nothing was written. Call again, to ask about the file as it is now."));
            }
        }
        Ok(())
    }
}

fn step((edit, place): (FileEdit, ResolvedPath)) -> Step {
    let step = Step::new(place, edit.was, edit.now);
    match edit.mode {
        Some(mode) => step.with_mode(mode),
        None => step,
    }
}

/// Metadata of a reply about a change of files.
pub(crate) const CHANGE: &[MetadataField] = &[
    MetadataField::new(
        "change",
        "integer",
        "files were changed and the journal is on",
        "Id of the change, for Undo and History.",
    ),
    MetadataField::new(
        "hard_link_broken",
        "boolean",
        "a changed file had other names",
        "`true`: the other names keep the old content.",
    ),
    MetadataField::new(
        "written_in_place",
        "boolean",
        "a file was written in place (`hard_links = \"write_through\"`)",
        "`true`.",
    ),
];

impl Changed {
    fn of(committed: &Committed) -> Changed {
        let hard_link_broken = committed.files.iter().any(|file| file.hard_link_broken);
        let in_place = committed.files.iter().any(|file| file.in_place);
        let mut notes = Vec::new();
        if hard_link_broken {
            notes.push("It had another name (hard link), which keeps the old content.".to_owned());
        }
        if in_place {
            notes.push(
                "It was written in place, not replaced at once: a reader in that moment may have seen half of it.".to_owned(),
            );
        }
        Changed { id: committed.id, notes, hard_link_broken, in_place }
    }

    /// What programs should know: its number, by which it can be undone, and how files were written, where that
    /// was not by replacing them whole under their only name.
    pub(crate) fn facts(&self) -> Vec<(&'static str, Value)> {
        let mut facts = Vec::new();
        facts.extend(self.id.map(|id| ("change", id.into())));
        facts.extend(self.hard_link_broken.then(|| ("hard_link_broken", true.into())));
        facts.extend(self.in_place.then(|| ("written_in_place", true.into())));
        facts
    }
}
