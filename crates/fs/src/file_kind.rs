//! The kind of a file.

use rustix::fs::{FileType, Stat};

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

    pub(crate) fn description(self) -> &'static str {
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
