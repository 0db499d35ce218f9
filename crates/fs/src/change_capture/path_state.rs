//! The state of a path beneath a writable root: file, directory, symlink or nothing.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::bulk_reader::{Stamp, read_whole};
use crate::content::Content;
use crate::file::is_virtual;
use crate::listing::{Directory, EntryKind};
use crate::open_beneath;
use crate::root::{Root, RootMode};
use crate::workspace::Workspace;

use super::limits::NotKept;

/// The mode bits of a symlink.
const SYMLINK_MODE: u32 = 0o777;

/// A real path beneath a writable root.
#[derive(Debug)]
pub(super) struct WritablePath {
    root: Arc<Root>,
    relative: PathBuf,
}

/// The file at a path.
#[derive(Debug)]
pub(super) enum PathState {
    Nothing,
    File {
        stamp: Stamp,
    },
    Symlink,
    Directory(DirectoryFingerprint),
    /// A FIFO, a socket or a device.
    Other,
    /// The state is unknown, for example because a directory above cannot be searched.
    Unknown(Errno),
}

/// The identity and mode of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DirectoryFingerprint {
    pub(super) identity: (u64, u64),
    pub(super) mode: u32,
}

impl WritablePath {
    /// `None` if the innermost root of the path is not writable.
    pub(super) fn of(workspace: &Workspace, path: &Path) -> Option<WritablePath> {
        let (root, relative) = workspace.innermost(path)?;
        let writable = root.mode() == RootMode::ReadWrite && !relative.as_os_str().is_empty();
        writable.then(|| WritablePath { root, relative })
    }

    /// The mode of a root; `None` if the path is no root.
    pub(super) fn root_mode(workspace: &Workspace, path: &Path) -> Option<u32> {
        let (root, relative) = workspace.innermost(path)?;
        let stat = relative.as_os_str().is_empty().then(|| rustix::fs::fstat(root.handle()));
        Some(open_beneath::permissions(&stat?.ok()?).as_raw_mode())
    }

    pub(super) fn path(&self) -> PathBuf {
        self.root.path().join(&self.relative)
    }

    pub(super) fn state(&self) -> PathState {
        let stat = match open_beneath::stat_beneath(self.root.handle(), &self.relative) {
            Ok(stat) => stat,
            // Beneath a symlink that replaced a directory, nothing of that directory is left.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return PathState::Nothing,
            Err(errno) => return PathState::Unknown(errno),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => PathState::File { stamp: Stamp::of(&stat) },
            FileType::Symlink => PathState::Symlink,
            FileType::Directory => {
                let mode = open_beneath::permissions(&stat).as_raw_mode();
                PathState::Directory(DirectoryFingerprint {
                    identity: Stamp::of(&stat).identity,
                    mode,
                })
            }
            _ => PathState::Other,
        }
    }

    /// The content of the file or symlink, at most `max_bytes`, and its mode.
    pub(super) fn read(&self, max_bytes: u64) -> Result<(Content, u32), NotKept> {
        let too_large = |bytes| NotKept::TooLarge { bytes, limit: max_bytes };
        if let Ok(target) = open_beneath::link_target(self.root.handle(), &self.relative) {
            return match target.len() as u64 {
                bytes if bytes > max_bytes => Err(too_large(bytes)),
                _ => Ok((Content::link(target), SYMLINK_MODE)),
            };
        }
        let (file, stat) = self.open()?;
        if stat.st_size == 0 && is_virtual(&file) {
            return Err(NotKept::NoFile);
        }
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        if size > max_bytes {
            return Err(too_large(size));
        }
        let mut bytes = Vec::new();
        match read_whole(&file, size, max_bytes, &mut bytes) {
            Ok(true) => Ok((bytes.into(), open_beneath::permissions(&stat).as_raw_mode())),
            Ok(false) => Err(too_large(size)),
            Err(errno) => Err(NotKept::Unreadable(errno)),
        }
    }

    /// Opens the regular file for reading.
    pub(super) fn open(&self) -> Result<(OwnedFd, Stat), NotKept> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = open_beneath::open(self.root.handle(), &self.relative, flags, Mode::empty());
        let file = file.map_err(NotKept::Unreadable)?;
        let stat = rustix::fs::fstat(&file).map_err(NotKept::Unreadable)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok((file, stat)),
            _ => Err(NotKept::NoFile),
        }
    }

    /// The files and directories beneath a directory, at most `most`, and whether these are all. Symlinks are
    /// not followed.
    pub(super) fn descendants(&self, most: usize) -> (Vec<PathBuf>, bool) {
        let (mut found, mut buffer) = (Vec::new(), Vec::new());
        let mut pending = vec![self.relative.clone()];
        while let Some(relative) = pending.pop() {
            let Ok(directory) = Directory::beneath(&self.root, &relative) else { continue };
            let listed = directory.each_with(&mut buffer, |name: &OsStr, kind| {
                let path = relative.join(name);
                found.push(self.root.path().join(&path));
                if kind == EntryKind::Directory {
                    pending.push(path);
                }
                found.len() < most
            });
            if listed.is_err() || found.len() >= most {
                return (found, false);
            }
        }
        (found, true)
    }
}
