//! Lists directories from their descriptors.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use crate::error::FsError;
use crate::forbidden_files::ForbiddenFiles;
use crate::local_file_system::is_local;
use crate::open_beneath;
use crate::resolved_path::{FileMetadata, ResolvedPath};
use crate::root::{Root, join};

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
    path: PathBuf,
    /// Files in it that must not be opened.
    forbidden: Option<Arc<ForbiddenFiles>>,
}

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symlink.
    Link,
    /// A FIFO, socket or device.
    Special,
}

/// Bytes per read, so that large directories take few calls.
const BUFFER_BYTES: usize = 128 << 10;

impl Directory {
    /// Opens the directory at a path.
    pub fn open(place: &ResolvedPath) -> Result<Directory, FsError> {
        Directory::beneath(&place.root, &place.relative)
    }

    /// Opens a directory by its real path from a root.
    pub(crate) fn beneath(root: &Root, relative: &Path) -> Result<Directory, FsError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let handle = root.open_beneath(relative, flags, "cannot be listed")?;
        let path = join(root.path(), relative);
        Ok(Directory { handle, path, forbidden: root.forbidden().cloned() })
    }

    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Whether it is on a file system whose stat fingerprints show every change. False for unknown file systems.
    pub fn is_local(&self) -> bool {
        is_local(&self.handle)
    }

    /// Its real path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a subdirectory. Fails for a symlink.
    pub fn child(&self, name: &OsStr) -> Result<Directory, FsError> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::io::retry_on_intr(|| {
            rustix::fs::openat(&self.handle, name, flags, Mode::empty())
        })
        .map_err(|errno| FsError::from_errno(&path, "cannot be listed", errno))?;
        if !self.admits(&handle) {
            return Err(FsError::forbidden(path));
        }
        Ok(Directory { handle, path, forbidden: self.forbidden.clone() })
    }

    /// Whether an entry may be opened.
    pub(crate) fn admits(&self, handle: &OwnedFd) -> bool {
        self.forbidden.as_ref().is_none_or(|forbidden| forbidden.admits(handle.as_fd()))
    }

    /// Calls `take` for each entry with its name and kind, in no order, until it returns false.
    pub fn each(&self, take: impl FnMut(&OsStr, EntryKind) -> bool) -> Result<(), FsError> {
        self.each_with(&mut Vec::new(), take)
    }

    /// Like [`Directory::each`], with a buffer that callers reuse for many directories.
    pub fn each_with(
        &self,
        buffer: &mut Vec<u8>,
        mut take: impl FnMut(&OsStr, EntryKind) -> bool,
    ) -> Result<(), FsError> {
        let error = |errno| FsError::from_errno(&self.path, "cannot be listed", errno);
        buffer.clear();
        buffer.reserve(BUFFER_BYTES);
        let mut entries = RawDir::new(&self.handle, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(error)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => self.kind(name).map_err(error)?,
                known => EntryKind::of(known),
            };
            if !take(name, kind) {
                break;
            }
        }
        Ok(())
    }

    /// The size of a file in it, in bytes.
    pub fn size(&self, name: &OsStr) -> Option<u64> {
        let stat = open_beneath::stat(self.handle.as_fd(), name).ok()?;
        u64::try_from(stat.st_size).ok()
    }

    /// The size, mode and modification time of an entry in it. A symlink is not followed.
    pub fn metadata(&self, name: &OsStr) -> Option<FileMetadata> {
        let stat = open_beneath::stat(self.handle.as_fd(), name).ok()?;
        Some(FileMetadata::of(&stat))
    }

    /// The target of a symlink in it.
    pub fn link_target(&self, name: &OsStr) -> Option<OsString> {
        let target = rustix::fs::readlinkat(&self.handle, name, Vec::new()).ok()?;
        Some(OsStr::from_bytes(target.as_bytes()).to_owned())
    }

    fn kind(&self, name: &OsStr) -> Result<EntryKind, Errno> {
        let stat = open_beneath::stat(self.handle.as_fd(), name)?;
        Ok(EntryKind::of(FileType::from_raw_mode(stat.st_mode)))
    }
}

impl EntryKind {
    pub(crate) fn of(file_type: FileType) -> EntryKind {
        match file_type {
            FileType::Directory => EntryKind::Directory,
            FileType::RegularFile => EntryKind::File,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Special,
        }
    }
}
