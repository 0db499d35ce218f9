//! The change of one file or symlink.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::staged::Staged;
use super::{attributes, in_place, symlink};
use crate::content::Content;
use crate::error::{FsError, FsErrorKind};
use crate::file::{ReadFile, require_file};
use crate::file_kind::FileKind;
use crate::open_beneath;
use crate::resolved_path::ResolvedPath;
use crate::root::RootMode;

/// The change of one file or symlink. If it is or becomes a symlink, its path must come from
/// [`crate::Workspace::entry`].
#[derive(Debug, Clone)]
pub struct Step {
    pub(super) place: ResolvedPath,
    /// The expected content. `None` if the path must not exist.
    pub(super) was: Option<Content>,
    /// The new content. `None` if it is deleted.
    pub(super) now: Option<Content>,
    /// The new mode, if it differs from the old one or from what the umask gives.
    pub(super) mode: Option<NewMode>,
    /// The file must be overwritten, not replaced.
    pub(super) in_place: bool,
}

/// The mode of a changed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewMode {
    /// These bits.
    Exactly(u32),
    /// Executable for all who can read it, or not at all.
    Executable(bool),
}

impl NewMode {
    /// The mode bits, given those that the file would have otherwise.
    pub fn of(self, otherwise: u32) -> u32 {
        match self {
            NewMode::Exactly(mode) => mode,
            NewMode::Executable(true) => otherwise | (otherwise & 0o444) >> 2,
            NewMode::Executable(false) => otherwise & !0o111,
        }
    }
}

impl Step {
    /// Replaces the content `was` by `now`.
    pub fn replace(place: ResolvedPath, was: impl Into<Content>, now: impl Into<Content>) -> Step {
        Step::new(place, Some(was.into()), Some(now.into()))
    }

    /// Creates a file and its parent directories.
    pub fn create(place: ResolvedPath, now: impl Into<Content>) -> Step {
        Step::new(place, None, Some(now.into()))
    }

    /// Deletes a file with the content `was`.
    pub fn delete(place: ResolvedPath, was: impl Into<Content>) -> Step {
        Step::new(place, Some(was.into()), None)
    }

    /// Restores a previous version and its mode, or deletes the file if there was none. `now` is the current
    /// content.
    pub fn restore(
        place: ResolvedPath,
        now: Option<Content>,
        before: Option<(Content, u32)>,
    ) -> Step {
        let (content, mode) = before.unzip();
        Step { mode: mode.map(NewMode::Exactly), ..Step::new(place, now, content) }
    }

    /// Sets whether the file is written in place.
    #[must_use]
    pub(crate) fn in_place(mut self, in_place: bool) -> Step {
        self.in_place = in_place;
        self
    }

    /// Sets the mode.
    #[must_use]
    pub fn with_mode(mut self, mode: NewMode) -> Step {
        self.mode = Some(mode);
        self
    }

    /// Changes the content from `was` to `now`. `None` means that the path does not exist.
    pub fn new(place: ResolvedPath, was: Option<Content>, now: Option<Content>) -> Step {
        Step { place, was, now, mode: None, in_place: false }
    }

    /// Fails if the file does not have the expected content, or cannot be changed.
    pub(super) fn check(&self) -> Result<(), FsError> {
        if self.place.root.mode() == RootMode::ReadOnly {
            return Err(self.fail(FsErrorKind::ReadOnly, "is in a read-only root"));
        }
        let (parent, name) = self.split()?;
        let directory = match self.open_directory(parent) {
            // Its directory will be created in the nearest existing one above.
            Err(error) if self.was.is_none() && error.kind() == FsErrorKind::NotFound => {
                return self.require_creatable_above(parent);
            }
            directory => directory?,
        };
        let Some(was) = &self.was else {
            return match open_beneath::stat(directory.as_fd(), name) {
                Err(Errno::NOENT) => self.require_creatable(&directory, parent),
                Err(errno) => Err(self.error("cannot be inspected", errno)),
                Ok(_) => Err(self.fail(FsErrorKind::Stale, "was created meanwhile")),
            };
        };
        if was.is_link() || self.now.is_none() {
            self.require_creatable(&directory, parent)?;
        }
        if !was.is_link() {
            self.require_writable(&directory, name)?;
        }
        self.require_unchanged(was)
    }

    /// Checks what can be known of a later step: its path is occupied, or its directory does not exist.
    pub(super) fn check_later(&self) -> Result<(), FsError> {
        if self.place.root.mode() == RootMode::ReadOnly {
            return Err(self.fail(FsErrorKind::ReadOnly, "is in a read-only root"));
        }
        match self.was {
            None => Ok(()),
            Some(_) => {
                Err(self.fail(FsErrorKind::Stale, "is beneath a file that the same change writes"))
            }
        }
    }

    /// Fails if the file or symlink does not have the expected content.
    pub(super) fn require_unchanged(&self, was: &Content) -> Result<(), FsError> {
        let same = if was.is_link() {
            self.is_symlink_to(was)
        } else {
            ReadFile::open(&self.place)?.has_content(was)?
        };
        if same {
            return Ok(());
        }
        Err(self.fail(FsErrorKind::Stale, "changed on disk since it was read"))
    }

    /// The existing file. `None` if there is none, or if it is a symlink.
    pub(super) fn open_old(&self) -> Result<Option<ReadFile>, FsError> {
        let file = self.was.as_ref().filter(|was| !was.is_link());
        file.map(|_| ReadFile::open(&self.place)).transpose()
    }

    fn is_symlink_to(&self, target: &[u8]) -> bool {
        open_beneath::link_target(self.place.root.handle(), &self.place.relative)
            .is_ok_and(|current| current == target)
    }

    /// Reverts a completed step.
    pub(super) fn revert(&self, in_place: bool) -> Result<(), FsError> {
        if let Some(was) = self.was.as_deref().filter(|_| in_place) {
            return in_place::write(self, was);
        }
        if !self.still_has_result()? {
            // Another process has changed it since; that change must not be lost.
            return Ok(());
        }
        let (parent, name) = self.split()?;
        let directory = Arc::new(self.open_directory(parent)?);
        let restore_old = || -> Result<(), Errno> {
            let Some(was) = &self.was else {
                return rustix::fs::unlinkat(&directory, name, AtFlags::empty());
            };
            if was.is_link() {
                return match self.now {
                    Some(_) => symlink::replace(&directory, name, was),
                    None => symlink::create(&directory, name, was),
                };
            }
            let staged = Staged::write(&directory, was, Mode::from_raw_mode(0o600))?;
            match ReadFile::open(&self.place) {
                Ok(file) => attributes::copy(file.handle(), &file.stat, staged.file())?,
                Err(_) => attributes::set_mode(staged.file(), self.place.mode().unwrap_or(0o600))?,
            }
            if let Some(mode) = self.place.mode().filter(|_| self.mode.is_some()) {
                attributes::set_mode(staged.file(), mode)?;
            }
            staged.sync()?;
            staged.replace(name)
        };
        restore_old().map_err(|errno| self.error("cannot be reverted", errno))
    }

    /// Whether the path still has the result of the step.
    fn still_has_result(&self) -> Result<bool, FsError> {
        if let Some(target) = self.now.as_ref().filter(|now| now.is_link()) {
            return Ok(self.is_symlink_to(target));
        }
        let handle = self.place.root.handle();
        if open_beneath::link_target(handle, &self.place.relative).is_ok() {
            return Ok(false);
        }
        // The kind at the time of resolution no longer matters.
        let place = ResolvedPath { kind: Some(FileKind::File), ..self.place.clone() };
        let current = ReadFile::open(&place).and_then(|file| file.read_all(u64::MAX - 1));
        match (current, &self.now) {
            (Ok(bytes), Some(now)) => Ok(bytes == now[..]),
            (Err(error), now) => match error.kind() {
                FsErrorKind::NotFound => Ok(now.is_none()),
                FsErrorKind::NotRegular | FsErrorKind::IsDirectory | FsErrorKind::Stale => {
                    Ok(false)
                }
                _ => Err(error),
            },
            (Ok(_), None) => Ok(false),
        }
    }

    pub(super) fn split(&self) -> Result<(&Path, &OsStr), FsError> {
        self.place.split().ok_or_else(|| self.fail(FsErrorKind::IsDirectory, "is a directory"))
    }

    pub(super) fn open_directory(&self, relative: &Path) -> Result<OwnedFd, FsError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        open_beneath::open(self.place.root.handle(), relative, flags, Mode::empty())
            .map_err(|errno| self.error("is in a directory that cannot be opened", errno))
    }

    pub(super) fn contents(&self) -> (Option<&Content>, Option<&Content>) {
        (self.was.as_ref(), self.now.as_ref())
    }

    pub(super) fn fail(&self, kind: FsErrorKind, detail: &str) -> FsError {
        FsError::new(kind, self.place.path(), detail)
    }

    pub(super) fn error(&self, cannot: &str, errno: Errno) -> FsError {
        FsError::from_errno(self.place.path(), cannot, errno)
    }

    /// Fails if no file can be created in the nearest existing directory above.
    fn require_creatable_above(&self, missing: &Path) -> Result<(), FsError> {
        for above in missing.ancestors().skip(1) {
            match self.open_directory(above) {
                Err(error) if error.kind() == FsErrorKind::NotFound => {}
                directory => return self.require_creatable(&directory?, above),
            }
        }
        Ok(())
    }

    /// Fails if no file can be created or removed in the directory at `relative`.
    fn require_creatable(&self, directory: &OwnedFd, relative: &Path) -> Result<(), FsError> {
        let access = Access::WRITE_OK | Access::EXEC_OK;
        let Err(errno) = rustix::fs::accessat(directory, ".", access, AtFlags::EACCESS) else {
            return Ok(());
        };
        let is_own = rustix::fs::fstat(directory)
            .is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
        if errno == Errno::ACCESS && is_own {
            let place = ResolvedPath { relative: relative.to_owned(), ..self.place.clone() };
            let detail = "is a directory that is not writable (its mode does not permit it)";
            return Err(FsError::new(FsErrorKind::DirectoryMode, place.path(), detail));
        }
        Err(self.error("is in a directory that cannot be written", errno))
    }

    /// Fails if the file is not writable: a rename would replace it silently.
    fn require_writable(&self, directory: &OwnedFd, name: &OsStr) -> Result<(), FsError> {
        let stat = open_beneath::stat(directory.as_fd(), name)
            .map_err(|errno| self.error("cannot be inspected", errno))?;
        require_file(&self.place, Some(FileKind::of(&stat)))?;
        if let Some(detail) = immutable_reason(directory, name) {
            return Err(self.fail(FsErrorKind::ReadOnly, detail));
        }
        match rustix::fs::accessat(directory, name, Access::WRITE_OK, AtFlags::EACCESS) {
            Ok(()) => Ok(()),
            Err(Errno::ACCESS | Errno::PERM) => {
                let detail = "is write-protected (its mode does not permit writing)";
                Err(self.fail(FsErrorKind::ReadOnly, detail))
            }
            Err(errno) => Err(self.error("cannot be checked for write permission", errno)),
        }
    }
}

/// The reason why no program can change a file, whatever its mode: an attribute of `chattr`.
fn immutable_reason(directory: &OwnedFd, name: &OsStr) -> Option<&'static str> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let attributes =
        rustix::fs::statx(directory, name, flags, StatxFlags::empty()).ok()?.stx_attributes;
    if attributes.contains(StatxAttributes::IMMUTABLE) {
        return Some("is immutable: it cannot be changed until `chattr -i` removes that attribute");
    }
    attributes
        .contains(StatxAttributes::APPEND)
        .then_some("is append-only: it cannot be replaced until `chattr -a` removes that attribute")
}
