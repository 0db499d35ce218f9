//! Filters the files of one search with the index: which files need not be read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use toolcrib_fs::{Directory, Stamp};

use super::Grep;
use crate::cached_doc_id::CachedDocId;
use crate::doc_id::DocId;
use crate::index::{BuildInput, FileVerdict, Index, IndexQuery, NoMatchLookup};
use crate::listing::{FileId, Listing};

/// The index of a root, queried for one search.
pub(crate) struct IndexFilter {
    index: Arc<Index>,
    /// `None` if the index cannot help here.
    query: Option<IndexQuery>,
    /// Number of files that are not indexed.
    unindexed: AtomicUsize,
}

/// A file to read, and the number of files skipped right before it.
pub(crate) struct FileToRead {
    pub(crate) file: FileId,
    pub(crate) skipped_before: u64,
}

/// This many unindexed files trigger a build.
const MIN_UNINDEXED_TO_BUILD: usize = 8;

impl IndexFilter {
    /// `None` if there is no index.
    pub(crate) fn begin(grep: &Grep<'_>) -> Option<IndexFilter> {
        let index = grep.tables?.index(grep.tree, grep.listing)?;
        if !grep.pattern.trigram_query.is_all() {
            index.load();
        }
        let query = index.query(grep.pattern, grep.max_bytes);
        Some(IndexFilter { index, query, unindexed: AtomicUsize::new(0) })
    }

    /// Skips the files that are known to have no match without a stat.
    pub(crate) fn skip_known(&self, grep: &Grep<'_>, files: &[FileId]) -> (Vec<FileToRead>, u64) {
        let mut no_match_lookup = self.query.as_ref().map(IndexQuery::no_match_lookup);
        let mut to_read = Vec::new();
        let mut skipped_before = 0;
        for files in files.chunk_by(|one, next| one.directory == next.directory) {
            let slots = &grep.listing.directories[files[0].directory as usize].cache.doc_ids;
            for file in files {
                let id = slots.get(file.entry as usize).and_then(CachedDocId::get);
                let has_no_match = |no_match_lookup: &mut NoMatchLookup<'_>| {
                    id.is_some_and(|id| no_match_lookup.has_no_match(id))
                };
                if no_match_lookup.as_mut().is_some_and(has_no_match) {
                    skipped_before += 1;
                } else {
                    to_read.push(FileToRead {
                        file: *file,
                        skipped_before: std::mem::take(&mut skipped_before),
                    });
                }
            }
        }
        (to_read, skipped_before)
    }

    /// The id and stat fingerprint of a file, if it is unchanged since it was indexed. In a
    /// watched directory the id is cached, so that the next search needs no stat.
    pub(crate) fn find<'d>(
        &self,
        listing: &Listing,
        file: FileId,
        directory: impl FnOnce() -> Option<&'d Directory>,
    ) -> Option<(DocId, Stamp)> {
        let snapshot = self.query.as_ref()?.snapshot();
        let listed = &listing.directories[file.directory as usize];
        let slot = listed.cache.doc_ids.get(file.entry as usize);
        if let Some(id) = slot.and_then(CachedDocId::get)
            && let Some(stamp) = snapshot.stamp(id)
        {
            return Some((id, stamp));
        }
        let (stamp, version) = listed.stat_entry(directory()?, file.entry as usize)?;
        let Some(id) = snapshot.find(&stamp) else {
            self.unindexed.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        if let Some((slot, version)) = slot.zip(version) {
            slot.put(version, id);
        }
        Some((id, stamp))
    }

    /// The verdict of the index on a file.
    pub(crate) fn verdict(&self, id: DocId) -> FileVerdict {
        self.query.as_ref().map_or(FileVerdict::Unknown, |known| known.verdict(id))
    }

    /// Starts a build or a self-check in the background, after the search.
    pub(crate) fn finish(self, grep: &Grep<'_>) {
        let needs_build = match &self.query {
            Some(_) => self.unindexed.load(Ordering::Relaxed) >= MIN_UNINDEXED_TO_BUILD,
            None => self.index.is_empty(),
        };
        // Only a cached listing has all files of the root.
        if !grep.listing.is_cached {
            return;
        }
        let directories = grep.listing.directories.clone();
        let is_persistent = grep.tables.is_some_and(|tables| tables.is_indexed(grep.listing));
        let work = BuildInput { directories, decoder: grep.letters, is_persistent };
        if needs_build {
            self.index.build_later(grep.tree, work);
        } else if self.query.is_some() {
            self.index.check_later(grep.tree, work, grep.pattern);
        }
    }
}
