//! The index at one moment. A search uses one snapshot from beginning to end.

use std::collections::HashMap;
use std::sync::Arc;

use toolcrib_fs::Stamp;

use super::segment::{IndexedFile, Segment};
use crate::index_position::IndexPosition;

/// Segments, and the position of each file. Files are identified by their stat fingerprint, not by their
/// names: a file with an indexed fingerprint has the indexed content.
#[derive(Debug, Default, Clone)]
pub(crate) struct Snapshot {
    /// In ascending order of serials.
    pub(super) segments: Vec<Arc<Segment>>,
    positions: HashMap<(u64, u64), IndexPosition>,
}

impl Snapshot {
    /// The position of the file with this stat fingerprint, and so with the same content.
    pub(crate) fn find(&self, stamp: &Stamp) -> Option<IndexPosition> {
        let position = *self.positions.get(&stamp.identity)?;
        (self.file(position)?.stamp == *stamp).then_some(position)
    }

    /// The stat fingerprint of a file when it was read. `None` if its segment no longer exists.
    pub(crate) fn stamp(&self, position: IndexPosition) -> Option<Stamp> {
        Some(self.file(position)?.stamp)
    }

    pub(super) fn file(&self, position: IndexPosition) -> Option<&IndexedFile> {
        let at = self.segment_index(position.serial)?;
        self.segments[at].files.get(position.file as usize)
    }

    /// The position of the segment with this serial.
    pub(super) fn segment_index(&self, serial: u32) -> Option<usize> {
        self.segments.binary_search_by_key(&serial, |segment| segment.serial).ok()
    }

    /// The number of files.
    pub(super) fn file_count(&self) -> usize {
        self.positions.len()
    }

    pub(super) fn bytes(&self) -> usize {
        let segments: usize = self.segments.iter().map(|segment| segment.bytes()).sum();
        segments + self.positions.capacity() * size_of::<((u64, u64), IndexPosition)>()
    }

    /// Adds segments. For a file that is in several segments, the last one wins.
    pub(super) fn with(&self, segments: impl IntoIterator<Item = Segment>) -> Snapshot {
        let mut snapshot = self.clone();
        for segment in segments {
            for (at, file) in segment.files.iter().enumerate() {
                let file_at = u32::try_from(at).unwrap_or(u32::MAX);
                let position = IndexPosition { serial: segment.serial, file: file_at };
                snapshot.positions.insert(file.stamp.identity, position);
            }
            snapshot.segments.push(Arc::new(segment));
        }
        snapshot.segments.sort_unstable_by_key(|segment| segment.serial);
        snapshot
    }

    /// Removes segments and their files.
    pub(super) fn without(&self, serials: &[u32]) -> Snapshot {
        let mut snapshot = self.clone();
        snapshot.segments.retain(|segment| !serials.contains(&segment.serial));
        snapshot.positions.retain(|_, position| !serials.contains(&position.serial));
        snapshot
    }
}
