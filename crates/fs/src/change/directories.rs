//! Directories made on the way to a new file; gone again if the file did not come to be.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::beneath;
use crate::error::FsError;
use crate::place::Place;
use crate::root::Root;

#[derive(Default)]
pub(super) struct MadeDirectories {
    made: Vec<(Arc<Root>, PathBuf)>,
}

impl MadeDirectories {
    /// Makes the directories that a place needs.
    pub(super) fn make_for(&mut self, place: &Place) -> Result<(), FsError> {
        let Some((directories, _)) = place.split() else { return Ok(()) };
        if open(&place.root, directories).is_ok() {
            return Ok(());
        }
        let cannot = |errno| {
            FsError::from_errno(place.path(), "is in a directory that cannot be made", errno)
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

    /// What was made, each before those in it.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.made.iter().map(|(root, relative)| root.location().join(relative))
    }

    pub(super) fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for MadeDirectories {
    fn drop(&mut self) {
        self.made.iter().rev().for_each(|(root, made)| remove_if_empty(root, made));
    }
}

/// Takes a directory away if nothing is in it; otherwise somebody uses it, and it stays.
pub(super) fn remove_if_empty(root: &Root, relative: &Path) {
    let (Some(parent), Some(name)) = (relative.parent(), relative.file_name()) else { return };
    if let Ok(directory) = open(root, parent) {
        let _ = rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR);
    }
}

fn open(root: &Root, relative: &Path) -> Result<std::os::fd::OwnedFd, Errno> {
    beneath::open(root.handle(), relative, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
}
