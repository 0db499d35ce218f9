//! Names within the roots that a command can neither write, remove nor rename away, and those that it
//! does not see.
//!
//! A mount upon a name is not enough: whoever renames a directory above it takes the mount along, and may
//! then put another in its place, or find what is hidden under another name the next time. So each
//! directory between the root and the name is a mount upon itself, as writable as before: such a one
//! cannot be renamed.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstatvfs, openat2};

use rustix::io::Errno;

use super::mount::{Nothing, Tree};
use crate::sandbox::Sandbox;
use crate::step::{Failure, at};

/// The roots that can be written, under their real names.
pub(super) struct Roots {
    /// As given, and as it really is.
    both: Vec<(PathBuf, PathBuf)>,
    /// Directories that cannot be renamed any more.
    held: BTreeSet<PathBuf>,
}

/// Something within the roots that is laid upon itself, or covered, in the order in which that is done.
pub(crate) enum Hold {
    /// A directory on the way: it stays as it is, and cannot be renamed.
    Directory(PathBuf),
    /// A name that may be read only.
    ReadOnly(PathBuf),
    /// A name that is not seen.
    Hidden(PathBuf),
}

impl Roots {
    pub(super) fn of(sandbox: &Sandbox) -> Roots {
        let given = sandbox.writable.iter().chain(&sandbox.caches);
        let both = given.filter_map(|root| Some((root.clone(), fs::canonicalize(root).ok()?)));
        Roots { both: both.collect(), held: BTreeSet::new() }
    }

    pub(super) fn contain(&self, path: &Path) -> bool {
        self.both.iter().any(|(_, real)| path.starts_with(real) && path != real)
    }

    /// What makes names read-only; and those for which nothing does: they are not there, or behind a link
    /// which may be replaced.
    pub(super) fn protect(&mut self, names: &[PathBuf]) -> (Vec<Hold>, Vec<PathBuf>) {
        let (mut holds, mut unprotected) = (Vec::new(), Vec::new());
        for name in names {
            // Outside of every root it is read-only already.
            let Some(path) = self.real_name(name) else { continue };
            if open(&path).is_err() {
                unprotected.push(name.clone());
                continue;
            }
            holds.extend(self.hold_above(&path));
            holds.push(Hold::ReadOnly(path));
        }
        (holds, unprotected)
    }

    /// What hides a name, which is a real one.
    pub(super) fn hide(&mut self, path: PathBuf) -> Vec<Hold> {
        let mut holds = self.hold_above(&path);
        holds.push(Hold::Hidden(path));
        holds
    }

    /// A name as it is under its root's real name; nothing, if it is in no root.
    fn real_name(&self, name: &Path) -> Option<PathBuf> {
        let as_given = self.both.iter().find_map(|(given, real)| {
            let below = name.strip_prefix(given).or_else(|_| name.strip_prefix(real)).ok()?;
            Some(real.join(below))
        });
        let path = as_given.or_else(|| fs::canonicalize(name).ok())?;
        self.contain(&path).then_some(path)
    }

    /// Every directory between the root and a name, as far as it is not held yet.
    fn hold_above(&mut self, path: &Path) -> Vec<Hold> {
        let around = self.both.iter().map(|(_, real)| real).filter(|real| path.starts_with(real));
        let Some(root) = around.max_by_key(|real| real.components().count()) else {
            return Vec::new();
        };
        let above = path.ancestors().skip(1).take_while(|above| above != root);
        let mut above: Vec<&Path> = above.collect();
        above.reverse();
        let new = above.into_iter().filter(|directory| self.held.insert((*directory).to_owned()));
        new.map(|directory| Hold::Directory(directory.to_owned())).collect()
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
            Hold::ReadOnly(path) => {
                let place = at("open", path, open(path))?;
                Tree::of_open(&place, path)?.read_only()?.lay_on(&place, path)?;
                at("protect", path, check_covered(path))
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
