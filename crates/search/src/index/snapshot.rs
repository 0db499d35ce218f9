//! The index at one moment. A search uses one snapshot from beginning to end.

use std::collections::HashMap;
use std::sync::Arc;

use toolcrib_fs::Stamp;

use super::segment::{IndexedFile, Segment};
use crate::doc_id::DocId;

/// Segments, and the id of each file. Files are identified by their stat fingerprint, not by their
/// names: a file with an indexed fingerprint has the indexed content.
#[derive(Debug, Default, Clone)]
pub(crate) struct Snapshot {
    /// In ascending order of serials.
    pub(super) segments: Vec<Arc<Segment>>,
    doc_ids: HashMap<(u64, u64), DocId>,
}

impl Snapshot {
    /// The id of the file with this stat fingerprint, and so with the same content.
    pub(crate) fn find(&self, stamp: &Stamp) -> Option<DocId> {
        let id = *self.doc_ids.get(&stamp.identity)?;
        (self.file(id)?.stamp == *stamp).then_some(id)
    }

    /// The stat fingerprint of a file when it was read. `None` if its segment no longer exists.
    pub(crate) fn stamp(&self, id: DocId) -> Option<Stamp> {
        Some(self.file(id)?.stamp)
    }

    pub(super) fn file(&self, id: DocId) -> Option<&IndexedFile> {
        let at = self.segment_index(id.serial)?;
        self.segments[at].files.get(id.file as usize)
    }

    /// The index of the segment with this serial.
    pub(super) fn segment_index(&self, serial: u32) -> Option<usize> {
        self.segments.binary_search_by_key(&serial, |segment| segment.serial).ok()
    }

    /// The number of files.
    pub(super) fn file_count(&self) -> usize {
        self.doc_ids.len()
    }

    pub(super) fn bytes(&self) -> usize {
        let segments: usize = self.segments.iter().map(|segment| segment.bytes()).sum();
        segments + self.doc_ids.capacity() * size_of::<((u64, u64), DocId)>()
    }

    /// Adds segments. For a file that is in several segments, the last one wins.
    pub(super) fn with(&self, segments: impl IntoIterator<Item = Segment>) -> Snapshot {
        let mut snapshot = self.clone();
        for segment in segments {
            for (at, file) in segment.files.iter().enumerate() {
                let file_at = u32::try_from(at).unwrap_or(u32::MAX);
                let id = DocId { serial: segment.serial, file: file_at };
                snapshot.doc_ids.insert(file.stamp.identity, id);
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
        snapshot.doc_ids.retain(|_, id| !serials.contains(&id.serial));
        snapshot
    }
}
