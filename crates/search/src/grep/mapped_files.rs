//! The files of a whole listing that may match, found with its map instead of a visit to each of them.

use std::ops::Range;
use std::sync::Arc;

use super::known_files::KnownFiles;
use crate::bit_set::BitSet;
use crate::doc_map::{DocMap, NO_POSITION, SegmentFiles};
use crate::index::IndexQuery;
use crate::listing::Listing;

/// The map of a listing, as it is at the start of a search.
pub(crate) struct MappedFiles {
    map: Arc<DocMap>,
    /// The files whose id was cleared since the map was made.
    cleared: Vec<u32>,
}

impl MappedFiles {
    /// `None` if the listing has no map.
    pub(crate) fn of(listing: &Listing) -> Option<MappedFiles> {
        let (map, cleared) = listing.summary.doc_map.current()?;
        Some(MappedFiles { map, cleared })
    }

    /// Visits the files of a range that may match, in order. `known` decides on the files that the map does not
    /// count for.
    pub(crate) fn visit_possible(
        &self,
        query: &IndexQuery,
        range: &Range<usize>,
        known: &mut KnownFiles<'_>,
        visit: impl FnMut(usize),
    ) {
        let mut possible = BitSet::empty(known.count());
        let (unknown, doubled) = self.map.unmapped();
        // They have an id after each search, and no new map changes that.
        add_if_possible(doubled, range, known, &mut possible);
        known.found = 0;
        for list in [unknown, &self.cleared] {
            add_if_possible(list, range, known, &mut possible);
        }
        // The other segments need not be looked up.
        let is_needed = |segment: &&SegmentFiles| {
            (segment.first as usize) < range.end && segment.last as usize >= range.start
        };
        let segments = || self.map.segments().iter().filter(is_needed);
        query.look_up(segments().map(|segment| segment.serial));
        for segment in segments() {
            let positions = &segment.positions;
            let exists = query.for_each_possible(segment.serial, positions.len(), |file| {
                let position = positions[file] as usize;
                if range.contains(&position) {
                    possible.set(position);
                }
            });
            if !exists {
                add_if_possible(positions, range, known, &mut possible);
            }
        }
        possible.for_each(visit);
    }
}

fn add_if_possible(
    positions: &[u32],
    range: &Range<usize>,
    known: &mut KnownFiles<'_>,
    possible: &mut BitSet,
) {
    for position in positions.iter().filter(|position| **position != NO_POSITION) {
        let position = *position as usize;
        if range.contains(&position) && known.may_match(position) {
            possible.set(position);
        }
    }
}
