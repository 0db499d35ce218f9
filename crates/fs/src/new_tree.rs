//! A tree of files that is made from nothing: beside the place where it is to be, and moved there when it is complete.
//!
//! Nothing is overwritten and no symlink is followed. If it is not completed, nothing of it stays.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, RawMode, Timespec, Timestamps};
use rustix::io::{Errno, retry_on_intr};

use crate::error::{FsError, FsErrorKind};
use crate::open_beneath;
use crate::random;
use crate::real_path::real_path;

/// Nobody else sees the files before they are complete.
const DRAFT_MODE: Mode = Mode::from_raw_mode(0o700);

/// A tree that is being made.
#[derive(Debug)]
pub struct NewTree {
    /// Where it will be.
    path: PathBuf,
    parent: OwnedFd,
    name: OsString,
    draft: PathBuf,
    handle: OwnedFd,
    /// The mode that the top directory gets at the end.
    mode: Mode,
    is_complete: bool,
}

/// A file of the tree that is being written.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    path: PathBuf,
}

impl NewTree {
    /// Begins a tree. The directory at `path` must be missing or empty, and the one around it must exist.
    ///
    /// # Errors
    ///
    /// Fails if something is there, or if the directory around it cannot be written.
    pub fn begin(path: &Path) -> Result<NewTree, FsError> {
        let absolute = std::path::absolute(path)
            .map_err(|error| FsError::from_io(path, "cannot be used", &error))?;
        let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
            return Err(FsError::new(
                FsErrorKind::Invalid,
                path,
                "is no place for a new directory",
            ));
        };
        let (parent, name) = (real_path(parent), name.to_owned());
        let path = parent.join(&name);
        let cannot = |errno| FsError::from_errno(&path, "cannot be made", errno);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let around = retry_on_intr(|| rustix::fs::open(&parent, flags, Mode::empty()));
        let around = around.map_err(cannot)?;
        let there = existing_mode(&around, &name, &path)?;
        let random = random::hex::<8>().map_err(cannot)?;
        let mut draft = OsString::from(".");
        draft.push(&name);
        draft.push(format!(".restoring-{random}"));
        let all = Mode::from_raw_mode(0o777);
        rustix::fs::mkdirat(&around, &draft, all).map_err(cannot)?;
        let begun = || -> Result<(OwnedFd, Mode), Errno> {
            let flags = flags | OFlags::NOFOLLOW;
            let handle =
                retry_on_intr(|| rustix::fs::openat(&around, &draft, flags, Mode::empty()))?;
            let usual = open_beneath::permissions(&rustix::fs::fstat(&handle)?);
            rustix::fs::fchmod(&handle, DRAFT_MODE)?;
            Ok((handle, there.unwrap_or(usual)))
        };
        let (handle, mode) = begun().map_err(|errno| {
            // It is empty.
            let _ = rustix::fs::unlinkat(&around, &draft, AtFlags::REMOVEDIR);
            cannot(errno)
        })?;
        let draft = parent.join(draft);
        Ok(NewTree { path, parent: around, name, draft, handle, mode, is_complete: false })
    }

    /// Where the tree will be, without symlinks.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory. Its parent must be in the tree.
    ///
    /// # Errors
    ///
    /// Fails if something is there.
    pub fn directory(&self, relative: &Path) -> Result<(), FsError> {
        self.in_parent(relative, |parent, name| {
            rustix::fs::mkdirat(parent, name, DRAFT_MODE)?;
            // The umask may have cleared bits.
            rustix::fs::chmodat(parent, name, DRAFT_MODE, AtFlags::empty())
        })
    }

    /// Sets the mode of a directory. A directory that its owner cannot write takes no more files.
    ///
    /// # Errors
    ///
    /// Fails if there is no such directory.
    pub fn set_directory_mode(&self, relative: &Path, mode: u32) -> Result<(), FsError> {
        self.check(relative)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let set = || {
            let directory =
                open_beneath::open(self.handle.as_fd(), relative, flags, Mode::empty())?;
            rustix::fs::fchmod(&directory, bits(mode))
        };
        set().map_err(|errno| self.error(relative, errno))
    }

    /// Makes a symlink. Its target is not looked at.
    ///
    /// # Errors
    ///
    /// Fails if something is there.
    pub fn symlink(&self, relative: &Path, target: &[u8]) -> Result<(), FsError> {
        self.in_parent(relative, |parent, name| rustix::fs::symlinkat(target, parent, name))
    }

    /// Makes a file.
    ///
    /// # Errors
    ///
    /// Fails if something is there.
    pub fn file(&self, relative: &Path) -> Result<NewFile, FsError> {
        let mut made = None;
        self.in_parent(relative, |parent, name| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let mode = Mode::from_raw_mode(0o600);
            made = Some(rustix::fs::openat(parent, name, flags | OFlags::CLOEXEC, mode)?);
            Ok(())
        })?;
        let path = self.path.join(relative);
        let file = made.ok_or_else(|| self.error(relative, Errno::NOENT))?.into();
        Ok(NewFile { file, path })
    }

    /// Writes everything to the disk, and puts the tree in its place.
    ///
    /// # Errors
    ///
    /// Fails if something is in its place by now. Then nothing stays.
    pub fn complete(mut self) -> Result<PathBuf, FsError> {
        let cannot = |errno| FsError::from_errno(&self.path, "cannot be made", errno);
        rustix::fs::syncfs(&self.handle).map_err(cannot)?;
        rustix::fs::fchmod(&self.handle, self.mode).map_err(cannot)?;
        // It replaces an empty directory, and nothing else.
        let draft = self.draft.file_name().unwrap_or_default();
        rustix::fs::renameat(&self.parent, draft, &self.parent, &self.name).map_err(cannot)?;
        self.is_complete = true;
        rustix::fs::fsync(&self.parent).map_err(cannot)?;
        Ok(self.path.clone())
    }

    fn in_parent(
        &self,
        relative: &Path,
        act: impl FnOnce(&OwnedFd, &std::ffi::OsStr) -> Result<(), Errno>,
    ) -> Result<(), FsError> {
        self.check(relative)?;
        let (Some(parent), Some(name)) = (relative.parent(), relative.file_name()) else {
            return Err(self.error(relative, Errno::INVAL));
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        open_beneath::open(self.handle.as_fd(), parent, flags, Mode::empty())
            .and_then(|parent| act(&parent, name))
            .map_err(|errno| self.error(relative, errno))
    }

    /// Refuses paths that leave the tree.
    fn check(&self, relative: &Path) -> Result<(), FsError> {
        let mut names = relative.components().peekable();
        if names.peek().is_none() || names.any(|name| !matches!(name, Component::Normal(_))) {
            let detail = "is not a path inside the tree";
            return Err(FsError::new(FsErrorKind::Outside, relative, detail));
        }
        Ok(())
    }

    fn error(&self, relative: &Path, errno: Errno) -> FsError {
        FsError::from_errno(self.path.join(relative), "cannot be made", errno)
    }
}

impl Drop for NewTree {
    fn drop(&mut self) {
        if !self.is_complete {
            // What cannot be removed has a name that says what it is.
            let _ = std::fs::remove_dir_all(&self.draft);
        }
    }
}

impl NewFile {
    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// Fails if the disk does.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FsError> {
        self.file.write_all(bytes).map_err(|error| self.error(&error))
    }

    /// Gives the file its mode and the time of its last change: seconds and nanoseconds since 1970.
    ///
    /// # Errors
    ///
    /// Fails if the file system does not accept them.
    pub fn finish(self, mode: u32, modified: (i64, i64)) -> Result<(), FsError> {
        let time = Timespec { tv_sec: modified.0, tv_nsec: modified.1.clamp(0, 999_999_999) as _ };
        let times = Timestamps { last_access: time, last_modification: time };
        let set = || -> io::Result<()> {
            rustix::fs::futimens(&self.file, &times)?;
            Ok(rustix::fs::fchmod(&self.file, bits(mode))?)
        };
        set().map_err(|error| self.error(&error))
    }

    fn error(&self, error: &io::Error) -> FsError {
        FsError::from_io(self.path.clone(), "cannot be written", error)
    }
}

/// The mode of an empty directory that is there. Fails if something else is there.
fn existing_mode(parent: &OwnedFd, name: &OsString, path: &Path) -> Result<Option<Mode>, FsError> {
    let cannot = |errno| FsError::from_errno(path, "cannot be inspected", errno);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let taken = || {
        FsError::new(
            FsErrorKind::Invalid,
            path,
            "exists; give the path of a directory that is missing or empty",
        )
    };
    let there = match retry_on_intr(|| rustix::fs::openat(parent, name, flags, Mode::empty())) {
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(taken()),
        there => there.map_err(cannot)?,
    };
    let mode = open_beneath::permissions(&rustix::fs::fstat(&there).map_err(cannot)?);
    for entry in rustix::fs::Dir::read_from(&there).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Err(taken());
        }
    }
    Ok(Some(mode))
}

/// The bits that a restored file gets: none that give it the rights of its owner.
fn bits(mode: u32) -> Mode {
    Mode::from_raw_mode((mode & 0o777) as RawMode)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_complete_tree_is_in_its_place_and_an_unfinished_one_leaves_nothing() {
        let top = tempfile::tempdir().unwrap();
        let place = top.path().join("work");
        let make = || {
            let tree = NewTree::begin(&place).unwrap();
            tree.directory(Path::new("a")).unwrap();
            let mut file = tree.file(Path::new("a/f")).unwrap();
            file.write(b"one").unwrap();
            file.write(b"two").unwrap();
            file.finish(0o4751, (1_000, 5)).unwrap();
            tree.symlink(Path::new("a/l"), b"/etc").unwrap();
            tree.set_directory_mode(Path::new("a"), 0o750).unwrap();
            tree
        };
        drop(make());
        assert_eq!(std::fs::read_dir(top.path()).unwrap().count(), 0);
        assert!(make().complete().unwrap().ends_with("work"));
        assert_eq!(std::fs::read_dir(top.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read(place.join("a/f")).unwrap(), b"onetwo");
        let found = std::fs::metadata(place.join("a/f")).unwrap();
        assert_eq!((found.mode() & 0o7777, found.mtime(), found.mtime_nsec()), (0o751, 1_000, 5));
        assert_eq!(std::fs::metadata(place.join("a")).unwrap().mode() & 0o777, 0o750);
        assert_eq!(std::fs::read_link(place.join("a/l")).unwrap(), Path::new("/etc"));
    }

    #[test]
    fn only_a_missing_or_empty_directory_is_replaced() {
        let top = tempfile::tempdir().unwrap();
        let place = top.path().join("work");
        std::fs::create_dir(&place).unwrap();
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o710)).unwrap();
        let tree = NewTree::begin(&place).unwrap();
        std::fs::write(place.join("mine"), "x").unwrap();
        assert!(tree.complete().is_err(), "a file came in between");
        assert!(NewTree::begin(&place).is_err());
        assert_eq!(std::fs::read(place.join("mine")).unwrap(), b"x");
        std::fs::remove_file(place.join("mine")).unwrap();
        NewTree::begin(&place).unwrap().complete().unwrap();
        assert_eq!(std::fs::metadata(&place).unwrap().mode() & 0o777, 0o710);
        symlink(&place, top.path().join("link")).unwrap();
        assert!(NewTree::begin(&top.path().join("link")).is_err());
        assert!(NewTree::begin(Path::new("/")).is_err());
    }

    #[test]
    fn paths_that_leave_the_tree_and_symlinks_on_the_way_are_refused() {
        let top = tempfile::tempdir().unwrap();
        let tree = NewTree::begin(&top.path().join("work")).unwrap();
        tree.symlink(Path::new("out"), top.path().as_os_str().as_encoded_bytes()).unwrap();
        for path in ["", ".", "..", "../x", "/x", "a/../../x", "out/x", "missing/x", "out"] {
            assert!(tree.file(Path::new(path)).is_err(), "{path}");
            assert!(tree.directory(Path::new(path)).is_err(), "{path}");
            assert!(tree.symlink(Path::new(path), b"t").is_err(), "{path}");
        }
        assert!(tree.set_directory_mode(Path::new("out"), 0o777).is_err());
    }
}
