//! A step that is known to work, and only has to be put in place.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, Stat, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::staged::Staged;
use super::step::{NewMode, Step};
use super::{CommittedFile, HardLinks, attributes, in_place, link};
use crate::content::Content;
use crate::error::{FsError, FsErrorKind};
use crate::file::ReadFile;
use crate::journal::{FileChange, Version};
use crate::open_beneath;
use crate::parallel_io;
use crate::resolved_path::ResolvedPath;

/// The contents of so many files are synced one after the other, and of more by several threads.
const FEW: usize = 4;

/// A step that only has to be put in place.
pub(super) struct Prepared<'a> {
    step: &'a Step,
    way: Way,
    mode_before: u32,
    mode_after: u32,
    links: u64,
}

/// The directory that was opened last: files of one directory mostly follow each other.
#[derive(Default)]
pub(super) struct LastDirectory(Option<(PathBuf, Arc<OwnedFd>)>);

impl LastDirectory {
    /// The one that a step's file is in.
    fn of(&mut self, step: &Step) -> Result<Arc<OwnedFd>, FsError> {
        let (parent, _) = step.split()?;
        let path = step.place.root.path().join(parent);
        if let Some((_, open)) = self.0.as_ref().filter(|(last, _)| *last == path) {
            return Ok(open.clone());
        }
        let open = Arc::new(step.open_directory(parent)?);
        self.0 = Some((path, open.clone()));
        Ok(open)
    }
}

/// The mode bits that a symlink has.
const LINK_MODE: u32 = 0o777;

/// The mode of a file that is made without one, in a directory that is not there yet.
const USUAL_MODE: u32 = 0o644;

enum Way {
    /// By a new file, which is written, or still to be written.
    Rename(Option<Staged>),
    InPlace,
    /// By a new symlink.
    Link,
    Delete,
}

impl<'a> Prepared<'a> {
    /// Gets everything ready; with `ahead`, the new content too. Writing in place is a way only if somebody
    /// keeps what was there.
    pub(super) fn new(
        step: &'a Step,
        directory: &mut LastDirectory,
        hard_links: HardLinks,
        kept: bool,
        ahead: bool,
    ) -> Result<Self, FsError> {
        let directory = directory.of(step)?;
        let old = step.open_old()?;
        let mode = |stat: &Stat| open_beneath::permissions(stat).as_raw_mode();
        let links = old.as_ref().map_or(1, ReadFile::links);
        let mode_before = old.as_ref().map_or(LINK_MODE, |old| mode(&old.stat));
        let (way, mode_after) = (Way::Delete, mode_before);
        let prepared = Prepared { step, way, mode_before, mode_after, links };
        let Some(now) = &step.now else { return Ok(prepared) };
        if now.is_link() {
            return Ok(Prepared { way: Way::Link, mode_after: LINK_MODE, ..prepared });
        }
        let written_through = links > 1 && hard_links == HardLinks::WriteThrough;
        // A file that is a mount point cannot be replaced, only written.
        let is_mount = old.as_ref().is_some_and(|old| is_mount_point(old.handle()));
        let wants_in_place = step.in_place || written_through || is_mount;
        let may_in_place = kept || step.in_place;
        if wants_in_place && may_in_place {
            return Ok(Prepared { way: Way::InPlace, ..prepared });
        }
        // Without its content, a new file shows as well whether there can be one, and its mode.
        let content = if ahead { &now[..] } else { &[] };
        let staged = match stage(&directory, step, old.as_ref(), content) {
            Ok(staged) => staged,
            // The directory, or what the file is besides its content, is not ours to make anew.
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::INVAL)
                if old.is_some() && may_in_place =>
            {
                return Ok(Prepared { way: Way::InPlace, ..prepared });
            }
            Err(errno) => return Err(step.error("cannot be written", errno)),
        };
        let cannot = |errno| step.error("cannot be looked at", errno);
        let mode_after = mode(&rustix::fs::fstat(staged.file()).map_err(cannot)?);
        let way = Way::Rename(ahead.then_some(staged));
        Ok(Prepared { way, mode_after, ..prepared })
    }

    /// A step that waits for others: nothing of it can be written ahead.
    pub(super) fn later(step: &'a Step) -> Self {
        let (way, mode_after) = match &step.now {
            None => (Way::Delete, 0),
            Some(now) if now.is_link() => (Way::Link, LINK_MODE),
            Some(_) => {
                (Way::Rename(None), step.mode.map_or(USUAL_MODE, |mode| mode.of(USUAL_MODE)))
            }
        };
        Prepared { step, way, mode_before: 0, mode_after, links: 1 }
    }

    /// Writes the new content of these, as far as it is not written yet, and waits until it is on disk.
    pub(super) fn write(files: &mut [Self], directory: &mut LastDirectory) -> Result<(), FsError> {
        for Prepared { step, way, .. } in files.iter_mut() {
            if let Way::Rename(staged @ None) = way {
                let (directory, old) = (directory.of(step)?, step.open_old()?);
                let now = step.now.as_deref().unwrap_or_default();
                let written = stage(&directory, step, old.as_ref(), now);
                *staged = Some(written.map_err(|errno| step.error("cannot be written", errno))?);
            }
        }
        let sync = |file: &Self| match &file.way {
            Way::Rename(Some(staged)) => {
                staged.sync().map_err(|errno| file.step.error("cannot be written", errno))
            }
            _ => Ok(()),
        };
        match files.len() <= FEW {
            true => files.iter().try_for_each(sync),
            false => parallel_io::for_each(files, sync),
        }
    }

    pub(super) fn place(&self) -> &ResolvedPath {
        &self.step.place
    }

    /// What there will be to say about it.
    pub(super) fn outcome(&self) -> CommittedFile {
        let in_place = matches!(self.way, Way::InPlace);
        CommittedFile {
            hash: self.step.now.as_ref().map(Content::hash),
            hard_link_broken: self.links > 1 && !in_place && self.step.now.is_some(),
            in_place,
        }
    }

    /// The journal's words for it.
    pub(super) fn file_change(&self) -> FileChange {
        let before = self.step.was.as_ref().map(|was| Version::of(was, self.mode_before));
        let after = self.step.now.as_ref().map(|now| Version::of(now, self.mode_after));
        let mut change = FileChange::new(&self.step.place.location(), before, after);
        change.in_place = matches!(self.way, Way::InPlace);
        change
    }

    /// Puts it in place, once it is written. Says `done` as soon as the file is another, for then there is something to take
    /// back.
    pub(super) fn put(
        self,
        directory: &mut LastDirectory,
        done: impl FnOnce(),
    ) -> Result<(), FsError> {
        let Prepared { step, way, .. } = self;
        let (_, name) = step.split()?;
        let now = step.now.as_deref().unwrap_or_default();
        let cannot = |errno| step.error("cannot be put in place", errno);
        // Much may have happened while the new content and the journal went to the disk.
        if let Some(was) = &step.was {
            step.require_unchanged(was)?;
        }
        match (way, &step.was) {
            (Way::Rename(None), _) => return Err(step.fail(FsErrorKind::Io, "was not written")),
            (Way::Delete, _) => {
                let directory = directory.of(step)?;
                rustix::fs::unlinkat(&directory, name, AtFlags::empty()).map_err(cannot)?;
                done();
            }
            (Way::Link, was) => {
                let directory = directory.of(step)?;
                let put = match was {
                    None => link::create(&directory, name, now),
                    Some(_) => link::replace(&directory, name, now),
                };
                put.map_err(|errno| match errno {
                    Errno::EXIST => step.fail(FsErrorKind::Stale, "was created meanwhile"),
                    errno => cannot(errno),
                })?;
                done();
            }
            (Way::InPlace, _) => {
                // From the first byte on.
                done();
                in_place::write(step, now)?;
            }
            (Way::Rename(Some(staged)), None) => {
                staged.create(name).map_err(|errno| match errno {
                    Errno::EXIST => step.fail(FsErrorKind::Stale, "was created meanwhile"),
                    errno => cannot(errno),
                })?;
                done();
            }
            (Way::Rename(Some(staged)), Some(_)) => {
                let inode = rustix::fs::fstat(staged.file()).map_err(cannot)?.st_ino;
                let directory = staged.directory().clone();
                staged.replace(name).map_err(cannot)?;
                done();
                // Some file systems say yes and do nothing.
                if open_beneath::stat(directory.as_fd(), name).map_err(cannot)?.st_ino != inode {
                    return Err(step.fail(FsErrorKind::Io, "is not what was put in its place"));
                }
            }
        }
        Ok(())
    }
}

/// Whether a file is the root of a mount, as a single file that is bound into a container.
fn is_mount_point(file: BorrowedFd<'_>) -> bool {
    rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::empty())
        .is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// The new file, with all that the old one is besides its content.
fn stage(
    directory: &Arc<OwnedFd>,
    step: &Step,
    old: Option<&ReadFile>,
    now: &[u8],
) -> Result<Staged, Errno> {
    // What replaces a private file must be private before it has its mode, and so must what gets another; a
    // new file gets what the umask leaves.
    let is_private = old.is_some() || matches!(step.mode, Some(NewMode::Exactly(_)));
    let mode = Mode::from_raw_mode(if is_private { 0o600 } else { 0o666 });
    let staged = Staged::write(directory, now, mode)?;
    if let Some(old) = old {
        attributes::copy(old.handle(), &old.stat, staged.file())?;
    }
    if let Some(mode) = step.mode {
        let otherwise = open_beneath::permissions(&rustix::fs::fstat(staged.file())?).as_raw_mode();
        attributes::set_mode(staged.file(), mode.of(otherwise))?;
    }
    Ok(staged)
}
