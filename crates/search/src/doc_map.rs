//! A map from the ids of the index to the files of a listing, so that a query visits its candidates instead of
//! all files.
//!
//! A map repeats what the cached ids of a listing said when it was made. An id that is cleared later is noted
//! beside the map, and the map no longer counts for its file. A map is stored only if nothing was cleared while
//! it was made. So for every other file, the map and the cached id agree.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::doc_id::DocId;
use crate::file_id::FileId;

/// The files of a listing by their ids in the index. A position is that of a file in path order.
#[derive(Debug, Default)]
pub(crate) struct DocMap {
    /// In ascending order of serials.
    segments: Vec<SegmentFiles>,
    /// Files without an id.
    unknown: Vec<u32>,
    /// Files whose id is that of another file too: their directory has two paths.
    doubled: Vec<u32>,
    /// The number of the first entry of each directory, and the position of each entry.
    first_entries: Vec<u32>,
    positions: Vec<u32>,
}

/// The files of one segment.
#[derive(Debug)]
pub(crate) struct SegmentFiles {
    pub(crate) serial: u32,
    /// The position of each file of the segment, or [`NO_POSITION`].
    pub(crate) positions: Vec<u32>,
    /// The lowest and the highest position.
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// A file of a segment that is not in the listing.
pub(crate) const NO_POSITION: u32 = u32::MAX;

/// The map of a listing, and the files whose ids were cleared since it was made.
#[derive(Debug, Default)]
pub(crate) struct DocMapState(Mutex<State>);

#[derive(Debug, Default, Clone)]
struct State {
    map: Option<Arc<DocMap>>,
    /// The files whose id was cleared after the map was made.
    cleared: HashSet<FileId>,
    /// How often ids were cleared.
    version: u64,
}

/// The version of a [`DocMapState`], from before a map was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DocMapVersion(u64);

/// A map is discarded if more ids were cleared. Making a new one takes about as long as visiting so many files
/// at a few queries.
const MAX_CLEARED: usize = 4_096;

impl DocMapState {
    /// Must be read before the cached ids are read.
    pub(crate) fn version(&self) -> DocMapVersion {
        DocMapVersion(self.0.lock().version)
    }

    /// Stores a map, unless an id was cleared after `version`.
    pub(crate) fn store(&self, version: DocMapVersion, map: DocMap) {
        let mut state = self.0.lock();
        if state.version == version.0 {
            state.map = Some(Arc::new(map));
            state.cleared.clear();
        }
    }

    /// The map, and the positions of the files that it no longer counts for.
    pub(crate) fn current(&self) -> Option<(Arc<DocMap>, Vec<u32>)> {
        let state = self.0.lock();
        let map = state.map.clone()?;
        let cleared = state.cleared.iter().filter_map(|file| map.position(*file)).collect();
        Some((map, cleared))
    }

    /// Notes that the ids of some files were cleared. Must be called after they were cleared, and before the
    /// query begins that has to notice it.
    pub(crate) fn note_cleared(&self, files: &[FileId]) {
        if files.is_empty() {
            return;
        }
        let mut state = self.0.lock();
        state.version += 1;
        if state.map.is_some() {
            state.cleared.extend(files);
        }
        if state.cleared.len() > MAX_CLEARED {
            state.forget();
        }
    }

    /// Discards the map: any number of ids was cleared.
    pub(crate) fn forget(&self) {
        self.0.lock().forget();
    }

    /// A copy, for a new listing with the same files and the same cached ids.
    pub(crate) fn copied(&self) -> DocMapState {
        DocMapState(Mutex::new(self.0.lock().clone()))
    }
}

impl State {
    fn forget(&mut self) {
        self.version += 1;
        self.map = None;
        self.cleared.clear();
    }
}

impl DocMap {
    /// Makes the map of `files`, which are in path order. `entry_counts` has the number of entries of each
    /// directory.
    pub(crate) fn new(
        files: &[FileId],
        entry_counts: impl Iterator<Item = usize>,
        id_of: impl Fn(FileId) -> Option<DocId>,
    ) -> DocMap {
        let mut map = DocMap::default();
        let mut entries = 0;
        for count in entry_counts {
            map.first_entries.push(entries);
            entries = entries.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
        map.positions = vec![NO_POSITION; entries as usize];
        for (position, file) in (0..NO_POSITION).zip(files) {
            if let Some(at) = map.entry_number(*file) {
                map.positions[at] = position;
            }
            match id_of(*file) {
                Some(id) => map.add(id, position),
                None => map.unknown.push(position),
            }
        }
        map
    }

    fn add(&mut self, id: DocId, position: u32) {
        let at = match self.segments.binary_search_by_key(&id.serial, |segment| segment.serial) {
            Ok(at) => at,
            Err(at) => {
                let (serial, positions) = (id.serial, Vec::new());
                let segment = SegmentFiles { serial, positions, first: position, last: position };
                self.segments.insert(at, segment);
                at
            }
        };
        let segment = &mut self.segments[at];
        let file = id.file as usize;
        if segment.positions.len() <= file {
            segment.positions.resize(file + 1, NO_POSITION);
        }
        if segment.positions[file] == NO_POSITION {
            segment.positions[file] = position;
            segment.last = position;
        } else {
            self.doubled.push(position);
        }
    }

    pub(crate) fn segments(&self) -> &[SegmentFiles] {
        &self.segments
    }

    /// The positions of the files without an id, and of those with the id of another file too.
    pub(crate) fn unmapped(&self) -> (&[u32], &[u32]) {
        (&self.unknown, &self.doubled)
    }

    fn position(&self, file: FileId) -> Option<u32> {
        let position = *self.positions.get(self.entry_number(file)?)?;
        (position != NO_POSITION).then_some(position)
    }

    fn entry_number(&self, file: FileId) -> Option<usize> {
        let first = *self.first_entries.get(file.directory as usize)?;
        let at = first as usize + file.entry as usize;
        (at < self.positions.len()).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: FileId = FileId { directory: 0, entry: 1 };
    const TWO: FileId = FileId { directory: 1, entry: 0 };

    fn map() -> DocMap {
        let id = |file: FileId| Some(DocId { serial: 3, file: file.directory });
        DocMap::new(&[ONE, TWO], [2, 1].into_iter(), id)
    }

    #[test]
    fn ids_that_are_cleared_after_a_map_was_made_are_noted_beside_it() {
        let state = DocMapState::default();
        state.store(state.version(), map());
        assert!(state.current().unwrap().1.is_empty());
        // An entry that is not a file has no position.
        state.note_cleared(&[TWO, FileId { directory: 0, entry: 0 }]);
        let copy = state.copied();
        for state in [&state, &copy] {
            assert_eq!(state.current().unwrap().1, [1]);
        }
        copy.note_cleared(&[ONE]);
        assert_eq!((state.current().unwrap().1.len(), copy.current().unwrap().1.len()), (1, 2));
        state.forget();
        assert!(state.current().is_none() && copy.current().is_some());
    }

    #[test]
    fn a_map_is_not_stored_if_an_id_was_cleared_while_it_was_made() {
        let state = DocMapState::default();
        for clear in [|state: &DocMapState| state.note_cleared(&[ONE]), DocMapState::forget] {
            let version = state.version();
            clear(&state);
            state.store(version, map());
            assert!(state.current().is_none());
        }
    }

    #[test]
    fn a_map_is_discarded_after_very_many_changes() {
        let state = DocMapState::default();
        state.store(state.version(), map());
        for entry in 0..=u32::try_from(MAX_CLEARED).unwrap() {
            assert!(state.current().is_some());
            state.note_cleared(&[FileId { directory: 0, entry }]);
        }
        assert!(state.current().is_none());
    }

    #[test]
    fn a_second_file_with_an_id_is_beside_the_map() {
        let id = DocId { serial: 3, file: 2 };
        let map = DocMap::new(&[ONE, TWO], [2, 1].into_iter(), |_| Some(id));
        assert_eq!(map.unmapped(), (&[][..], &[1][..]));
        let [segment] = map.segments() else { panic!("one segment") };
        let expected = [NO_POSITION, NO_POSITION, 0];
        assert_eq!((segment.serial, &segment.positions[..]), (3, &expected[..]));
        let map = DocMap::new(&[ONE, TWO], [2, 1].into_iter(), |_| None);
        assert_eq!(map.unmapped(), (&[0, 1][..], &[][..]));
    }
}
