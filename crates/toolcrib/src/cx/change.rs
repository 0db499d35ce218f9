//! The methods of [`Cx`] that change files.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_fs::{
    About, Change, ChangeRecorder, Committed, Content, FsErrorKind, KeptPath, Locks, NewMode,
    ResolvedPath, Step, read_entry,
};
use toolcrib_policy::Effect;

use super::Cx;
use crate::changed_by::authors;
use crate::error::{Error, ErrorKind};
use crate::metadata_fields::MetadataField;
use crate::path_access::{entry, require_restorable, resolve};
use crate::seen_files::Seen;

/// Retries when a process that ignores our lock keeps changing the file.
const MAX_ATTEMPTS: usize = 5;

/// A change of one file: its content before and after.
#[derive(Debug, Clone)]
pub struct FileEdit {
    /// Path of the file.
    pub path: PathBuf,
    /// Expected current content. `None` if the file must not exist.
    pub was: Option<Content>,
    /// New content. `None` deletes the file.
    pub now: Option<Content>,
    /// New mode. `None` keeps the mode.
    pub mode: Option<NewMode>,
}

/// Result of [`Cx::update`].
#[derive(Debug)]
pub struct Updated {
    /// Previous content. `None` if the file did not exist.
    pub was: Option<Content>,
    /// New content.
    pub now: Content,
    /// Details of the change.
    pub changed: Changed,
}

/// A file of the workspace that a call has edited.
#[derive(Debug, Clone)]
pub(crate) struct EditedFile {
    /// Its resolved path.
    pub(crate) path: PathBuf,
    /// Previous content, also if it was at another path. `None` if the file is new.
    pub(crate) was: Option<Content>,
    /// New content.
    pub(crate) now: Content,
}

/// The edits that revert changes.
#[derive(Debug)]
pub(crate) struct Revert {
    /// Files and symlinks, by resolved path.
    pub(crate) edits: Vec<FileEdit>,
    /// Ids of the reverted changes.
    pub(crate) undoes: Vec<u64>,
    /// Id of the change of which one hunk is reverted.
    pub(crate) hunk_of: Option<u64>,
    /// Number of that hunk in its file, from 0.
    pub(crate) hunk: Option<usize>,
    /// Revert them only at this path and below.
    pub(crate) only: Option<PathBuf>,
    /// Revert them only in these directories. Empty if all of their files are visible.
    pub(crate) within: Vec<PathBuf>,
    /// Protected files whose previous content is restored.
    pub(crate) protected: Vec<PathBuf>,
    /// Directories to create, with their modes, parents first.
    pub(crate) needed: Vec<(PathBuf, u32)>,
    /// Directories to remove if they are empty, parents first.
    pub(crate) unneeded: Vec<PathBuf>,
}

/// Directories that a change creates and removes.
#[derive(Default)]
pub(super) struct Directories {
    pub(super) needed: Vec<(ResolvedPath, Option<u32>)>,
    pub(super) unneeded: Vec<ResolvedPath>,
}

/// Previous content (`None` if the file did not exist) and new content.
pub(crate) type Versions = (Option<Content>, Content);

/// Details of a change.
#[derive(Debug, Clone, Default)]
pub struct Changed {
    /// Id in the journal, if there is a journal.
    pub id: Option<u64>,
    /// Sentences for the caller.
    pub notes: Vec<String>,
    /// A file had a hard link, which keeps the old content.
    pub hard_link_broken: bool,
    /// A file was overwritten in place, which is not atomic.
    pub in_place: bool,
}

impl Cx<'_> {
    /// Changes the content of a file, under its lock.
    ///
    /// `change` receives the current content, or `None` if there is no file, and returns the new content. It is
    /// called again if another process changed the file meanwhile. In a dry run nothing is written.
    ///
    /// # Errors
    ///
    /// Fails if the call has not declared the path for writing, if the file cannot be read or written, if it
    /// keeps changing (kind [`ErrorKind::Stale`]), or if `change` fails.
    ///
    /// # Example
    ///
    /// The `run` method of a tool that appends a line to a file:
    ///
    /// ```
    /// # use toolcrib::{
    /// #     Access, Call, Category, Cx, Error, Hints, JsonSchema, Options, Reply, Runtime, Tool,
    /// # };
    /// # /// Appends a line to a file.
    /// # #[derive(serde::Deserialize, JsonSchema)]
    /// # struct Append {
    /// #     file_path: String,
    /// #     line: String,
    /// # }
    /// # impl Tool for Append {
    /// #     const NAME: &'static str = "Append";
    /// #     const CATEGORY: Category = Category::File;
    /// #     const HINTS: Hints = Hints::EDITS;
    /// #     fn access(&self) -> Vec<Access> {
    /// #         vec![Access::Write(self.file_path.clone().into())]
    /// #     }
    /// fn run(self, cx: &mut Cx<'_>) -> Result<Reply, Error> {
    ///     let updated = cx.update(&self.file_path, |current| {
    ///         let mut content = current.map_or_else(Vec::new, |content| content.to_vec());
    ///         content.extend_from_slice(self.line.as_bytes());
    ///         content.push(b'\n');
    ///         Ok(content)
    ///     })?;
    ///     Ok(Reply::new(format!("{} bytes", updated.now.len())))
    /// }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let runtime = Runtime::builder().root(directory.path()).register::<Append>().build()?;
    /// # let call = Call::new("Append", serde_json::json!({"file_path": "log", "line": "one"}));
    /// # let reply = runtime.call(&runtime.session(), call, Options::default())?;
    /// # assert_eq!(reply.text(), "4 bytes");
    /// # Ok(())
    /// # }
    /// ```
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
            None => Err(Error::new(
                ErrorKind::Internal,
                "one file was requested, and none was returned",
            )),
        }
    }

    /// Like [`Cx::update`] for several files, which change atomically. `change` receives the content of each
    /// and returns the new content of each. Returns both versions of each file.
    pub(crate) fn update_all(
        &self,
        paths: &[&Path],
        mut change: impl FnMut(&[Option<Content>]) -> Result<Vec<Vec<u8>>, Error>,
    ) -> Result<(Vec<Versions>, Changed), Error> {
        self.edit_files(paths, |was| {
            let now = change(was)?.into_iter().map(Content::from);
            let files: Vec<Versions> = was.iter().cloned().zip(now).collect();
            let edits = files.iter().zip(paths).filter_map(|((was, now), path)| {
                let (path, was, now) = (path.to_path_buf(), was.clone(), Some(now.clone()));
                (was != now).then_some(FileEdit { path, was, now, mode: None })
            });
            Ok((edits.collect(), files))
        })
    }

    /// Changes some of these files atomically. `change` receives the content of each and returns the edits,
    /// with paths as in `paths`, and a value for the caller. It is called again if another process changed a
    /// file meanwhile.
    pub(crate) fn edit_files<T>(
        &self,
        paths: &[&Path],
        mut change: impl FnMut(&[Option<Content>]) -> Result<(Vec<FileEdit>, T), Error>,
    ) -> Result<(T, Changed), Error> {
        let mut attempts = 0;
        loop {
            let places = paths.iter().map(|path| self.resolve_for_writing(path));
            let places = places.collect::<Result<Vec<_>, _>>()?;
            let locks = self.lock(&places)?;
            let was = places.iter().map(|place| self.read_resolved(place));
            let was = was.collect::<Result<Vec<_>, _>>()?;
            let (edits, answer) =
                change(&was).map_err(|error| self.with_changes_elsewhere(error, &places, &was))?;
            if edits.is_empty() {
                return Ok((answer, Changed::default()));
            }
            let by_path: HashMap<&Path, ResolvedPath> = paths.iter().copied().zip(places).collect();
            let place_of = |edit: FileEdit| match by_path.get(edit.path.as_path()) {
                Some(place) => Ok((edit, place.clone())),
                None => Err(Error::new(ErrorKind::Internal, "a file changed that was not read")),
            };
            let edits = edits.into_iter().map(place_of).collect::<Result<Vec<_>, _>>()?;
            let known = self.seen_after(&edits);
            attempts += 1;
            match self.commit(edits, locks.as_ref(), self.about.clone(), Directories::default()) {
                Err(error) if error.kind() == ErrorKind::Stale && attempts < MAX_ATTEMPTS => {}
                made => {
                    let changed = made?;
                    self.remember_seen(known);
                    return Ok((answer, changed));
                }
            }
        }
    }

    /// The sentence about changes since the session last saw a file, with their author. `None` if there are none.
    pub(crate) fn changed_elsewhere(
        &self,
        path: &Path,
        seen: Option<Seen>,
        now: Option<&Content>,
    ) -> Option<String> {
        let (seen, now) = (seen?, Seen::of(now?));
        if seen.hash == now.hash {
            return None;
        }
        let at = seen.changed_lines(&now).map_or(String::new(), |at| format!(": {at}"));
        let by = authors(&self.services.history, self.session, path, seen.hash, now.hash);
        let by = by.map_or(String::new(), |by| format!(" by {by}"));
        Some(format!("Since this session last saw it, the file was changed{by}{at}."))
    }

    /// Adds to a failed match which of the files were changed since the session last saw them.
    fn with_changes_elsewhere(
        &self,
        error: Error,
        places: &[ResolvedPath],
        contents: &[Option<Content>],
    ) -> Error {
        let is_mismatch = matches!(
            error.kind(),
            ErrorKind::NoMatch
                | ErrorKind::NotFound
                | ErrorKind::Ambiguous
                | ErrorKind::AlreadyApplied
        );
        if !is_mismatch {
            return error;
        }
        let changed = places.iter().zip(contents).filter_map(|(place, content)| {
            let path = place.path();
            let sentence =
                self.changed_elsewhere(&path, self.session().seen(&path), content.as_ref())?;
            Some(match places.len() {
                1 => sentence,
                _ => format!("{}: {sentence}", self.show_place(place)),
            })
        });
        changed.fold(error, |error, sentence| error.detail_line(&sentence))
    }

    /// Reverts changes atomically. The call must have declared [`Access::WriteAny`](toolcrib_policy::Access).
    /// Restored content counts as seen by the session only if it saw that content before. In a dry run nothing is written.
    pub(crate) fn restore(&self, restoring: Revert) -> Result<Changed, Error> {
        let Revert { edits, undoes, hunk_of, hunk, only, within, protected, needed, unneeded } =
            restoring;
        let protected: HashSet<&PathBuf> = protected.iter().collect();
        let places = edits.iter().map(|edit| {
            let place = self.entry(&edit.path)?;
            if protected.contains(&edit.path) {
                Ok(place)
            } else {
                require_restorable(&self.services.paths, &place).map(|()| place)
            }
        });
        let places = places.collect::<Result<Vec<_>, _>>()?;
        let locks = self.lock(&places)?;
        let only = only.as_deref().map(KeptPath::new);
        let within = within.iter().map(|path| KeptPath::new(path)).collect();
        let about = About { undoes, hunk_of, hunk, only, within, ..self.about.clone() };
        let directories = Directories {
            needed: needed
                .iter()
                .map(|(path, mode)| Ok((self.entry(path)?, Some(*mode))))
                .collect::<Result<_, Error>>()?,
            // A directory that cannot be resolved any more is kept, like one that is not empty.
            unneeded: unneeded.iter().flat_map(|path| self.entry(path)).collect(),
        };
        let edits: Vec<(FileEdit, ResolvedPath)> = edits.into_iter().zip(places).collect();
        let known = edits.iter().filter_map(|edit| self.seen_after_restore(edit)).collect();
        let changed = self.commit(edits, locks.as_ref(), about, directories)?;
        self.remember_seen(known);
        Ok(changed)
    }

    /// The file or symlink at the path of a change. Symlinks are not followed. Protected names are allowed.
    pub(crate) fn entry(&self, path: &Path) -> Result<ResolvedPath, Error> {
        // The call must have declared that it may write any changed file.
        self.granted_path(Effect::Write, Path::new("."))?;
        entry(&self.services.paths, self.session, path)
    }

    /// Content of a path of [`Cx::entry`]. `None` if it does not exist.
    pub(crate) fn read_entry(&self, place: &ResolvedPath) -> Result<Option<Content>, Error> {
        read_entry(place, self.limits().edit_bytes).map_err(|error| self.fs_error(&error))
    }

    /// Marks a file as seen by the session: its whole content was in the call.
    pub(crate) fn mark_seen_whole(&self, real: &Path, now: &Content) {
        if !self.dry_run() {
            self.session().remember_seen(real.to_owned(), Seen::whole(now));
        }
    }

    /// Content of a file that the call has declared for reading or writing. `None` if it does not exist.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<Content>, Error> {
        self.read_resolved(&self.granted_path(Effect::Read, path)?)
    }

    /// Mode bits of a file, if it exists.
    pub(crate) fn mode(&self, path: &Path) -> Result<Option<u32>, Error> {
        Ok(self.granted_path(Effect::Read, path)?.mode())
    }

    fn read_resolved(&self, place: &ResolvedPath) -> Result<Option<Content>, Error> {
        if place.kind().is_none() {
            return Ok(None);
        }
        let bytes = self.open_at(place)?.read_all(self.limits().edit_bytes)?;
        Ok(Some(bytes.into()))
    }

    /// Resolves a path again. It must still lead to the granted file.
    fn resolve_for_writing(&self, path: &Path) -> Result<ResolvedPath, Error> {
        let granted = self.granted_path(Effect::Write, path)?;
        let place = resolve(&self.services.paths, self.session, Effect::Write, path)?;
        if place.path() == granted.path() {
            return Ok(place);
        }
        let message = format!("{} now leads to another file", self.show_place(&granted));
        Err(Error::new(ErrorKind::Stale, message).hint("Nothing was written. Try again."))
    }

    pub(super) fn lock(&self, places: &[ResolvedPath]) -> Result<Option<Locks>, Error> {
        if self.dry_run() {
            return Ok(None);
        }
        Locks::acquire(places.iter()).map(Some).map_err(|error| self.fs_error(&error))
    }

    pub(super) fn commit(
        &self,
        edits: Vec<(FileEdit, ResolvedPath)>,
        locks: Option<&Locks>,
        about: About,
        directories: Directories,
    ) -> Result<Changed, Error> {
        self.check_cancelled()?;
        self.check_basis(&edits)?;
        let all: Vec<PathBuf> = edits.iter().map(|(_, place)| place.path()).collect();
        let there = edits.iter().filter(|(edit, _)| edit.now.is_some());
        let written: Vec<PathBuf> = there.map(|(_, place)| place.path()).collect();
        let outside = edits.iter().map(|(_, place)| place).filter(|place| place.is_outside());
        let outside: Vec<PathBuf> = outside.map(ResolvedPath::path).collect();
        let edited = if self.services.language_servers.is_some() && !self.dry_run() {
            edited_files(&edits)
        } else {
            Vec::new()
        };
        let change = Change::new(edits.into_iter().map(step).collect())
            .hard_links(self.services.hard_links)
            .needed_directories(directories.needed)
            .unneeded_directories(directories.unneeded);
        let outcome = match locks {
            None => change.check().map(|()| Committed::default()),
            Some(locks) => {
                let journal = self.services.history.journal();
                let recorder = journal.map(|journal| ChangeRecorder { journal, about });
                let commit = || change.commit(locks, recorder);
                match &self.services.commands {
                    Some(commands) => commands.running_changes().write_by_tool(&all, commit),
                    None => commit(),
                }
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
            self.edited.borrow_mut().extend(edited);
            if !outside.is_empty() {
                self.session.changed_outside(committed.id, outside);
            }
        }
        Ok(Changed::of(&committed))
    }

    /// The seen state of each file after these edits: the whole file if it is new, or if the session
    /// had seen all of it before.
    pub(super) fn seen_after(
        &self,
        edits: &[(FileEdit, ResolvedPath)],
    ) -> Vec<(PathBuf, Option<Seen>)> {
        let known = |(edit, place): &(FileEdit, ResolvedPath)| {
            let path = place.path();
            let now = edit.now.as_ref().map(|now| {
                let before = self.session().seen(&path).filter(Seen::is_whole);
                let was = edit.was.as_ref().map(Content::hash);
                if was.is_none() || before.map(|before| before.hash) == was {
                    Seen::whole(now)
                } else {
                    Seen::of(now)
                }
            });
            (path, now)
        };
        edits.iter().map(known).collect()
    }

    /// The seen state of a file after it is restored: the whole file if the session saw this content before, otherwise
    /// its hash, not its content. An unseen file stays unseen. A file with the content that the session saw last keeps its
    /// state.
    fn seen_after_restore(
        &self,
        (edit, place): &(FileEdit, ResolvedPath),
    ) -> Option<(PathBuf, Option<Seen>)> {
        let path = place.path();
        let Some(now) = &edit.now else { return Some((path, None)) };
        if self.session().has_seen_whole(&path, now.hash()) {
            return Some((path, Some(Seen::whole(now))));
        }
        let before = self.session().seen(&path)?;
        (before.hash != now.hash()).then(|| (path, Some(Seen::of(now))))
    }

    pub(super) fn remember_seen(&self, known: Vec<(PathBuf, Option<Seen>)>) {
        if self.dry_run() {
            return;
        }
        for (path, now) in known {
            match now {
                Some(now) => self.session().remember_seen(path, now),
                None => self.session().forget(&path),
            }
        }
    }

    /// Records the content that the edits are based on. Fails if it differs from the version that the approver
    /// has seen.
    fn check_basis(&self, edits: &[(FileEdit, ResolvedPath)]) -> Result<(), Error> {
        for (edit, place) in edits {
            let hash = edit.was.as_ref().map(Content::hash);
            self.basis.borrow_mut().insert(place.path(), hash);
            let Some(agreed) = &self.agreed else { continue };
            if agreed.get(&place.path()) != Some(&hash) {
                let message =
                    format!("{} changed while approval was pending", self.show_place(place));
                return Err(Error::new(ErrorKind::Stale, message)
                    .hint("Nothing was written. Call again to ask about the current content."));
            }
        }
        Ok(())
    }
}

/// The files of a change that are in the workspace afterwards. A moved file has the content of its old path.
fn edited_files(edits: &[(FileEdit, ResolvedPath)]) -> Vec<EditedFile> {
    let removed: Vec<(PathBuf, &Content)> = edits
        .iter()
        .filter(|(edit, _)| edit.now.is_none())
        .filter_map(|(edit, place)| Some((place.path(), edit.was.as_ref()?)))
        .collect();
    let created = edits.iter().filter(|(edit, _)| edit.was.is_none()).count();
    let moved_from = |path: &Path| {
        let by_name = removed.iter().find(|(from, _)| from.file_name() == path.file_name());
        let only = removed.first().filter(|_| removed.len() == 1 && created == 1);
        by_name.or(only).map(|(_, content)| (*content).clone())
    };
    let is_inside = |place: &ResolvedPath| !place.is_outside();
    let edited = edits.iter().filter(|(_, place)| is_inside(place)).filter_map(|(edit, place)| {
        let now = edit.now.clone().filter(|now| !now.is_link())?;
        let path = place.path();
        let was = edit.was.clone().filter(|was| !was.is_link()).or_else(|| moved_from(&path));
        Some(EditedFile { path, was, now })
    });
    edited.collect()
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
        "a changed file had other hard links",
        "`true`: the other hard links keep the old content.",
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
            notes.push("Its other hard links keep the old content.".to_owned());
        }
        if in_place {
            notes.push(
                "It was written in place, not atomically: a concurrent reader may have seen a part of it.".to_owned(),
            );
        }
        Changed { id: committed.id, notes, hard_link_broken, in_place }
    }

    /// Metadata: the id for Undo, and how files were written if not by atomic replacement.
    pub(crate) fn facts(&self) -> Vec<(&'static str, Value)> {
        let mut facts = Vec::new();
        facts.extend(self.id.map(|id| ("change", id.into())));
        facts.extend(self.hard_link_broken.then(|| ("hard_link_broken", true.into())));
        facts.extend(self.in_place.then(|| ("written_in_place", true.into())));
        facts
    }
}
