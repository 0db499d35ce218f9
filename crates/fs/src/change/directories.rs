//! Directories that a change creates or removes, and that are restored if it fails.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::attributes;
use crate::error::FsError;
use crate::open_beneath;
use crate::resolved_path::ResolvedPath;
use crate::root::Root;

/// Created directories. Dropping this removes them again, unless they are kept.
#[derive(Default)]
pub(super) struct MadeDirectories {
    made: Vec<(Arc<Root>, PathBuf)>,
}

impl MadeDirectories {
    /// Creates the parent directories of a path.
    pub(super) fn make_for(&mut self, place: &ResolvedPath) -> Result<(), FsError> {
        let Some((directories, _)) = place.split() else { return Ok(()) };
        self.make_all(place, directories)
    }

    /// Creates a directory and its parents.
    pub(super) fn make(&mut self, place: &ResolvedPath) -> Result<(), FsError> {
        self.make_all(place, &place.relative)
    }

    fn make_all(&mut self, place: &ResolvedPath, directories: &Path) -> Result<(), FsError> {
        if open(&place.root, directories).is_ok() {
            return Ok(());
        }
        let cannot = |errno| {
            FsError::from_errno(place.path(), "is in a directory that cannot be created", errno)
        };
        let mut parent = PathBuf::new();
        for name in directories {
            let directory = open(&place.root, &parent).map_err(cannot)?;
            parent.push(name);
            match rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => self.made.push((place.root.clone(), parent.clone())),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(cannot(errno)),
            }
        }
        Ok(())
    }

    /// The created directories, parents first.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.made.iter().map(|(root, relative)| root.location().join(relative))
    }

    /// Keeps the directories, and sets the modes of these, innermost first.
    pub(super) fn keep_with_modes(mut self, modes: &[(ResolvedPath, Option<u32>)]) {
        for (place, mode) in modes.iter().rev() {
            let is_it = |(root, relative): &(Arc<Root>, PathBuf)| {
                Arc::ptr_eq(root, &place.root) && *relative == place.relative
            };
            if let Some(mode) = mode.filter(|_| self.made.iter().any(is_it)) {
                set_mode(place, mode);
            }
        }
        self.made.clear();
    }
}

impl Drop for MadeDirectories {
    fn drop(&mut self) {
        self.made.iter().rev().for_each(|(root, made)| remove_if_empty(root, made));
    }
}

/// Removed directories. Dropping this creates them again, unless they stay removed.
#[derive(Default)]
pub(super) struct RemovedDirectories {
    removed: Vec<ResolvedPath>,
}

impl RemovedDirectories {
    /// Removes an empty directory. A missing one is not an error.
    pub(super) fn remove(&mut self, place: &ResolvedPath) -> Result<(), FsError> {
        let cannot = |errno| {
            FsError::from_errno(place.path(), "is a directory that cannot be removed", errno)
        };
        let Some((parent, name)) = place.split() else { return Ok(()) };
        let removed = open(&place.root, parent)
            .and_then(|directory| rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR));
        match removed {
            Ok(()) => self.removed.push(place.clone()),
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => return Err(cannot(errno)),
        }
        Ok(())
    }

    pub(super) fn keep_removed(mut self) {
        self.removed.clear();
    }
}

impl Drop for RemovedDirectories {
    fn drop(&mut self) {
        for place in self.removed.iter().rev() {
            let mut made = MadeDirectories::default();
            if made.make(place).is_ok() {
                made.keep_with_modes(&[(place.clone(), place.mode())]);
            }
        }
    }
}

/// The missing parent directories of a path, outermost first.
pub(super) fn missing_parents(place: &ResolvedPath) -> Vec<PathBuf> {
    let above = place.relative.ancestors().skip(1);
    let mut missing: Vec<PathBuf> = above
        .take_while(|relative| open(&place.root, relative).is_err())
        .map(|relative| place.root.path().join(relative))
        .collect();
    missing.reverse();
    missing
}

/// Removes a directory if it is empty; otherwise it is in use, and stays.
pub(super) fn remove_if_empty(root: &Root, relative: &Path) {
    let (Some(parent), Some(name)) = (relative.parent(), relative.file_name()) else { return };
    if let Ok(directory) = open(root, parent) {
        let _ = rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR);
    }
}

/// Sets the mode of a directory. If that fails, it keeps its mode.
fn set_mode(place: &ResolvedPath, mode: u32) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let opened = open_beneath::open(place.root.handle(), &place.relative, flags, Mode::empty());
    if let Ok(directory) = opened {
        let _ = attributes::set_mode(std::os::fd::AsFd::as_fd(&directory), mode);
    }
}

fn open(root: &Root, relative: &Path) -> Result<std::os::fd::OwnedFd, Errno> {
    open_beneath::open(root.handle(), relative, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
}
