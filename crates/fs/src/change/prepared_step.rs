//! A step that was checked and prepared, and only has to be put in place.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, Stat, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::staged::Staged;
use super::step::{NewMode, Step};
use super::{CommittedFile, HardLinks, attributes, in_place, symlink};
use crate::content::Content;
use crate::error::{FsError, FsErrorKind};
use crate::file::ReadFile;
use crate::journal::{FileChange, Version};
use crate::open_beneath;
use crate::parallel_io::{DISK_THREADS, in_parallel};
use crate::resolved_path::ResolvedPath;

/// Up to this many files are synced one after the other, more by several threads.
const MAX_SEQUENTIAL: usize = 4;

/// A step that only has to be put in place.
pub(super) struct Prepared<'a> {
    step: &'a Step,
    method: Method,
    mode_before: u32,
    mode_after: u32,
    links: u64,
}

/// The directory that was opened last. Files of one directory mostly follow each other.
#[derive(Default)]
pub(super) struct LastDirectory(Option<(PathBuf, Arc<OwnedFd>)>);

impl LastDirectory {
    /// The directory of a step's file.
    fn get(&mut self, step: &Step) -> Result<Arc<OwnedFd>, FsError> {
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

/// The mode bits of a symlink.
const SYMLINK_MODE: u32 = 0o777;

/// The mode of a new file without an explicit mode, in a directory that does not exist yet.
const DEFAULT_MODE: u32 = 0o644;

enum Method {
    /// By renaming a new file, which is `None` until it is written.
    Rename(Option<Staged>),
    InPlace,
    /// By a new symlink.
    Link,
    Delete,
}

impl<'a> Prepared<'a> {
    /// Prepares a step, including the new content if `ahead`. Writing in place is only possible if a journal
    /// keeps the previous content (`kept`).
    pub(super) fn new(
        step: &'a Step,
        directory: &mut LastDirectory,
        hard_links: HardLinks,
        kept: bool,
        ahead: bool,
    ) -> Result<Self, FsError> {
        let directory = directory.get(step)?;
        let old = step.open_old()?;
        let mode = |stat: &Stat| open_beneath::permissions(stat).as_raw_mode();
        let links = old.as_ref().map_or(1, ReadFile::links);
        let mode_before = old.as_ref().map_or(SYMLINK_MODE, |old| mode(&old.stat));
        let (method, mode_after) = (Method::Delete, mode_before);
        let prepared = Prepared { step, method, mode_before, mode_after, links };
        let Some(now) = &step.now else { return Ok(prepared) };
        if now.is_link() {
            return Ok(Prepared { method: Method::Link, mode_after: SYMLINK_MODE, ..prepared });
        }
        let written_through = links > 1 && hard_links == HardLinks::WriteThrough;
        // A mount point cannot be replaced, only overwritten.
        let is_mount = old.as_ref().is_some_and(|old| is_mount_point(old.handle()));
        let wants_in_place = step.in_place || written_through || is_mount;
        let may_in_place = kept || step.in_place;
        if wants_in_place && may_in_place {
            return Ok(Prepared { method: Method::InPlace, ..prepared });
        }
        // An empty new file shows as well whether one can be created, and its mode.
        let content = if ahead { &now[..] } else { &[] };
        let staged = match stage(&directory, step, old.as_ref(), content) {
            Ok(staged) => staged,
            // The directory is not writable, or the attributes cannot be copied.
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::INVAL)
                if old.is_some() && may_in_place =>
            {
                return Ok(Prepared { method: Method::InPlace, ..prepared });
            }
            Err(errno) => return Err(step.error("cannot be written", errno)),
        };
        let cannot = |errno| step.error("cannot be inspected", errno);
        let mode_after = mode(&rustix::fs::fstat(staged.file()).map_err(cannot)?);
        let method = Method::Rename(ahead.then_some(staged));
        Ok(Prepared { method, mode_after, ..prepared })
    }

    /// Prepares a step that waits for others: nothing of it can be written ahead.
    pub(super) fn later(step: &'a Step) -> Self {
        let (method, mode_after) = match &step.now {
            None => (Method::Delete, 0),
            Some(now) if now.is_link() => (Method::Link, SYMLINK_MODE),
            Some(_) => {
                (Method::Rename(None), step.mode.map_or(DEFAULT_MODE, |mode| mode.of(DEFAULT_MODE)))
            }
        };
        Prepared { step, method, mode_before: 0, mode_after, links: 1 }
    }

    /// Writes the new content of files that are not written yet, and syncs all.
    pub(super) fn write_and_sync(
        files: &mut [Self],
        directory: &mut LastDirectory,
    ) -> Result<(), FsError> {
        Prepared::write(files, directory)?;
        Prepared::sync(files)
    }

    /// Writes the new content of files that are not written yet.
    fn write(files: &mut [Self], directory: &mut LastDirectory) -> Result<(), FsError> {
        for Prepared { step, method, .. } in files.iter_mut() {
            if let Method::Rename(staged @ None) = method {
                let (directory, old) = (directory.get(step)?, step.open_old()?);
                let now = step.now.as_deref().unwrap_or_default();
                let written = stage(&directory, step, old.as_ref(), now);
                *staged = Some(written.map_err(|errno| step.error("cannot be written", errno))?);
            }
        }
        Ok(())
    }

    /// Syncs the new content of written files.
    pub(super) fn sync(files: &[Self]) -> Result<(), FsError> {
        let sync = |file: &Self| match &file.method {
            Method::Rename(Some(staged)) => {
                staged.sync().map_err(|errno| file.step.error("cannot be written", errno))
            }
            _ => Ok(()),
        };
        if files.len() <= MAX_SEQUENTIAL {
            files.iter().try_for_each(sync)
        } else {
            in_parallel(DISK_THREADS, files, sync)
        }
    }

    pub(super) fn place(&self) -> &ResolvedPath {
        &self.step.place
    }

    /// The result of the step.
    pub(super) fn result(&self) -> CommittedFile {
        let in_place = matches!(self.method, Method::InPlace);
        CommittedFile {
            hash: self.step.now.as_ref().map(Content::hash),
            hard_link_broken: self.links > 1 && !in_place && self.step.now.is_some(),
            in_place,
        }
    }

    /// The journal record of the step.
    pub(super) fn file_change(&self) -> FileChange {
        let before = self.step.was.as_ref().map(|was| Version::of(was, self.mode_before));
        let after = self.step.now.as_ref().map(|now| Version::of(now, self.mode_after));
        let mut change = FileChange::new(&self.step.place.location(), before, after);
        change.in_place = matches!(self.method, Method::InPlace);
        change
    }

    /// Puts the file in place, once it is written. Calls `done` as soon as the file has changed, since from
    /// then on it must be reverted on failure.
    pub(super) fn put_in_place(
        self,
        directory: &mut LastDirectory,
        done: impl FnOnce(),
    ) -> Result<(), FsError> {
        let Prepared { step, method, .. } = self;
        let (_, name) = step.split()?;
        let now = step.now.as_deref().unwrap_or_default();
        let cannot = |errno| step.error("cannot be moved into place", errno);
        // The file may have changed while the new content and the journal were synced.
        if let Some(was) = &step.was {
            step.require_unchanged(was)?;
        }
        match (method, &step.was) {
            (Method::Rename(None), _) => return Err(step.fail(FsErrorKind::Io, "was not written")),
            (Method::Delete, _) => {
                let directory = directory.get(step)?;
                rustix::fs::unlinkat(&directory, name, AtFlags::empty()).map_err(cannot)?;
                done();
            }
            (Method::Link, was) => {
                let directory = directory.get(step)?;
                let put = match was {
                    None => symlink::create(&directory, name, now),
                    Some(_) => symlink::replace(&directory, name, now),
                };
                put.map_err(|errno| match errno {
                    Errno::EXIST => step.fail(FsErrorKind::Stale, "was created meanwhile"),
                    errno => cannot(errno),
                })?;
                done();
            }
            (Method::InPlace, _) => {
                // Called first: the file changes with the first byte.
                done();
                in_place::write(step, now)?;
            }
            (Method::Rename(Some(staged)), None) => {
                staged.create(name).map_err(|errno| match errno {
                    Errno::EXIST => step.fail(FsErrorKind::Stale, "was created meanwhile"),
                    errno => cannot(errno),
                })?;
                done();
            }
            (Method::Rename(Some(staged)), Some(_)) => {
                let inode = rustix::fs::fstat(staged.file()).map_err(cannot)?.st_ino;
                let directory = staged.directory().clone();
                staged.replace(name).map_err(cannot)?;
                done();
                // Some file systems report success and do nothing.
                if open_beneath::stat(directory.as_fd(), name).map_err(cannot)?.st_ino != inode {
                    return Err(step.fail(
                        FsErrorKind::Io,
                        "was not replaced, although the file system reported success",
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Whether a file is a mount point, such as a single file that is bind-mounted into a container.
fn is_mount_point(file: BorrowedFd<'_>) -> bool {
    rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::empty())
        .is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Writes the new file, with the attributes of the old one.
fn stage(
    directory: &Arc<OwnedFd>,
    step: &Step,
    old: Option<&ReadFile>,
    now: &[u8],
) -> Result<Staged, Errno> {
    // A replacement of a private file must be private before it gets its mode, and so must a file with an
    // explicit mode. Other new files get the mode that the umask leaves.
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
