//! How much is kept of what somebody changes.

use std::fmt;

use rustix::io::Errno;

use super::entry::Spot;
use crate::content::Content;
use crate::error::FsError;

/// What a file is worth, to whoever may want it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureClass {
    /// It was made by somebody.
    Much,
    /// It was generated, as far as ignore files tell.
    Little,
    /// It keeps its own history, or is nobody's business.
    Nothing,
}

/// How much is kept of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureLimits {
    /// Of what is worth much.
    pub much: SizeLimits,
    /// Of what is worth little.
    pub little: SizeLimits,
}

/// How much is kept of files of one worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimits {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of all together.
    pub bytes: u64,
    /// How many files.
    pub files: u64,
}

impl Default for CaptureLimits {
    fn default() -> CaptureLimits {
        CaptureLimits {
            much: SizeLimits { file_bytes: 64 << 20, bytes: 256 << 20, files: 50_000 },
            little: SizeLimits { file_bytes: 4 << 20, bytes: 32 << 20, files: 2_000 },
        }
    }
}

/// Why something cannot be taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotKept {
    /// It has so many bytes, more than are kept of a file.
    TooLarge(u64),
    /// Enough of the others was kept.
    TooMuch,
    /// It is neither a file nor a symlink.
    NoFile,
    /// It cannot be read.
    Unreadable(Errno),
    /// There is no journal.
    NoJournal,
    /// The journal could not keep it.
    Failed(FsError),
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotKept::TooLarge(bytes) => {
                write!(f, "{bytes} bytes, more than is kept of such a file")
            }
            NotKept::TooMuch => f.write_str("more than is kept of one command"),
            NotKept::NoFile => f.write_str("neither a file nor a symlink"),
            NotKept::Unreadable(errno) => write!(f, "cannot be read ({errno})"),
            NotKept::NoJournal => f.write_str("there is no journal"),
            NotKept::Failed(error) => {
                write!(f, "{} {}", error.path().display(), error.detail())
            }
        }
    }
}

/// How much was kept already.
#[derive(Debug, Default)]
pub(super) struct Spent {
    much: (u64, u64),
    little: (u64, u64),
}

impl Spent {
    /// Reads a file, if there is room for it.
    pub(super) fn read(
        &mut self,
        measure: &CaptureLimits,
        spot: &Spot,
        worth: CaptureClass,
    ) -> Result<(Content, u32), NotKept> {
        let (share, (files, bytes)) = match worth {
            CaptureClass::Much => (measure.much, &mut self.much),
            CaptureClass::Little | CaptureClass::Nothing => (measure.little, &mut self.little),
        };
        let room = share.bytes.saturating_sub(*bytes);
        if *files >= share.files {
            return Err(NotKept::TooMuch);
        }
        let read = spot.read(share.file_bytes.min(room)).map_err(|lost| match lost {
            NotKept::TooLarge(size) if size <= share.file_bytes => NotKept::TooMuch,
            lost => lost,
        })?;
        *files += 1;
        *bytes += read.0.len() as u64;
        Ok(read)
    }
}
