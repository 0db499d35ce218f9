//! Writes a file in place, where a rename does not work. The journal has the previous content.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::step::Step;
use crate::error::{FsError, FsErrorKind};
use crate::file_kind::FileKind;
use crate::open_beneath;

/// Overwrites a file from the start, then truncates it. If this fails in the middle, the caller must restore
/// the previous content.
pub(super) fn write(step: &Step, content: &[u8]) -> Result<(), FsError> {
    let cannot = |errno| step.error("cannot be written in place", errno);
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file =
        open_beneath::open(step.place.root.handle(), &step.place.relative, flags, Mode::empty())
            .map_err(cannot)?;
    let stat = rustix::fs::fstat(&file).map_err(cannot)?;
    if FileKind::of(&stat) != FileKind::File {
        return Err(step.fail(FsErrorKind::Stale, "is no longer a regular file"));
    }
    overwrite(&file, content).map_err(cannot)
}

fn overwrite(file: &OwnedFd, content: &[u8]) -> Result<(), Errno> {
    let mut written = 0;
    while written < content.len() {
        let at = written as u64;
        written += rustix::io::retry_on_intr(|| rustix::io::pwrite(file, &content[written..], at))?;
    }
    rustix::io::retry_on_intr(|| rustix::fs::ftruncate(file, content.len() as u64))?;
    rustix::io::retry_on_intr(|| rustix::fs::fdatasync(file))
}
