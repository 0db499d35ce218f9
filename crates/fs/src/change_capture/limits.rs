//! Limits on how much of a command's changes is stored.

use std::fmt;

use rustix::io::Errno;

use super::path_state::WritablePath;
use crate::content::Content;
use crate::error::FsError;

/// How much of a file's history is worth storing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureClass {
    /// Written by a person or a tool.
    Tracked,
    /// Generated, according to ignore files.
    Ignored,
    /// Has its own history, or is internal.
    Excluded,
}

/// The limits of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureLimits {
    /// For files of [`CaptureClass::Tracked`].
    pub tracked: SizeLimits,
    /// For files of [`CaptureClass::Ignored`].
    pub ignored: SizeLimits,
}

/// The limits of one capture class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimits {
    /// Bytes per file.
    pub file_bytes: u64,
    /// Bytes of all files together.
    pub bytes: u64,
    /// The number of files.
    pub files: u64,
}

impl Default for CaptureLimits {
    fn default() -> CaptureLimits {
        CaptureLimits {
            tracked: SizeLimits { file_bytes: 64 << 20, bytes: 256 << 20, files: 50_000 },
            ignored: SizeLimits { file_bytes: 4 << 20, bytes: 32 << 20, files: 2_000 },
        }
    }
}

/// Why a change cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotKept {
    /// The file has more bytes than the limit per file.
    TooLarge {
        /// Bytes of the file.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The same, with the limit for ignored files.
    IgnoredTooLarge {
        /// Bytes of the file.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The limits of the command are reached.
    TooMuch(SizeLimits),
    /// The limits of the command for ignored files are reached.
    IgnoredTooMuch(SizeLimits),
    /// Another program wrote it at the same time.
    Contested,
    /// It is neither a file nor a symlink.
    NoFile,
    /// It cannot be read.
    Unreadable(Errno),
    /// There is no journal.
    NoJournal,
    /// The journal failed to store it.
    Failed(FsError),
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotKept::TooLarge { bytes, limit } => {
                write!(f, "{bytes} bytes, over the limit of {} for one file", size(*limit))
            }
            NotKept::IgnoredTooLarge { bytes, limit } => {
                let limit = size(*limit);
                write!(
                    f,
                    "{bytes} bytes, over the limit of {limit} for one ignored or generated file"
                )
            }
            NotKept::TooMuch(limits) => {
                write!(f, "over the limit of {limits} for one command")
            }
            NotKept::IgnoredTooMuch(limits) => {
                write!(
                    f,
                    "over the limit of {limits} for ignored or generated files of one command"
                )
            }
            NotKept::Contested => f.write_str("another tool or command wrote it at the same time"),
            NotKept::NoFile => f.write_str("neither a file nor a symlink"),
            NotKept::Unreadable(errno) => write!(f, "cannot be read ({errno})"),
            NotKept::NoJournal => f.write_str("there is no journal"),
            NotKept::Failed(error) => {
                write!(f, "{} {}", error.path().display(), error.detail())
            }
        }
    }
}

impl fmt::Display for SizeLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} or {} files", size(self.bytes), self.files)
    }
}

/// `64 MiB`, or `10 bytes`.
fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    if bytes >= MIB && bytes.is_multiple_of(MIB) {
        format!("{} MiB", bytes / MIB)
    } else {
        format!("{bytes} bytes")
    }
}

/// The files and bytes that were stored so far.
#[derive(Debug, Default)]
pub(super) struct Usage {
    tracked: (u64, u64),
    ignored: (u64, u64),
}

impl Usage {
    /// Reads a file if it is within the limits.
    pub(super) fn read(
        &mut self,
        limits: &CaptureLimits,
        target: &WritablePath,
        class: CaptureClass,
    ) -> Result<(Content, u32), NotKept> {
        let is_tracked = class == CaptureClass::Tracked;
        let (class_limits, (files, stored)) = match class {
            CaptureClass::Tracked => (limits.tracked, &mut self.tracked),
            CaptureClass::Ignored | CaptureClass::Excluded => (limits.ignored, &mut self.ignored),
        };
        let too_much = || {
            let not_kept = if is_tracked { NotKept::TooMuch } else { NotKept::IgnoredTooMuch };
            not_kept(class_limits)
        };
        if *files >= class_limits.files {
            return Err(too_much());
        }
        let limit = class_limits.file_bytes;
        let room = class_limits.bytes.saturating_sub(*stored);
        let read = target.read(limit.min(room)).map_err(|not_kept| match not_kept {
            NotKept::TooLarge { bytes, .. } if bytes <= limit => too_much(),
            NotKept::TooLarge { bytes, .. } if is_tracked => NotKept::TooLarge { bytes, limit },
            NotKept::TooLarge { bytes, .. } => NotKept::IgnoredTooLarge { bytes, limit },
            not_kept => not_kept,
        })?;
        *files += 1;
        *stored += read.0.len() as u64;
        Ok(read)
    }
}
