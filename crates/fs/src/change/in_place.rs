//! Writing a file where it stands, where nothing else will do. What was there is in the journal.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::step::Step;
use crate::error::{FsError, FsErrorKind};
use crate::file::FileKind;
use crate::open_beneath;

/// Makes a file say this, front to back, then cuts what is left over. Should that fail in the middle, it
/// is for the caller to write back what was there.
pub(super) fn write(step: &Step, content: &[u8]) -> Result<(), FsError> {
    let cannot = |errno| step.error("cannot be written in place", errno);
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file =
        open_beneath::open(step.place.root.handle(), &step.place.relative, flags, Mode::empty())
            .map_err(cannot)?;
    let stat = rustix::fs::fstat(&file).map_err(cannot)?;
    if FileKind::of(&stat) != FileKind::File {
        return Err(step.fail(FsErrorKind::Stale, "is no regular file any more"));
    }
    write_over(&file, content).map_err(cannot)
}

fn write_over(file: &OwnedFd, content: &[u8]) -> Result<(), Errno> {
    let mut written = 0;
    while written < content.len() {
        let at = written as u64;
        written += rustix::io::retry_on_intr(|| rustix::io::pwrite(file, &content[written..], at))?;
    }
    rustix::io::retry_on_intr(|| rustix::fs::ftruncate(file, content.len() as u64))?;
    rustix::io::retry_on_intr(|| rustix::fs::fdatasync(file))
}
