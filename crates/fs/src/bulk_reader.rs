//! Reads many files beneath one root, as strictly as single files and faster.
//!
//! A search opens thousands of files. Each directory is opened by its path from the root's descriptor, each
//! file by its name from the directory's; no symlink is followed anywhere, so a listed file is the one that
//! is opened, or the open fails. No descriptor is kept, so that no tree is too wide for the process.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::{FsError, FsErrorKind};
use crate::file::is_virtual;
use crate::file_kind::FileKind;
use crate::listing::{Directory, EntryKind};
use crate::open_beneath;
use crate::resolved_path::ResolvedPath;
use crate::root::{Root, RootKind};

/// All files beneath a root.
#[derive(Debug, Clone)]
pub struct BulkReader {
    root: Arc<Root>,
}

/// The stat fingerprint of a file or directory. A different one means that it may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The device and inode.
    pub identity: (u64, u64),
    /// Its size in bytes.
    pub size: u64,
    /// The time of the last change of its content: seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
    /// The time of the last change of its content or metadata, which no program can set.
    pub changed: (i64, i64),
    /// Whether it has more than one hard link.
    pub is_shared: bool,
}

/// The status of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryStatus {
    /// Its kind.
    pub kind: EntryKind,
    /// Its stat fingerprint.
    pub stamp: Stamp,
    /// Its permission bits.
    pub mode: u32,
}

/// The result of reading a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WholeRead {
    /// All of it is in the buffer.
    Whole(Stamp),
    /// It is larger than allowed. The content of the buffer is meaningless.
    TooLarge(Stamp),
    /// It is not a regular file, or one of a virtual file system.
    NotRegular,
}

impl BulkReader {
    /// The tree of the root that a path is in.
    pub fn around(place: &ResolvedPath) -> BulkReader {
        BulkReader { root: place.root.clone() }
    }

    pub(crate) fn of(root: Arc<Root>) -> BulkReader {
        BulkReader { root }
    }

    /// The real path of the root.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Why tools may access it.
    pub fn kind(&self) -> RootKind {
        self.root.kind()
    }

    /// Whether the path of the root still leads to it.
    pub fn is_in_place(&self) -> bool {
        self.root.is_in_place()
    }

    /// Opens a directory by its real path from the root.
    pub fn directory(&self, relative: &Path) -> Result<Directory, FsError> {
        Directory::beneath(&self.root, relative)
    }

    /// Whether a path from the root may exist. True if that cannot be determined.
    pub fn may_have(&self, relative: &Path) -> bool {
        let found = open_beneath::stat(self.root.handle(), relative.as_os_str());
        !matches!(found, Err(Errno::NOENT | Errno::NOTDIR))
    }

    /// The stat fingerprint of a path from the root, in one system call. Only for detecting changes: a later
    /// open is still checked.
    pub fn stamp(&self, relative: &Path) -> Option<Stamp> {
        let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        Some(Stamp::of(&open_beneath::stat(self.root.handle(), relative.as_os_str()).ok()?))
    }
}

impl Directory {
    /// Its stat fingerprint.
    pub fn stamp(&self) -> Option<Stamp> {
        Some(Stamp::of(&rustix::fs::fstat(self.handle()).ok()?))
    }

    /// The stat fingerprint of an entry. A symlink is not followed.
    pub fn stamp_of(&self, name: &OsStr) -> Option<Stamp> {
        Some(Stamp::of(&open_beneath::stat(self.handle().as_fd(), name).ok()?))
    }

    /// The status of an entry. A symlink is not followed.
    pub fn status_of(&self, name: &OsStr) -> Option<EntryStatus> {
        let stat = open_beneath::stat(self.handle().as_fd(), name).ok()?;
        let kind = EntryKind::of(FileType::from_raw_mode(stat.st_mode));
        let mode = open_beneath::permissions(&stat).as_raw_mode();
        Some(EntryStatus { kind, stamp: Stamp::of(&stat), mode })
    }

    /// Reads a whole file into the buffer, replacing its content, if it has at most `max_bytes`. Never
    /// blocks. Fails for a symlink.
    pub fn take(
        &self,
        name: &OsStr,
        max_bytes: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<WholeRead, FsErrorKind> {
        buffer.clear();
        let handle = self.open_file(name)?;
        if !self.admits(&handle) {
            return Err(FsErrorKind::Forbidden);
        }
        let stat = rustix::fs::fstat(&handle).map_err(kind)?;
        let stamp = Stamp::of(&stat);
        if FileKind::of(&stat) != FileKind::File || (stamp.size == 0 && is_virtual(&handle)) {
            return Ok(WholeRead::NotRegular);
        }
        if stamp.size > max_bytes {
            return Ok(WholeRead::TooLarge(stamp));
        }
        if !read_whole(&handle, stamp.size, max_bytes, buffer).map_err(kind)? {
            return Ok(WholeRead::TooLarge(stamp));
        }
        Ok(WholeRead::Whole(stamp))
    }

    /// Calls `look` for parts of a file, each with its offset, until it returns false. Returns whether the
    /// file matched `expected` before and after; if not, the parts are meaningless.
    pub fn take_parts(
        &self,
        name: &OsStr,
        expected: &Stamp,
        parts: &[Range<u64>],
        buffer: &mut Vec<u8>,
        mut look: impl FnMut(u64, &[u8]) -> bool,
    ) -> Result<bool, FsErrorKind> {
        let handle = self.open_file(name)?;
        if !self.admits(&handle) {
            return Err(FsErrorKind::Forbidden);
        }
        let is_same = || rustix::fs::fstat(&handle).is_ok_and(|stat| Stamp::of(&stat) == *expected);
        if !is_same() {
            return Ok(false);
        }
        for part in parts {
            buffer.clear();
            buffer.resize(usize::try_from(part.end.saturating_sub(part.start)).unwrap_or(0), 0);
            let mut filled = 0;
            while filled < buffer.len() {
                let at = part.start + filled as u64;
                let read = || rustix::io::pread(&handle, &mut buffer[filled..], at);
                match rustix::io::retry_on_intr(read).map_err(kind)? {
                    0 => return Ok(false),
                    read => filled += read,
                }
            }
            if !look(part.start, buffer) {
                break;
            }
        }
        Ok(is_same())
    }

    /// Opens a regular file to read parts of it. Never blocks. Fails for a symlink.
    pub fn parts(&self, name: &OsStr) -> Result<FileParts, FsErrorKind> {
        let handle = self.open_file(name)?;
        let stat = rustix::fs::fstat(&handle).map_err(kind)?;
        match FileKind::of(&stat) {
            FileKind::File => Ok(FileParts { size: Stamp::of(&stat).size, handle }),
            _ => Err(FsErrorKind::NotRegular),
        }
    }

    /// Never blocks. Fails for a symlink.
    fn open_file(&self, name: &OsStr) -> Result<OwnedFd, FsErrorKind> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(self.handle(), name, flags, Mode::empty());
        rustix::io::retry_on_intr(open).map_err(kind)
    }
}

/// A file of which parts are read.
#[derive(Debug)]
pub struct FileParts {
    handle: OwnedFd,
    size: u64,
}

impl FileParts {
    /// Its size when it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads bytes at a position, as many as the kernel returns at once. Zero at the end.
    pub fn read_at(&self, position: u64, buffer: &mut [u8]) -> Result<usize, FsErrorKind> {
        let read = || rustix::io::pread(&self.handle, &mut *buffer, position);
        rustix::io::retry_on_intr(read).map_err(kind)
    }
}

impl Stamp {
    /// The stat fingerprint of the file that a path leads to, anywhere. Only for detecting changes.
    pub fn at(path: &Path) -> Option<Stamp> {
        Some(Stamp::of(&rustix::fs::stat(path).ok()?))
    }

    pub(crate) fn of(stat: &Stat) -> Stamp {
        Stamp {
            identity: (stat.st_dev, stat.st_ino),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
            is_shared: stat.st_nlink > 1,
        }
    }
}

/// Reads to the end. Returns false if there are more bytes than allowed.
pub(crate) fn read_whole(
    handle: &OwnedFd,
    size: u64,
    max_bytes: u64,
    buffer: &mut Vec<u8>,
) -> Result<bool, Errno> {
    // One byte more than the size, so that the end is found without another read.
    buffer.reserve(usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1));
    loop {
        let read = rustix::io::retry_on_intr(|| rustix::io::read(handle, spare_capacity(buffer)));
        let read = read?;
        if buffer.len() as u64 > max_bytes {
            return Ok(false);
        }
        // A regular file returns fewer bytes than requested only at its end. One that returned exactly its
        // size has not grown.
        if read == 0 || (buffer.len() as u64 == size && !buffer.spare_capacity_mut().is_empty()) {
            return Ok(true);
        }
        buffer.reserve(1);
    }
}

fn kind(errno: Errno) -> FsErrorKind {
    FsError::from_errno("", "", errno).kind()
}
