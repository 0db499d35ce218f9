//! Names within the roots that a command does not see, and roots within other roots.
//!
//! A mount upon a name is not enough: whoever renames a directory above it takes the mount along, and may
//! then put another in its place, or find what is hidden under another name the next time. So each
//! directory between the root and the name is a mount upon itself, as writable as before: such a one
//! cannot be renamed.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstatvfs, openat2};

use rustix::io::Errno;

use super::mount::{Nothing, Tree};
use crate::sandbox::Sandbox;
use crate::setup_error::{Failure, at};

/// The roots that can be written, under their real names.
pub(super) struct Roots {
    real: Vec<PathBuf>,
    /// Directories that cannot be renamed any more.
    held: BTreeSet<PathBuf>,
}

/// Something within the roots that is laid upon itself, or covered, in the order in which that is done.
pub(crate) enum Hold {
    /// A directory on the way: it stays as it is, and cannot be renamed.
    Directory(PathBuf),
    /// A name that is not seen.
    Hidden(PathBuf),
}

impl Roots {
    pub(super) fn of(sandbox: &Sandbox) -> Roots {
        let roots = sandbox.writable.iter().map(|held| held.path.clone());
        Roots { real: roots.collect(), held: BTreeSet::new() }
    }

    pub(super) fn contain(&self, path: &Path) -> bool {
        self.real.iter().any(|root| path.starts_with(root) && path != root)
    }

    /// What hides a name, which is a real one.
    pub(super) fn hide(&mut self, path: PathBuf) -> Vec<Hold> {
        let mut holds = self.hold_above(&path);
        holds.push(Hold::Hidden(path));
        holds
    }

    fn hold_above(&mut self, path: &Path) -> Vec<Hold> {
        self.directories_above(path).into_iter().map(Hold::Directory).collect()
    }

    /// Every directory between the root and a name, as far as it is not held yet.
    pub(super) fn directories_above(&mut self, path: &Path) -> Vec<PathBuf> {
        let around = self.real.iter().filter(|root| path.starts_with(root) && path != **root);
        let Some(root) = around.max_by_key(|real| real.components().count()) else {
            return Vec::new();
        };
        let above = path.ancestors().skip(1).take_while(|above| above != root);
        let mut above: Vec<&Path> = above.collect();
        above.reverse();
        let new = above.into_iter().filter(|directory| self.held.insert((*directory).to_owned()));
        new.map(Path::to_owned).collect()
    }
}

impl Hold {
    /// Lays it where it belongs.
    pub(super) fn lay(&self, nothing: &Nothing) -> Result<(), Failure> {
        match self {
            Hold::Directory(path) => {
                let place = match open(path) {
                    // What was below it is gone too, which is for that to say.
                    Err(Errno::NOENT) => return Ok(()),
                    place => at("open", path, place)?,
                };
                Tree::of_open(&place, path)?.lay_on(&place, path)
            }
            Hold::Hidden(path) => {
                let place = match open(path) {
                    // What is gone by now needs no hiding any more.
                    Err(Errno::NOENT) => return Ok(()),
                    place => at("open", path, place)?,
                };
                let tree = if path.is_dir() { nothing.directory()? } else { nothing.file()? };
                tree.lay_on(&place, path)?;
                at("hide", path, check_covered(path))
            }
        }
    }
}

/// Somebody may have renamed it since it was opened: then what has its name now is something else.
pub(crate) fn check_covered(path: &Path) -> io::Result<()> {
    let covered = fstatvfs(open(path)?)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    if covered { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EBUSY)) }
}

/// Opens a name without following any link: where one is on the way, there is nothing to lay a mount on.
pub(crate) fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}
