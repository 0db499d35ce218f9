//! Operations that read files and directories.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolcrib_fs::{EntryKind, FileKind};
use toolcrib_policy::Access;

use super::operation::Operation;
use crate::cx::{Cx, OpenFile};
use crate::error::Error;
use crate::reply::Reply;

/// The largest number of bytes of [`Backend::read`](super::Backend::read).
pub const MAX_READ_BYTES: usize = 16 << 20;

/// The largest number of entries of [`Backend::list`](super::Backend::list).
const MAX_ENTRIES: usize = 100_000;

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBytes {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The size of the whole file.
    pub size: u64,
}

/// The kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symlink.
    Symlink,
    /// A FIFO, socket or device.
    Other,
}

impl PathKind {
    /// Its name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            PathKind::File => "file",
            PathKind::Directory => "directory",
            PathKind::Symlink => "symlink",
            PathKind::Other => "other",
        }
    }
}

/// The properties of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    /// Its kind.
    pub kind: PathKind,
    /// Its size in bytes.
    pub size: u64,
    /// Its permission bits.
    pub mode: u32,
    /// Its modification time, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// The target of a symlink.
    pub target: Option<PathBuf>,
}

/// The entries of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The entries, sorted by name. Hidden ones are left out.
    pub entries: Vec<ListedEntry>,
    /// Whether there are more entries.
    pub is_truncated: bool,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedEntry {
    /// Its name.
    pub name: OsString,
    /// Its kind.
    pub kind: PathKind,
    /// Its size in bytes.
    pub size: u64,
    /// Its permission bits, or those of a symlink itself.
    pub mode: u32,
    /// Its modification time, in nanoseconds since 1970.
    pub modified_ns: i64,
}

/// A file open for reading. It stays the same file if another one replaces it.
#[derive(Debug)]
pub struct FileReader(OpenFile);

impl FileReader {
    /// Its size in bytes when it was opened.
    pub fn size(&self) -> u64 {
        self.0.size()
    }

    /// Reads at most [`MAX_READ_BYTES`]; fewer than `limit` only at the end of the file.
    ///
    /// # Errors
    ///
    /// Fails if the operating system reports an error.
    pub fn read(&self, offset: u64, limit: usize) -> Result<Vec<u8>, Error> {
        self.0.part(offset, limit.min(MAX_READ_BYTES))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) path: PathBuf,
}

impl Operation for Open {
    const TOOL: &'static str = "Read";
    type Output = FileReader;

    fn arguments(&self) -> Value {
        json!({"file_path": self.path.to_string_lossy(), "raw": "open"})
    }

    fn access(&self) -> Vec<Access> {
        vec![Access::Read(self.path.clone())]
    }

    fn run(self, cx: &Cx<'_>) -> Result<(FileReader, Reply), Error> {
        Ok((FileReader(cx.open(&self.path)?), Reply::new("")))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Read {
    pub(super) path: PathBuf,
    pub(super) offset: u64,
    pub(super) limit: usize,
}

impl Operation for Read {
    const TOOL: &'static str = "Read";
    type Output = ReadBytes;

    fn arguments(&self) -> Value {
        json!({"file_path": self.path.to_string_lossy(), "raw": "read"})
    }

    fn access(&self) -> Vec<Access> {
        vec![Access::Read(self.path.clone())]
    }

    fn run(self, cx: &Cx<'_>) -> Result<(ReadBytes, Reply), Error> {
        let file = cx.open(&self.path)?;
        let bytes = file.part(self.offset, self.limit)?;
        let end = self.offset.saturating_add(bytes.len() as u64);
        Ok((ReadBytes { bytes, size: file.size().max(end) }, Reply::new("")))
    }
}

#[derive(Debug, Clone)]
pub(super) struct StatFile {
    pub(super) path: PathBuf,
    pub(super) follow: bool,
}

impl Operation for StatFile {
    const TOOL: &'static str = "Read";
    type Output = FileStat;

    fn arguments(&self) -> Value {
        json!({"file_path": self.path.to_string_lossy(), "raw": "stat"})
    }

    fn access(&self) -> Vec<Access> {
        vec![Access::Read(self.path.clone())]
    }

    fn run(self, cx: &Cx<'_>) -> Result<(FileStat, Reply), Error> {
        let (metadata, target) = cx.metadata(&self.path, self.follow)?;
        let kind = match metadata.kind {
            FileKind::File => PathKind::File,
            FileKind::Directory => PathKind::Directory,
            FileKind::Symlink => PathKind::Symlink,
            _ => PathKind::Other,
        };
        let stat = FileStat {
            kind,
            size: metadata.size,
            mode: metadata.mode,
            modified_ns: metadata.modified_ns,
            target,
        };
        Ok((stat, Reply::new("")))
    }
}

#[derive(Debug, Clone)]
pub(super) struct List {
    pub(super) path: PathBuf,
}

impl Operation for List {
    const TOOL: &'static str = "LS";
    type Output = Listing;

    fn arguments(&self) -> Value {
        json!({"path": self.path.to_string_lossy(), "raw": "list"})
    }

    fn access(&self) -> Vec<Access> {
        vec![Access::Read(self.path.clone())]
    }

    fn run(self, cx: &Cx<'_>) -> Result<(Listing, Reply), Error> {
        let directory = cx.list(&self.path)?;
        let (mut entries, mut is_truncated) = (Vec::new(), false);
        let listed = directory.each(|name, kind| {
            if cx.hidden_reason(&directory.path().join(name)).is_some() {
                return true;
            }
            is_truncated = entries.len() == MAX_ENTRIES;
            if !is_truncated {
                entries.push((name.to_owned(), kind));
            }
            !is_truncated
        });
        listed.map_err(|error| cx.listing_error(&self.path, &error))?;
        entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let entry = |(name, kind): (OsString, EntryKind)| {
            let kind = match kind {
                EntryKind::File => PathKind::File,
                EntryKind::Directory => PathKind::Directory,
                EntryKind::Link => PathKind::Symlink,
                EntryKind::Special => PathKind::Other,
            };
            let found = directory.metadata(&name);
            let (size, mode, modified_ns) =
                found.map_or((0, 0, 0), |found| (found.size, found.mode, found.modified_ns));
            ListedEntry { name, kind, size, mode, modified_ns }
        };
        let entries = entries.into_iter().map(entry).collect();
        Ok((Listing { entries, is_truncated }, Reply::new("")))
    }
}

#[derive(Debug, Clone)]
pub(super) struct RealPath {
    pub(super) path: PathBuf,
}

impl Operation for RealPath {
    const TOOL: &'static str = "Read";
    type Output = PathBuf;

    fn arguments(&self) -> Value {
        json!({"file_path": self.path.to_string_lossy(), "raw": "realpath"})
    }

    fn access(&self) -> Vec<Access> {
        vec![Access::Read(self.path.clone())]
    }

    fn run(self, cx: &Cx<'_>) -> Result<(PathBuf, Reply), Error> {
        cx.metadata(&self.path, true)?;
        Ok((cx.real_path(&self.path)?, Reply::new("")))
    }
}
