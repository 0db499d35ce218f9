//! The lists of a segment, which are most of it: in memory, or in the file that it is kept in. The system has
//! those at hand that are asked for, and lets them go when something else needs the room.

use std::ops::Range;

use toolcrib_fs::ShelvedFile;

/// All lists, one after the other.
#[derive(Debug)]
pub(super) enum Lists {
    Held(Vec<u8>),
    /// From a byte of the file on to its end, so many.
    Kept(ShelvedFile, Range<u64>),
}

impl Lists {
    /// The lists at the end of a file, so many bytes.
    pub(super) fn at_end_of(file: ShelvedFile, file_bytes: usize, bytes: usize) -> Lists {
        Lists::Kept(file, (file_bytes - bytes) as u64..file_bytes as u64)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Lists::Held(bytes) => bytes.len(),
            Lists::Kept(_, range) => usize::try_from(range.end - range.start).unwrap_or(0),
        }
    }

    /// Some of the bytes; nothing, if they cannot be read.
    pub(super) fn with<T>(&self, range: Range<usize>, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        match self {
            Lists::Held(bytes) => bytes.get(range).map(look),
            Lists::Kept(file, all) => {
                let mut bytes = vec![0; range.len()];
                file.read_at(all.start + range.start as u64, &mut bytes).then(|| look(&bytes))
            }
        }
    }
}
