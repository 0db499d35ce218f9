//! Writing a file where it stands, where nothing else will do. What was there is in the journal.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::step::Step;
use crate::beneath;
use crate::error::{FsError, FsErrorKind};
use crate::file::FileKind;

/// Writes the new content over the old one, front to back, then cuts what is left over.
pub(super) fn write(step: &Step) -> Result<(), FsError> {
    let now = step.now.as_deref().unwrap_or_default();
    let cannot = |errno| step.error("cannot be written in place", errno);
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = beneath::open(step.place.root.handle(), &step.place.relative, flags, Mode::empty())
        .map_err(cannot)?;
    let stat = rustix::fs::fstat(&file).map_err(cannot)?;
    if FileKind::of(&stat) != FileKind::File {
        return Err(step.fail(FsErrorKind::Stale, "is no regular file any more"));
    }
    let write = || -> Result<(), Errno> {
        let mut written = 0;
        while written < now.len() {
            let at = written as u64;
            written +=
                rustix::io::retry_on_intr(|| rustix::io::pwrite(&file, &now[written..], at))?;
        }
        rustix::fs::ftruncate(&file, now.len() as u64)?;
        rustix::io::retry_on_intr(|| rustix::fs::fdatasync(&file))
    };
    write().map_err(|errno| {
        // Half of it may be there: put back what was.
        let was = step.was.as_deref().unwrap_or_default();
        let _ = rustix::io::pwrite(&file, was, 0)
            .and_then(|_| rustix::fs::ftruncate(&file, was.len() as u64));
        cannot(errno)
    })
}
