//! The files of one search whose cached ids say whether they may match.

use crate::file_id::FileId;
use crate::index::{IndexQuery, NoMatchLookup};
use crate::listing::Listing;

/// Reads the cached ids of files.
pub(crate) struct KnownFiles<'a> {
    listing: &'a Listing,
    files: &'a [FileId],
    no_match_lookup: NoMatchLookup<'a>,
    /// Number of visited files that have an id in the index.
    pub(crate) found: usize,
}

impl<'a> KnownFiles<'a> {
    pub(crate) fn new(
        query: &'a IndexQuery,
        listing: &'a Listing,
        files: &'a [FileId],
    ) -> KnownFiles<'a> {
        KnownFiles { listing, files, no_match_lookup: query.no_match_lookup(), found: 0 }
    }

    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    /// Whether the file at a position may match, as far as is known without a stat.
    pub(crate) fn may_match(&mut self, position: usize) -> bool {
        let Some(id) = self.listing.cached_doc_id(self.files[position]) else { return true };
        let has_no_match = self.no_match_lookup.has_no_match(id);
        self.found += usize::from(has_no_match.is_some());
        has_no_match != Some(true)
    }
}
