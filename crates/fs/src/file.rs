//! Reads regular files, with limits.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::content::Content;
use crate::error::{FsError, FsErrorKind};
use crate::open_beneath;
use crate::resolved_path::ResolvedPath;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symlink. Only a path that was resolved without following it has this kind.
    Symlink,
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
    /// A kind that the system has no name for.
    Unknown,
}

impl FileKind {
    pub(crate) fn of(stat: &Stat) -> FileKind {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => FileKind::Symlink,
            FileType::Fifo => FileKind::Fifo,
            FileType::Socket => FileKind::Socket,
            FileType::BlockDevice | FileType::CharacterDevice => FileKind::Device,
            _ => FileKind::Unknown,
        }
    }

    fn description(self) -> &'static str {
        match self {
            FileKind::File => "a file",
            FileKind::Directory => "a directory",
            FileKind::Symlink => "a symlink",
            FileKind::Fifo => "a FIFO",
            FileKind::Socket => "a socket",
            FileKind::Device => "a device",
            FileKind::Unknown => "neither a file nor a directory",
        }
    }
}

/// A regular file open for reading.
#[derive(Debug)]
pub struct ReadFile {
    handle: OwnedFd,
    path: PathBuf,
    pub(crate) stat: Stat,
}

/// The largest buffer that is allocated at once, whatever size a file claims.
const MAX_ALLOCATION: usize = 256 << 20;

/// Bytes per read in a comparison.
const COMPARE_CHUNK_BYTES: usize = 256 << 10;

impl ReadFile {
    /// Opens a file. Never blocks: other kinds of files are refused before and after opening, in case the
    /// file was swapped in between. Fails if it is not a regular file.
    pub fn open(place: &ResolvedPath) -> Result<ReadFile, FsError> {
        require_file(place, place.kind())?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let handle = place.root.open_beneath(&place.relative, flags, "cannot be opened")?;
        let stat = rustix::fs::fstat(&handle)
            .map_err(|errno| FsError::from_errno(place.path(), "cannot be looked at", errno))?;
        require_file(place, Some(FileKind::of(&stat)))?;
        // Files of `/proc` and `/sys` have no size, and reading one may have side effects.
        if stat.st_size == 0 && is_virtual(&handle) {
            let detail = "is made up by the kernel, not a regular file";
            return Err(FsError::new(FsErrorKind::NotRegular, place.path(), detail));
        }
        Ok(ReadFile { handle, path: place.path(), stat })
    }

    /// Its size in bytes when it was opened.
    pub fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    /// The number of hard links.
    pub fn links(&self) -> u64 {
        // Its width differs between architectures.
        self.stat.st_nlink as _
    }

    /// Reads at an offset. Returns fewer bytes than the buffer holds only at the end of the file.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, FsError> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            let read = rustix::io::retry_on_intr(|| {
                rustix::io::pread(&self.handle, &mut buffer[filled..], at)
            });
            match read.map_err(|errno| self.unreadable(errno))? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }

    /// Reads the whole file. Fails if it has more than `max_bytes`.
    pub fn read_all(&self, max_bytes: u64) -> Result<Vec<u8>, FsError> {
        let too_large = || {
            let detail = format!("has {} bytes, more than the {max_bytes} allowed", self.size());
            Err(FsError::new(FsErrorKind::TooLarge, &self.path, detail))
        };
        if self.size() > max_bytes {
            return too_large();
        }
        let size = usize::try_from(self.size()).unwrap_or(usize::MAX);
        // One byte more than the size, so that the end is found without another read.
        let mut bytes = Vec::with_capacity(size.saturating_add(1).min(MAX_ALLOCATION));
        loop {
            bytes.reserve(1);
            let read = rustix::io::retry_on_intr(|| {
                let at = bytes.len() as u64;
                rustix::io::pread(&self.handle, spare_capacity(&mut bytes), at)
            });
            let read = read.map_err(|errno| self.unreadable(errno))?;
            if bytes.len() as u64 > max_bytes {
                return too_large();
            }
            if read == 0 {
                return Ok(bytes);
            }
        }
    }

    /// Whether the content equals `expected`.
    pub(crate) fn has_content(&self, expected: &[u8]) -> Result<bool, FsError> {
        if self.size() != expected.len() as u64 {
            return Ok(false);
        }
        let mut chunk = vec![0; COMPARE_CHUNK_BYTES.min(expected.len() + 1)];
        let mut at = 0;
        loop {
            let read = self.read_at(&mut chunk, at as u64)?;
            if expected.get(at..at + read) != Some(&chunk[..read]) {
                return Ok(false);
            }
            at += read;
            if read < chunk.len() {
                return Ok(at == expected.len());
            }
        }
    }

    fn unreadable(&self, errno: Errno) -> FsError {
        FsError::from_errno(&self.path, "cannot be read", errno)
    }

    pub(crate) fn into_handle(self) -> OwnedFd {
        self.handle
    }

    pub(crate) fn handle(&self) -> std::os::fd::BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Reads the file or symlink at a path of [`crate::Workspace::entry`]. `None` if it does not exist.
pub fn read_entry(place: &ResolvedPath, max_bytes: u64) -> Result<Option<Content>, FsError> {
    match place.kind() {
        None => Ok(None),
        Some(FileKind::Symlink) => {
            let target = open_beneath::link_target(place.root.handle(), &place.relative);
            target.map(|target| Some(Content::link(target))).map_err(|errno| {
                FsError::from_errno(place.path(), "is a symlink that cannot be read", errno)
            })
        }
        Some(_) => ReadFile::open(place)?.read_all(max_bytes).map(|bytes| Some(bytes.into())),
    }
}

/// Whether a file is on `proc` or `sysfs`.
pub(crate) fn is_virtual(handle: &OwnedFd) -> bool {
    const PROC: u64 = 0x9fa0;
    const SYSFS: u64 = 0x6265_6572;
    rustix::fs::fstatfs(handle).is_ok_and(|stat| matches!(stat.f_type as u64, PROC | SYSFS))
}

/// Fails if the kind is not a regular file.
pub(crate) fn require_file(place: &ResolvedPath, kind: Option<FileKind>) -> Result<(), FsError> {
    let refuse = |error, detail: &str| Err(FsError::new(error, place.path(), detail));
    match kind {
        Some(FileKind::File) => Ok(()),
        None => refuse(FsErrorKind::NotFound, "does not exist"),
        Some(FileKind::Directory) => refuse(FsErrorKind::IsDirectory, "is a directory"),
        Some(kind) => {
            let detail = format!("is {}, not a regular file", kind.description());
            refuse(FsErrorKind::NotRegular, &detail)
        }
    }
}
