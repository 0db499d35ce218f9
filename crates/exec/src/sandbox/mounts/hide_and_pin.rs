//! Hides paths within the roots, and pins roots within other roots.
//!
//! A mount on a path is not enough: renaming a directory above it moves the mount along, so that a command
//! could put another directory in its place, or find the hidden path under another name the next time. So
//! each directory between the root and the path becomes a bind mount of itself, as writable as before: a
//! mount point cannot be renamed.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstatvfs, openat2};

use rustix::io::Errno;

use super::mount::{DetachedMount, Placeholders};
use crate::sandbox::Sandbox;
use crate::setup_error::{SetupError, path_context};

/// The real paths of the writable roots.
pub(super) struct Roots {
    real: Vec<PathBuf>,
    /// Directories that cannot be renamed any more.
    pinned: BTreeSet<PathBuf>,
}

/// A mount within the roots.
pub(crate) enum InnerMount {
    /// A bind mount of a directory on itself, so that it cannot be renamed.
    Pinned(PathBuf),
    /// A path to cover.
    Hidden(PathBuf),
}

impl Roots {
    pub(super) fn of(sandbox: &Sandbox) -> Roots {
        let roots = sandbox.writable.iter().map(|pinned| pinned.path.clone());
        Roots { real: roots.collect(), pinned: BTreeSet::new() }
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        self.real.iter().any(|root| path.starts_with(root) && path != root)
    }

    /// The mounts that hide a real path.
    pub(super) fn hide(&mut self, path: PathBuf) -> Vec<InnerMount> {
        let mut inner_mounts = self.pin_parents(&path);
        inner_mounts.push(InnerMount::Hidden(path));
        inner_mounts
    }

    fn pin_parents(&mut self, path: &Path) -> Vec<InnerMount> {
        self.unpinned_parents(path).into_iter().map(InnerMount::Pinned).collect()
    }

    /// The directories between the root and a path that are not pinned yet. Marks them as pinned.
    pub(super) fn unpinned_parents(&mut self, path: &Path) -> Vec<PathBuf> {
        let around = self.real.iter().filter(|root| path.starts_with(root) && path != **root);
        let Some(root) = around.max_by_key(|real| real.components().count()) else {
            return Vec::new();
        };
        let above = path.ancestors().skip(1).take_while(|above| above != root);
        let mut above: Vec<&Path> = above.collect();
        above.reverse();
        let new = above.into_iter().filter(|directory| self.pinned.insert((*directory).to_owned()));
        new.map(Path::to_owned).collect()
    }
}

impl InnerMount {
    /// Makes the mount.
    pub(super) fn attach(&self, placeholders: &Placeholders) -> Result<(), SetupError> {
        match self {
            InnerMount::Pinned(path) => {
                let place = match open_no_symlinks(path) {
                    // A path below it is gone, too; its own mount handles that.
                    Err(Errno::NOENT) => return Ok(()),
                    place => path_context("open", path, place)?,
                };
                DetachedMount::from_fd(&place, path)?.attach_at(&place, path)
            }
            InnerMount::Hidden(path) => {
                let place = match open_no_symlinks(path) {
                    // A missing path need not be hidden.
                    Err(Errno::NOENT) => return Ok(()),
                    place => path_context("open", path, place)?,
                };
                let tree =
                    if path.is_dir() { placeholders.directory()? } else { placeholders.file()? };
                tree.attach_at(&place, path)?;
                path_context("hide", path, check_covered(path))
            }
        }
    }
}

/// Fails if another process renamed the path after it was opened, so that another file is at the path now.
pub(crate) fn check_covered(path: &Path) -> io::Result<()> {
    let covered = fstatvfs(open_no_symlinks(path)?)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    if covered { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EBUSY)) }
}

/// Opens a path without following symlinks: a mount must not end up behind one.
pub(crate) fn open_no_symlinks(path: &Path) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}
