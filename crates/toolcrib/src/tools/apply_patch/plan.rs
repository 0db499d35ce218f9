//! Computes the result of a patch before anything is written.
//!
//! Parts apply in order, each to the result of the previous ones. Three rules consider the whole patch: a path is
//! free for a new file if a later part moves its old file away; that part then moves the old file; and a copy is
//! made of the content before the patch. So two files can swap their names, which is how git writes such a swap.

use std::path::Path;

use toolcrib_fs::{Content, NewMode};
use toolcrib_text::{FileAction, FilePatch, Hunk, HunkFate, Patch};

use super::patched_files::{File, Files};
use super::{copied_from, path, refusal};
use crate::cx::{Cx, FileEdit};
use crate::error::Error;
use crate::tools::replacement::{require_text, unencodable, unreadable};

pub(super) struct Plan {
    pub(super) files: Files,
    /// The parts, in the order of the patch.
    pub(super) parts: Vec<Part>,
}

/// The result of one part of a patch.
pub(super) struct Part {
    pub(super) action: FileAction,
    /// Index of the file.
    pub(super) file: usize,
    /// Path of the source, as replies show it.
    pub(super) from: Option<String>,
    /// Index of the source, for a move.
    pub(super) moved: Option<usize>,
    pub(super) hunks: Vec<HunkFate>,
    /// The part was already applied and changes nothing.
    pub(super) already: bool,
}

impl Plan {
    /// Computes the result of the patch, or fails if it cannot be applied.
    pub(super) fn of(
        cx: &Cx<'_>,
        patch: &Patch<'_>,
        paths: &[&Path],
        contents: &[Option<Content>],
    ) -> Result<Plan, Error> {
        let files = Files::new(cx, paths, contents)?;
        let mut planner = Planner { cx, patch, files, bytes: 0 };
        let mut parts = Vec::with_capacity(patch.files.len());
        for (at, part) in patch.files.iter().enumerate() {
            cx.check_cancelled()?;
            parts.push(planner.part(at, part).map_err(|error| refusal::of_part(error, patch, at))?);
        }
        planner.require_deleted_files(&parts)?;
        Ok(Plan { files: planner.files, parts })
    }

    pub(super) fn edits(&self) -> Vec<FileEdit> {
        self.files.iter().filter(|file| file.is_changed()).map(File::edit).collect()
    }
}

struct Planner<'c, 'p> {
    cx: &'c Cx<'c>,
    patch: &'p Patch<'p>,
    files: Files,
    /// Bytes of all new contents.
    bytes: u64,
}

impl Planner<'_, '_> {
    fn part(&mut self, at: usize, part: &FilePatch<'_>) -> Result<Part, Error> {
        let file = self.files.find(&path(&part.path))?;
        match part.action {
            FileAction::Add => self.add(at, part, file),
            FileAction::Update => self.update(at, part, file),
            FileAction::Delete => self.delete(part, file),
            FileAction::Move => self.move_here(at, part, file),
            FileAction::Copy => self.copy_here(at, part, file),
        }
    }

    fn add(&mut self, at: usize, part: &FilePatch<'_>, file: usize) -> Result<Part, Error> {
        let text = Content::from(part.added_text());
        let already = self.files.get(file).now.as_ref() == Some(&text);
        if !already {
            self.free_path(at, file)?;
            self.put(file, text, part.executable.map(NewMode::Executable))?;
        }
        Ok(Part {
            action: FileAction::Add,
            file,
            from: None,
            moved: None,
            hunks: Vec::new(),
            already,
        })
    }

    fn update(&mut self, at: usize, part: &FilePatch<'_>, file: usize) -> Result<Part, Error> {
        let known = self.files.get(file);
        let Some(was) = known.now.clone() else {
            // Some tools write a new file as an update of an empty one.
            let makes =
                |hunk: &Hunk<'_>| hunk.before == Some(0) && hunk.old_lines().next().is_none();
            if !part.hunks.is_empty() && part.hunks.iter().all(makes) {
                return self.add(at, part, file);
            }
            return Err(refusal::missing(self.cx, known));
        };
        let (now, hunks) = self.apply(&was, part, &known.path, &known.path)?;
        let mode = known.mode_after();
        let same = was == now;
        self.put(file, now, part.executable.map(NewMode::Executable))?;
        let already = same && self.files.get(file).mode_after() == mode;
        Ok(Part { action: FileAction::Update, file, from: None, moved: None, hunks, already })
    }

    fn delete(&mut self, part: &FilePatch<'_>, file: usize) -> Result<Part, Error> {
        let known = self.files.get(file);
        let already = known.now.is_none();
        if let Some(was) = &known.now {
            refusal::require_no_link(self.cx, known, "deleted")?;
            if !part.hunks.is_empty() {
                let (rest, _) = self.apply(was, part, &known.path, &known.path)?;
                if !rest.is_empty() {
                    return Err(refusal::partial_deletion(known, &rest));
                }
            }
        }
        self.files.get_mut(file).now = None;
        let hunks = Vec::new();
        Ok(Part { action: FileAction::Delete, file, from: None, moved: None, hunks, already })
    }

    fn move_here(&mut self, at: usize, part: &FilePatch<'_>, file: usize) -> Result<Part, Error> {
        let from = self.files.find(&path(part.from.as_deref().unwrap_or_default()))?;
        if from == file {
            return self.update(at, part, file);
        }
        let source = self.files.get(from);
        let shown = Some(source.shown.clone());
        let moved = |hunks, already| {
            Ok(Part {
                action: FileAction::Move,
                file,
                from: shown,
                moved: Some(from),
                hunks,
                already,
            })
        };
        let Some(was) = source.displaced.clone().or(source.now.clone()) else {
            return match self.already_moved(part, file) {
                Some(hunks) => moved(hunks, true),
                None => Err(refusal::missing(self.cx, source)),
            };
        };
        refusal::require_no_link(self.cx, source, "moved")?;
        let (now, hunks) = self.apply(&was, part, &source.path, &self.files.get(file).path)?;
        let mode = source.mode_for_another(part.executable);
        self.free_path(at, file)?;
        let source = self.files.get_mut(from);
        if source.displaced.take().is_none() {
            source.now = None;
        }
        self.put(file, now, mode)?;
        moved(hunks, false)
    }

    fn copy_here(&mut self, at: usize, part: &FilePatch<'_>, file: usize) -> Result<Part, Error> {
        let from = copied_from(part).unwrap_or_default();
        let shown = self.cx.show(&from)?;
        let was = match self.cx.read(&from)? {
            Some(was) => was,
            None => return Err(refusal::missing_source(self.cx, &from)),
        };
        let (now, hunks) = self.apply(&was, part, &from, &self.files.get(file).path)?;
        let already = self.files.get(file).now.as_ref() == Some(&now);
        if !already {
            self.free_path(at, file)?;
            let mode = self.cx.mode(&from)?.map(|mode| {
                NewMode::Exactly(
                    part.executable.map_or(mode, |new| NewMode::Executable(new).of(mode)),
                )
            });
            self.put(file, now, mode)?;
        }
        Ok(Part { action: FileAction::Copy, file, from: Some(shown), moved: None, hunks, already })
    }

    /// The hunks of a move that was already applied: the source is missing, and the target has the result. `None`
    /// otherwise.
    fn already_moved(&self, part: &FilePatch<'_>, file: usize) -> Option<Vec<HunkFate>> {
        let known = self.files.get(file);
        let there = known.now.as_ref()?;
        let (now, hunks) = self.apply(there, part, &known.path, &known.path).ok()?;
        (now == *there).then_some(hunks)
    }

    /// Makes a path free for a new file. The old file may stay until a later part moves it.
    fn free_path(&mut self, at: usize, file: usize) -> Result<(), Error> {
        if self.files.get(file).now.is_none() {
            return Ok(());
        }
        let moves_it = |part: &FilePatch<'_>| {
            let from = part.from.as_deref().filter(|_| part.action == FileAction::Move);
            from.is_some_and(|from| self.files.find(&path(from)).is_ok_and(|from| from == file))
        };
        let moves_later = self.patch.files[at + 1..].iter().any(moves_it);
        let known = self.files.get_mut(file);
        if !moves_later || known.displaced.is_some() {
            return Err(refusal::path_exists(known));
        }
        known.displaced = known.now.take();
        Ok(())
    }

    fn put(&mut self, file: usize, now: Content, mode: Option<NewMode>) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(now.len() as u64);
        let most = self.cx.limits().edit_bytes.saturating_mul(2);
        if self.bytes > most {
            return Err(refusal::too_large(self.bytes, most));
        }
        let known = self.files.get_mut(file);
        known.now = Some(now);
        known.new_mode = mode.or(known.new_mode);
        Ok(())
    }

    /// Deleting a missing file is an error, unless the rest of the patch was already applied, too.
    fn require_deleted_files(&self, parts: &[Part]) -> Result<(), Error> {
        let gone = |part: &Part| part.action == FileAction::Delete && part.already;
        let others = parts.iter().filter(|part| !gone(part));
        let replayed =
            parts.iter().any(|part| !gone(part)) && others.clone().all(|part| part.already);
        match parts.iter().position(gone) {
            Some(at) if !replayed => {
                let error = refusal::missing(self.cx, self.files.get(parts[at].file));
                Err(refusal::of_part(error, self.patch, at))
            }
            _ => Ok(()),
        }
    }

    /// Applies the hunks of a part to the content of the file `from`, in its encoding. The result is that of `to`.
    fn apply(
        &self,
        was: &Content,
        part: &FilePatch<'_>,
        from: &Path,
        to: &Path,
    ) -> Result<(Content, Vec<HunkFate>), Error> {
        let (cx, shown) = (self.cx, &self.cx.show(from)?);
        let (from, to) = (cx.real_path(from)?, cx.real_path(to)?);
        if part.hunks.is_empty() {
            if let Some(encoding) = cx.session().encoding(&from) {
                cx.session().remember_encoding(&to, encoding);
            }
            return Ok((was.clone(), Vec::new()));
        }
        let encoding = cx.encoding(&from, was);
        cx.session().remember_encoding(&to, encoding);
        require_text(was, encoding, shown)?;
        let Some(text) = encoding.decode(was) else { return Err(unreadable(shown, encoding)) };
        let applied = Hunk::apply_all(&part.hunks, &text)
            .map_err(|misfit| refusal::misfit(shown, &part.hunks, &misfit))?;
        let now = if encoding.is_utf8() {
            applied.text
        } else {
            let letters = String::from_utf8_lossy(&applied.text);
            encoding.encode(&letters).map_err(|c| unencodable(shown, encoding, c))?
        };
        Ok((now.into(), applied.hunks))
    }
}
