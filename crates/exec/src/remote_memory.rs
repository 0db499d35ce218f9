//! What the arguments of a call point to, in the memory of whoever makes it.

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

/// No path that the system takes is longer.
const PATH: usize = 4096;

/// What is read in one piece never spans two pages, of which the second may not be there.
const PAGE: usize = 4096;

/// The memory of a thread that waits.
pub(crate) struct Memory {
    thread: i32,
}

impl Memory {
    pub(crate) fn of(thread: i32) -> Memory {
        Memory { thread }
    }

    /// A path as it stands there.
    pub(crate) fn path(&self, at: u64) -> io::Result<PathBuf> {
        let mut bytes = self.bytes(at, PATH)?;
        let end = bytes.iter().position(|&byte| byte == 0).ok_or(io::ErrorKind::InvalidFilename)?;
        bytes.truncate(end);
        Ok(OsString::from_vec(bytes).into())
    }

    /// Just so many bytes.
    pub(crate) fn whole(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // No bytes are read from no address.
        while bytes.len() < length {
            let more = self.bytes(at.saturating_add(bytes.len() as u64), length - bytes.len())?;
            if more.is_empty() {
                return Err(io::Error::from_raw_os_error(nix::libc::EFAULT));
            }
            bytes.extend(more);
        }
        Ok(bytes)
    }

    /// At most so many bytes: as many as are there.
    pub(crate) fn bytes(&self, at: u64, most: usize) -> io::Result<Vec<u8>> {
        let at = usize::try_from(at).map_err(io::Error::other)?;
        let mut bytes = vec![0; most];
        let first = most.min(PAGE - at % PAGE);
        let pieces = [
            RemoteIoVec { base: at, len: first },
            RemoteIoVec { base: at.saturating_add(first), len: most - first },
        ];
        let mut room = [IoSliceMut::new(&mut bytes)];
        let read = process_vm_readv(Pid::from_raw(self.thread), &mut room, &pieces)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}
