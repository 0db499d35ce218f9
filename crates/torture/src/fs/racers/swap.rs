//! The swaps: two files or directories that alternate at one path.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use rustix::io::Errno;
use toolcrib_devtools::error::Result;
use toolcrib_devtools::scratch::remove_directory;

/// The alternating pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Swap {
    /// A directory, and a symlink to one outside.
    DirectoryAndLink,
    /// A file, and a symlink to one outside.
    FileAndLink,
    /// A file, and a FIFO without a writer.
    FileAndFifo,
    /// A directory that is moved outside and back.
    MovedOut,
    /// The root, and a symlink to a directory outside.
    Root,
}

impl Swap {
    pub(super) const ALL: [Swap; 5] =
        [Swap::DirectoryAndLink, Swap::FileAndLink, Swap::FileAndFifo, Swap::MovedOut, Swap::Root];

    pub(super) fn name(self) -> &'static str {
        match self {
            Swap::DirectoryAndLink => "directory ⇄ symlink outside",
            Swap::FileAndLink => "file ⇄ symlink outside",
            Swap::FileAndFifo => "file ⇄ FIFO",
            Swap::MovedOut => "directory moved out and back",
            Swap::Root => "root ⇄ symlink outside",
        }
    }
}

/// Repeats one swap.
pub(super) struct Swapper {
    swap: Swap,
    /// The path that calls use.
    live: PathBuf,
    /// The path of the other one of the pair.
    parked: PathBuf,
    /// The target of the symlink.
    outside: PathBuf,
    swaps: u64,
}

/// A call may replace the symlink or FIFO by a file, which is harmless but ends the race. This many swaps pass between
/// checks for it.
const REPAIR_INTERVAL: u64 = 16;
/// More than the number of concurrent calls.
const REMOVE_TRIES: usize = 1_000;

impl Swapper {
    /// Creates a swapper for the directory of a sandbox, which contains the workspace `ws` and the directory `outside`.
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

    /// Creates the other one of the pair.
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

    /// Swaps once.
    pub(super) fn swap(&mut self) -> Result<()> {
        self.swaps += 1;
        if self.swap == Swap::MovedOut {
            return self.move_over();
        }
        if self.swaps.is_multiple_of(REPAIR_INTERVAL) {
            self.repair()?;
        }
        Ok(renameat_with(CWD, &self.live, CWD, &self.parked, RenameFlags::EXCHANGE)?)
    }

    /// Restores the initial state.
    pub(super) fn restore(&mut self) -> Result<()> {
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
        // A call may have created a directory with the same name, and may remove it again.
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

    fn repair(&self) -> Result<()> {
        let is_file = matches!(self.swap, Swap::FileAndLink | Swap::FileAndFifo);
        if is_file && !is_special(&self.live)? && !is_special(&self.parked)? {
            fs::remove_file(&self.parked)?;
            self.park()?;
        }
        Ok(())
    }
}

/// Removes a directory into which a call may still be writing files.
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

/// Whether a path is a symlink or a FIFO.
fn is_special(path: &Path) -> Result<bool> {
    let kind = fs::symlink_metadata(path)?.file_type();
    Ok(kind.is_symlink() || kind.is_fifo())
}
