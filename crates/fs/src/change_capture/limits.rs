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
    /// The file has this many bytes, more than the limit per file.
    TooLarge(u64),
    /// The same, with the limit for ignored files.
    IgnoredTooLarge(u64),
    /// The limits of the command are reached.
    TooMuch,
    /// The limits of the command for ignored files are reached.
    IgnoredTooMuch,
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
            NotKept::TooLarge(bytes) => {
                write!(f, "{bytes} bytes, over the limit for one file")
            }
            NotKept::IgnoredTooLarge(bytes) => {
                write!(f, "{bytes} bytes, over the limit for one ignored or generated file")
            }
            NotKept::TooMuch => f.write_str("over the limit for one command"),
            NotKept::IgnoredTooMuch => {
                f.write_str("over the limit for ignored or generated files of one command")
            }
            NotKept::NoFile => f.write_str("neither a file nor a symlink"),
            NotKept::Unreadable(errno) => write!(f, "cannot be read ({errno})"),
            NotKept::NoJournal => f.write_str("there is no journal"),
            NotKept::Failed(error) => {
                write!(f, "{} {}", error.path().display(), error.detail())
            }
        }
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
        let (class_limits, (files, bytes), too_much) = match class {
            CaptureClass::Tracked => (limits.tracked, &mut self.tracked, NotKept::TooMuch),
            CaptureClass::Ignored | CaptureClass::Excluded => {
                (limits.ignored, &mut self.ignored, NotKept::IgnoredTooMuch)
            }
        };
        let is_tracked = class == CaptureClass::Tracked;
        let room = class_limits.bytes.saturating_sub(*bytes);
        if *files >= class_limits.files {
            return Err(too_much);
        }
        let read =
            target.read(class_limits.file_bytes.min(room)).map_err(|not_kept| match not_kept {
                NotKept::TooLarge(size) if size <= class_limits.file_bytes => too_much,
                NotKept::TooLarge(size) if !is_tracked => NotKept::IgnoredTooLarge(size),
                not_kept => not_kept,
            })?;
        *files += 1;
        *bytes += read.0.len() as u64;
        Ok(read)
    }
}
