//! Reads the memory of a thread that makes a supervised call.

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

/// The longest path that the kernel accepts.
const MAX_PATH: usize = 4096;

/// A single read never spans two pages: the second may not be mapped.
const PAGE_SIZE: usize = 4096;

/// The memory of a waiting thread.
pub(crate) struct RemoteMemory {
    thread: i32,
}

impl RemoteMemory {
    pub(crate) fn of(thread: i32) -> RemoteMemory {
        RemoteMemory { thread }
    }

    /// Reads a path that ends with a zero byte.
    pub(crate) fn read_path(&self, at: u64) -> io::Result<PathBuf> {
        let mut bytes = self.read_up_to(at, MAX_PATH)?;
        let end = bytes.iter().position(|&byte| byte == 0).ok_or(io::ErrorKind::InvalidFilename)?;
        bytes.truncate(end);
        Ok(OsString::from_vec(bytes).into())
    }

    /// Reads `length` bytes. Fails with `EFAULT` if fewer can be read.
    pub(crate) fn read_exact(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // If `length` is zero, the address is not read: it may be null.
        while bytes.len() < length {
            let more =
                self.read_up_to(at.saturating_add(bytes.len() as u64), length - bytes.len())?;
            if more.is_empty() {
                return Err(io::Error::from_raw_os_error(nix::libc::EFAULT));
            }
            bytes.extend(more);
        }
        Ok(bytes)
    }

    /// Reads at most `most` bytes: as many as are mapped.
    pub(crate) fn read_up_to(&self, at: u64, most: usize) -> io::Result<Vec<u8>> {
        let at = usize::try_from(at).map_err(io::Error::other)?;
        let mut bytes = vec![0; most];
        let first = most.min(PAGE_SIZE - at % PAGE_SIZE);
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
