//! The swaps: two things that take turns at one name.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use rustix::io::Errno;

use crate::error::Result;
use crate::sandbox::remove_directory;

/// What takes turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Swap {
    /// A directory, and a link to one outside.
    DirectoryAndLink,
    /// A file, and a link to one outside.
    FileAndLink,
    /// A file, and a FIFO that nobody writes to.
    FileAndFifo,
    /// A directory, which is moved outside and back.
    MovedOut,
    /// The root, and a link to a directory outside.
    Root,
}

impl Swap {
    pub(super) const ALL: [Swap; 5] =
        [Swap::DirectoryAndLink, Swap::FileAndLink, Swap::FileAndFifo, Swap::MovedOut, Swap::Root];

    pub(super) fn name(self) -> &'static str {
        match self {
            Swap::DirectoryAndLink => "directory ⇄ link outside",
            Swap::FileAndLink => "file ⇄ link outside",
            Swap::FileAndFifo => "file ⇄ FIFO",
            Swap::MovedOut => "directory moved out and back",
            Swap::Root => "root ⇄ link outside",
        }
    }
}

/// Makes one swap again and again.
pub(super) struct Swapper {
    swap: Swap,
    /// The name that calls use.
    live: PathBuf,
    /// Where the other of the two waits.
    parked: PathBuf,
    /// What the link points to.
    outside: PathBuf,
    swaps: u64,
}

/// A call may put a file where the link or FIFO just was, which is no harm, but ends the race. So often
/// it is looked after.
const MEND_EVERY: u64 = 16;
/// More often than calls run at a time.
const REMOVE_TRIES: usize = 1_000;

impl Swapper {
    /// For a sandbox's directory, with the workspace `ws` and the directory `outside` in it.
    pub(super) fn new(swap: Swap, top: &Path) -> Swapper {
        let (live, parked) = match swap {
            Swap::DirectoryAndLink => ("ws/d", "ws/d.parked"),
            Swap::FileAndLink | Swap::FileAndFifo => ("ws/f.txt", "ws/f.parked"),
            Swap::MovedOut => ("ws/d", "outside/d"),
            Swap::Root => ("ws", "ws.parked"),
        };
        let outside = match swap {
            Swap::FileAndLink => top.join("outside/f.txt"),
            _ => top.join("outside"),
        };
        Swapper { swap, live: top.join(live), parked: top.join(parked), outside, swaps: 0 }
    }

    /// Puts the other one where it waits; the one that rests is there already.
    pub(super) fn park(&self) -> Result<()> {
        match self.swap {
            Swap::MovedOut => {}
            Swap::FileAndFifo => {
                mknodat(CWD, &self.parked, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
            }
            _ => symlink(&self.outside, &self.parked)?,
        }
        Ok(())
    }

    /// Once.
    pub(super) fn swap(&mut self) -> Result<()> {
        self.swaps += 1;
        if self.swap == Swap::MovedOut {
            return self.move_over();
        }
        if self.swaps.is_multiple_of(MEND_EVERY) {
            self.mend()?;
        }
        Ok(renameat_with(CWD, &self.live, CWD, &self.parked, RenameFlags::EXCHANGE)?)
    }

    /// Everything back where it was in the beginning.
    pub(super) fn rest(&mut self) -> Result<()> {
        if self.swap == Swap::MovedOut {
            return if self.parked.exists() { self.move_over() } else { Ok(()) };
        }
        if is_special(&self.live)? {
            renameat_with(CWD, &self.live, CWD, &self.parked, RenameFlags::EXCHANGE)?;
        }
        Ok(())
    }

    fn move_over(&self) -> Result<()> {
        if !self.parked.exists() {
            return Ok(fs::rename(&self.live, &self.parked)?);
        }
        // A call may have made a directory of the same name meanwhile; and may take it away again.
        for flags in [RenameFlags::NOREPLACE, RenameFlags::EXCHANGE].into_iter().cycle() {
            match renameat_with(CWD, &self.parked, CWD, &self.live, flags) {
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOENT) => {}
                Ok(()) if flags == RenameFlags::EXCHANGE => {
                    return remove_while_in_use(&self.parked);
                }
                moved => return Ok(moved?),
            }
        }
        Ok(())
    }

    fn mend(&self) -> Result<()> {
        let is_file = matches!(self.swap, Swap::FileAndLink | Swap::FileAndFifo);
        if is_file && !is_special(&self.live)? && !is_special(&self.parked)? {
            fs::remove_file(&self.parked)?;
            self.park()?;
        }
        Ok(())
    }
}

/// The call that made the directory may still be putting files into it.
fn remove_while_in_use(path: &Path) -> Result<()> {
    let mut tries = 0;
    loop {
        tries += 1;
        match remove_directory(path) {
            Err(_) if tries < REMOVE_TRIES => {}
            removed => return removed,
        }
    }
}

/// A link or a FIFO.
fn is_special(path: &Path) -> Result<bool> {
    let kind = fs::symlink_metadata(path)?.file_type();
    Ok(kind.is_symlink() || kind.is_fifo())
}
