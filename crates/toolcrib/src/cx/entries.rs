//! The methods of [`Cx`] for the raw operations: entries of directories, including symlinks themselves.

use std::path::{Path, PathBuf};

use toolcrib_fs::{
    Content, Directory, FileKind, FileMetadata, FsError, ResolvedPath, RootKind, read_entry,
};
use toolcrib_policy::{Access, Decision, Effect};
use toolcrib_text::{unified_diff, visible_name};

use super::Cx;
use super::change::{Changed, Directories, FileEdit};
use crate::error::{Error, ErrorKind};
use crate::path_access::{entry, require_restorable, resolve_any};

/// A change of files, symlinks and directories.
#[derive(Default)]
pub(crate) struct EntryChange {
    pub(crate) edits: Vec<(FileEdit, ResolvedPath)>,
    /// Directories to create, parents first, with their modes unless they are the usual ones.
    pub(crate) needed: Vec<(ResolvedPath, Option<u32>)>,
    /// Directories to remove once they are empty, parents first.
    pub(crate) unneeded: Vec<ResolvedPath>,
}

impl Cx<'_> {
    /// The properties of a file, or of a symlink itself and its target.
    pub(crate) fn metadata(
        &self,
        path: &Path,
        follow: bool,
    ) -> Result<(FileMetadata, Option<PathBuf>), Error> {
        let granted = self.granted_path(Effect::Read, path)?;
        let place = if follow { granted } else { self.unfollowed(Effect::Read, path, granted)? };
        if place.kind().is_none() {
            return Err(self.missing_error(&place));
        }
        let metadata = place.metadata().map_err(|error| self.error(&place, &error))?;
        let target = match metadata.kind {
            FileKind::Symlink => self.entry_content(&place)?.map(|target| path_of(&target)),
            _ => None,
        };
        Ok((metadata, target))
    }

    /// Whether a path that the call has declared leads to a directory.
    pub(crate) fn is_directory(&self, path: &Path) -> Result<bool, Error> {
        Ok(self.granted_path(Effect::Read, path)?.kind() == Some(FileKind::Directory))
    }

    /// The entry at a path that the call has declared for writing. A symlink there is not followed.
    pub(crate) fn writable_entry(&self, path: &Path) -> Result<ResolvedPath, Error> {
        let granted = self.granted_path(Effect::Write, path)?;
        let place = self.unfollowed(Effect::Write, path, granted)?;
        if place.relative().as_os_str().is_empty() {
            let message = format!("{} is a root of the workspace", self.show_place(&place));
            return Err(Error::new(ErrorKind::Protected, message).hint("Nothing was changed."));
        }
        Ok(place)
    }

    /// The symlink at a path, if there is one. Otherwise `followed`.
    fn unfollowed(
        &self,
        effect: Effect,
        path: &Path,
        followed: ResolvedPath,
    ) -> Result<ResolvedPath, Error> {
        let (Some(name), true) = (path.file_name(), followed.through_link()) else {
            return Ok(followed);
        };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = resolve_any(
            &self.services.paths,
            self.session,
            effect,
            parent.unwrap_or(Path::new(".")),
        )?;
        let place = entry(&self.services.paths, self.session, &parent.path().join(name))?;
        if place.kind() != Some(FileKind::Symlink) {
            return Ok(followed);
        }
        self.require_decided(effect, &place)?;
        Ok(place)
    }

    /// Fails if the policy has not decided on a symlink itself: it decides on its target, and on the path in the call.
    fn require_decided(&self, effect: Effect, link: &ResolvedPath) -> Result<(), Error> {
        let path = link.path();
        if self.grant.requested().iter().any(|access| access.path() == Some(&path)) {
            return Ok(());
        }
        let access = match effect {
            Effect::Write => Access::Write(path),
            _ => Access::Read(path),
        };
        let verdict = self.policy.decide(&[access], &self.session.remembered());
        if verdict.decision == Decision::Allow {
            return Ok(());
        }
        let shown = self.show_place(link);
        let message = format!("the rule {} does not allow this for {shown}", verdict.rule);
        Err(Error::new(ErrorKind::Denied, message)
            .hint(format!("Nothing was done. Name it as {shown}.")))
    }

    /// Fails if a path led to a file with another name. Tools accept such a path; a program means what it says.
    pub(crate) fn require_literal(&self, path: &Path) -> Result<(), Error> {
        let place = self.granted_path(Effect::Read, path)?;
        let is_other = path.file_name().is_some_and(|name| {
            !place.through_link() && place.relative().file_name().is_some_and(|real| real != name)
        });
        if is_other {
            let shown = visible_name(path.as_os_str().as_encoded_bytes());
            let message = format!("{shown} does not exist");
            let hint = format!("A similar name exists: {}.", self.show_place(&place));
            return Err(Error::new(ErrorKind::NotFound, message).hint(hint));
        }
        Ok(())
    }

    /// Fails if a path leads outside the roots, also to the session's `/tmp`.
    pub(crate) fn require_in_root(&self, path: &Path) -> Result<(), Error> {
        let place = self.granted_path(Effect::Read, path)?;
        if place.root().kind() == RootKind::Workspace {
            return Ok(());
        }
        Err(Error::outside(&visible_name(path.as_os_str().as_encoded_bytes())))
    }

    /// An entry beneath one that the call has declared. Symlinks are not followed.
    pub(crate) fn entry_below(
        &self,
        top: &ResolvedPath,
        path: &Path,
    ) -> Result<ResolvedPath, Error> {
        if path == top.path() {
            return Ok(top.clone());
        }
        entry(&self.services.paths, self.session, path)
    }

    /// Fails if an entry beneath a declared one is protected, or if the policy would not have allowed it with it.
    pub(crate) fn require_writable_entry(
        &self,
        top: &ResolvedPath,
        place: &ResolvedPath,
    ) -> Result<(), Error> {
        require_restorable(&self.services.paths, place)?;
        let remembered = self.session.remembered();
        let decide =
            |place: &ResolvedPath| self.policy.decide(&[Access::Write(place.path())], &remembered);
        let verdict = decide(place);
        // An approval of the declared entry covers the entries beneath it.
        let is_allowed = match verdict.decision {
            Decision::Allow => true,
            Decision::Ask => decide(top).decision == Decision::Ask,
            Decision::Deny => false,
        };
        if is_allowed {
            return Ok(());
        }
        let shown = self.show_place(place);
        let message = format!("the rule {} does not allow changing {shown}", verdict.rule);
        Err(Error::new(ErrorKind::Denied, message).hint("Nothing was changed."))
    }

    /// The directory at an entry. `None` if it is not a directory.
    pub(crate) fn entry_directory(&self, place: &ResolvedPath) -> Result<Option<Directory>, Error> {
        if place.kind() != Some(FileKind::Directory) {
            return Ok(None);
        }
        Directory::open(place).map(Some).map_err(|error| self.error(place, &error))
    }

    /// The content of a file, or the target of a symlink. `None` if it does not exist.
    pub(crate) fn entry_content(&self, place: &ResolvedPath) -> Result<Option<Content>, Error> {
        read_entry(place, self.limits().edit_bytes).map_err(|error| self.error(place, &error))
    }

    /// The error of a directory that cannot be listed.
    pub(crate) fn listing_error(&self, path: &Path, error: &FsError) -> Error {
        Error::from_fs(&self.show_real(path), error)
    }

    /// Makes a change of declared entries and of entries beneath them. In a dry run nothing is written.
    pub(crate) fn change_entries(&self, change: EntryChange) -> Result<Changed, Error> {
        let EntryChange { edits, needed, unneeded } = change;
        let files = edits.iter().map(|(_, place)| place);
        let directories = needed.iter().map(|(place, _)| place).chain(&unneeded);
        let places: Vec<ResolvedPath> = files.chain(directories).cloned().collect();
        let locks = self.lock(&places)?;
        let known = self.seen_after(&edits);
        let directories = Directories { needed, unneeded };
        let changed = self.commit(edits, locks.as_ref(), self.about.clone(), directories)?;
        self.remember_seen(known);
        Ok(changed)
    }

    /// The diff of an edit.
    pub(crate) fn diff_of(&self, edit: &FileEdit) -> String {
        let shown = self.show_real(&edit.path);
        let encoding = self.session.encoding(&edit.path);
        let (was, now) = (edit.was.as_deref(), edit.now.as_deref());
        unified_diff(&shown, was, now, self.limits().line_chars, encoding).text
    }
}

fn path_of(target: &Content) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    std::ffi::OsStr::from_bytes(target).into()
}
