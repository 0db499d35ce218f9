//! The only way to write: a whole new file, put in place at once.
//!
//! The new content goes into a file that has no name yet, gets the old one's mode, owner and
//! attributes, and is on disk before it takes the old one's name in a single rename. Readers and
//! crashes see the old file or the new one. Just before the rename the old file is read once more:
//! if it is not what the change was made from, nothing happens.

mod attributes;
mod staged;

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use self::staged::Staged;
use crate::beneath;
use crate::error::{FsError, FsErrorKind};
use crate::file::{FileKind, ReadFile, require_file};
use crate::place::Place;
use crate::root::RootMode;

/// A change that is ready to happen.
#[derive(Debug)]
#[must_use = "a change that is dropped without `commit` has not happened"]
pub struct Change {
    place: Place,
    was: Option<Vec<u8>>,
    now: Vec<u8>,
}

/// What there is to say about a change that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The file had other names too; they still have the old content.
    pub hard_link_broken: bool,
}

impl Change {
    /// Puts `now` in the place of a file that reads `was`.
    pub fn replace(place: Place, was: Vec<u8>, now: Vec<u8>) -> Change {
        Change { place, was: Some(was), now }
    }

    /// Makes a new file, and the directories on the way to it.
    pub fn create(place: Place, now: Vec<u8>) -> Change {
        Change { place, was: None, now }
    }

    /// Says whether it would happen, and touches nothing.
    pub fn check(&self) -> Result<(), FsError> {
        if self.place.root.mode() == RootMode::ReadOnly {
            let detail = "is in a root that was given as read-only";
            return Err(FsError::new(FsErrorKind::ReadOnly, self.place.path(), detail));
        }
        let Some(was) = &self.was else { return Ok(()) };
        let (parent, name) = self.split()?;
        self.require_writable(&self.open_directory(parent)?, name)?;
        self.require_unchanged(&ReadFile::open(&self.place)?, was)
    }

    /// Makes it happen, all of it or nothing.
    pub fn commit(self) -> Result<Committed, FsError> {
        self.check()?;
        match &self.was {
            Some(was) => self.commit_replace(was),
            None => self.commit_create(),
        }
    }

    fn commit_replace(&self, was: &[u8]) -> Result<Committed, FsError> {
        let (parent, name) = self.split()?;
        let directory = self.open_directory(parent)?;
        let old = ReadFile::open(&self.place)?;
        let staged = Staged::write(&directory, &self.now)
            .map_err(|errno| self.error("cannot be written", errno))?;
        attributes::copy(old.handle(), &old.stat, staged.file())
            .map_err(|errno| self.error("cannot keep its mode, owner and attributes", errno))?;
        staged.sync().map_err(|errno| self.error("cannot be written", errno))?;
        self.require_unchanged(&old, was)?;
        staged.replace(name).map_err(|errno| self.error("cannot be put in place", errno))?;
        Ok(Committed { hard_link_broken: old.links() > 1 })
    }

    fn commit_create(&self) -> Result<Committed, FsError> {
        let (parent, name) = self.split()?;
        let mut made = MadeDirectories { change: self, made: Vec::new() };
        made.make(parent)?;
        let directory = self.open_directory(parent)?;
        let staged = Staged::write(&directory, &self.now)
            .map_err(|errno| self.error("cannot be written", errno))?;
        staged.sync().map_err(|errno| self.error("cannot be written", errno))?;
        staged.create(name).map_err(|errno| match errno {
            Errno::EXIST => self.stale("was created by somebody else meanwhile"),
            errno => self.error("cannot be put in place", errno),
        })?;
        made.keep();
        Ok(Committed { hard_link_broken: false })
    }

    fn split(&self) -> Result<(&Path, &OsStr), FsError> {
        self.place.split().ok_or_else(|| {
            FsError::new(FsErrorKind::IsDirectory, self.place.path(), "is a directory")
        })
    }

    fn open_directory(&self, relative: &Path) -> Result<OwnedFd, FsError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        beneath::open(self.place.root.handle(), relative, flags, Mode::empty())
            .map_err(|errno| self.error("is in a directory that cannot be opened", errno))
    }

    /// A rename would quietly replace a file that we may not write; so ask first.
    fn require_writable(&self, directory: &OwnedFd, name: &OsStr) -> Result<(), FsError> {
        let stat = beneath::stat(directory.as_fd(), name)
            .map_err(|errno| self.error("cannot be looked at", errno))?;
        require_file(&self.place, Some(FileKind::of(&stat)))?;
        match rustix::fs::accessat(directory, name, Access::WRITE_OK, AtFlags::EACCESS) {
            Ok(()) => Ok(()),
            Err(Errno::ACCESS | Errno::PERM) => {
                let detail = "is write-protected (its mode does not let us write)";
                Err(FsError::new(FsErrorKind::ReadOnly, self.place.path(), detail))
            }
            Err(errno) => Err(self.error("cannot be checked for write permission", errno)),
        }
    }

    /// The same file, with the same bytes, as the change was made from.
    fn require_unchanged(&self, old: &ReadFile, was: &[u8]) -> Result<(), FsError> {
        let now = ReadFile::open(&self.place)?;
        let same_file = (now.stat.st_dev, now.stat.st_ino) == (old.stat.st_dev, old.stat.st_ino);
        let same_bytes = now.read_all(was.len() as u64).is_ok_and(|bytes| bytes == was);
        if same_file && same_bytes {
            return Ok(());
        }
        Err(self.stale("changed on disk since it was read"))
    }

    fn stale(&self, detail: &str) -> FsError {
        FsError::new(FsErrorKind::Stale, self.place.path(), detail)
    }

    fn error(&self, doing: &str, errno: Errno) -> FsError {
        FsError::from_errno(self.place.path(), doing, errno)
    }
}

/// Directories made on the way to a new file; gone again if the file did not come to be.
struct MadeDirectories<'a> {
    change: &'a Change,
    made: Vec<PathBuf>,
}

impl MadeDirectories<'_> {
    fn make(&mut self, relative: &Path) -> Result<(), FsError> {
        let mut parent = PathBuf::new();
        for name in relative {
            let directory = self.change.open_directory(&parent)?;
            parent.push(name);
            match rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => self.made.push(parent.clone()),
                Err(Errno::EXIST) => {}
                Err(errno) => {
                    return Err(self.change.error("is in a directory that cannot be made", errno));
                }
            }
        }
        Ok(())
    }

    fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for MadeDirectories<'_> {
    fn drop(&mut self) {
        for made in self.made.iter().rev() {
            let (Some(parent), Some(name)) = (made.parent(), made.file_name()) else {
                continue;
            };
            if let Ok(directory) = self.change.open_directory(parent) {
                // Not empty any more: somebody uses it, and it stays.
                let _ = rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR);
            }
        }
    }
}
