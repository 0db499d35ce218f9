//! The index at one moment. A search uses one snapshot from beginning to end.

use std::collections::HashMap;
use std::sync::Arc;

use toolcrib_fs::Stamp;

use super::segment::{File, Segment};

/// Segments, and the position of each file. Files are identified by their stat fingerprint, not by their
/// names: a file with an indexed fingerprint has the indexed content.
#[derive(Debug, Default, Clone)]
pub(crate) struct View {
    /// In ascending order of serials.
    pub(super) segments: Vec<Arc<Segment>>,
    places: HashMap<(u64, u64), IndexPosition>,
}

/// The position of a file in an index. It stays valid as long as its segment exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexPosition {
    pub(super) serial: u32,
    pub(super) file: u32,
}

impl IndexPosition {
    /// Number of bits of a packed position.
    pub(crate) const BITS: u32 = 36;
    const FILE_BITS: u32 = 14;

    /// As a number above 0. `None` if it does not fit.
    pub(crate) fn packed(self) -> Option<u64> {
        let packed = u64::from(self.serial) << IndexPosition::FILE_BITS | u64::from(self.file);
        (self.serial > 0
            && self.file >> IndexPosition::FILE_BITS == 0
            && packed >> IndexPosition::BITS == 0)
            .then_some(packed)
    }

    pub(crate) fn unpacked(packed: u64) -> Option<IndexPosition> {
        let serial =
            u32::try_from(packed >> IndexPosition::FILE_BITS).ok().filter(|serial| *serial > 0)?;
        let file = u32::try_from(packed & ((1 << IndexPosition::FILE_BITS) - 1)).ok()?;
        Some(IndexPosition { serial, file })
    }
}

impl View {
    /// The position of the file with this stat fingerprint, and so with the same content.
    pub(crate) fn find(&self, stamp: &Stamp) -> Option<IndexPosition> {
        let place = *self.places.get(&stamp.identity)?;
        (self.file(place)?.stamp == *stamp).then_some(place)
    }

    /// The stat fingerprint of a file when it was read. `None` if its segment no longer exists.
    pub(crate) fn stamp(&self, place: IndexPosition) -> Option<Stamp> {
        Some(self.file(place)?.stamp)
    }

    pub(super) fn file(&self, place: IndexPosition) -> Option<&File> {
        let at = self.position(place.serial)?;
        self.segments[at].files.get(place.file as usize)
    }

    /// The position of the segment with this serial.
    pub(super) fn position(&self, serial: u32) -> Option<usize> {
        self.segments.binary_search_by_key(&serial, |segment| segment.serial).ok()
    }

    /// The number of files.
    pub(super) fn file_count(&self) -> usize {
        self.places.len()
    }

    pub(super) fn bytes(&self) -> usize {
        let segments: usize = self.segments.iter().map(|segment| segment.bytes()).sum();
        segments + self.places.capacity() * size_of::<((u64, u64), IndexPosition)>()
    }

    /// Adds segments. For a file that is in several segments, the last one wins.
    pub(super) fn with(&self, segments: impl IntoIterator<Item = Segment>) -> View {
        let mut view = self.clone();
        for segment in segments {
            for (at, file) in segment.files.iter().enumerate() {
                let file_at = u32::try_from(at).unwrap_or(u32::MAX);
                let place = IndexPosition { serial: segment.serial, file: file_at };
                view.places.insert(file.stamp.identity, place);
            }
            view.segments.push(Arc::new(segment));
        }
        view.segments.sort_unstable_by_key(|segment| segment.serial);
        view
    }

    /// Removes segments and their files.
    pub(super) fn without(&self, serials: &[u32]) -> View {
        let mut view = self.clone();
        view.segments.retain(|segment| !serials.contains(&segment.serial));
        view.places.retain(|_, place| !serials.contains(&place.serial));
        view
    }
}
