//! Filters the files of one search with the index: which files need not be read.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use toolcrib_fs::{Directory, Stamp};

use super::Grep;
use super::known_files::KnownFiles;
use super::mapped_files::MappedFiles;
use crate::cached_doc_id::CachedDocId;
use crate::doc_id::DocId;
use crate::file_id::FileId;
use crate::index::{BuildInput, FileVerdict, Index, IndexQuery};
use crate::listing::Listing;

/// The index of a root, queried for one search.
pub(crate) struct IndexFilter {
    index: Arc<Index>,
    /// `None` if the index cannot help here.
    query: Option<IndexQuery>,
    /// If all files of a listing are searched, their map. Otherwise every file is visited.
    mapped: Option<MappedFiles>,
    /// Whether a map is made after the search.
    makes_map: bool,
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

/// A map is made if at least 7 of 8 visited files have a cached id.
const MAPPED_EIGHTHS: usize = 7;

/// A new map is made if this many files, and this part of all files, are visited only because the map is old.
const MIN_OUTDATED: usize = 64;
const OUTDATED_PART: usize = 64;

impl IndexFilter {
    /// `None` if there is no index.
    pub(crate) fn begin(grep: &Grep<'_>, files: &[FileId]) -> Option<IndexFilter> {
        let index = grep.tables?.index(grep.tree, grep.listing)?;
        if !grep.pattern.trigram_query.is_all() {
            index.load();
        }
        let query = index.query(grep.pattern, grep.max_bytes);
        let may_be_mapped = query.is_some() && grep.listing.are_all_cached(files);
        let mapped = if may_be_mapped { MappedFiles::of(grep.listing) } else { None };
        Some(IndexFilter { index, query, mapped, makes_map: false, unindexed: AtomicUsize::new(0) })
    }

    /// The files of a range that may match, without those that are known to have no match without a stat. Also
    /// returns the number of files after the last one.
    pub(crate) fn files_to_read(
        &mut self,
        grep: &Grep<'_>,
        files: &[FileId],
        range: Range<usize>,
    ) -> (Vec<FileToRead>, u64) {
        let mut to_read = FilesToRead { files, found: Vec::new(), next: range.start };
        let Some(query) = &self.query else {
            range.clone().for_each(|position| to_read.push(position));
            return to_read.up_to(range.end);
        };
        let mut known = KnownFiles::new(query, grep.listing, files);
        match &self.mapped {
            Some(mapped) => {
                mapped.visit_possible(query, &range, &mut known, |position| to_read.push(position));
                self.makes_map |= known.found > MIN_OUTDATED.max(files.len() / OUTDATED_PART);
            }
            None => {
                let possible = range.clone().filter(|position| known.may_match(*position));
                possible.for_each(|position| to_read.push(position));
                self.makes_map |=
                    known.found * 8 >= range.len() * MAPPED_EIGHTHS && !range.is_empty();
            }
        }
        to_read.up_to(range.end)
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

    /// Whether a file is plain text, as it was indexed.
    pub(crate) fn is_plain(&self, id: DocId) -> bool {
        self.query.as_ref().is_some_and(|query| query.is_plain(id))
    }

    /// Makes a map for the next search, and starts a build or a self-check in the background, after the search.
    pub(crate) fn finish(self, grep: &Grep<'_>, files: &[FileId]) {
        if self.makes_map && grep.listing.are_all_cached(files) {
            grep.listing.make_doc_map();
        }
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

/// Collects files to read, in order.
struct FilesToRead<'a> {
    files: &'a [FileId],
    found: Vec<FileToRead>,
    /// The position after the last file.
    next: usize,
}

impl FilesToRead<'_> {
    fn push(&mut self, position: usize) {
        let Some(file) = self.files.get(position) else { return };
        let skipped_before = position.saturating_sub(self.next) as u64;
        self.found.push(FileToRead { file: *file, skipped_before });
        self.next = position + 1;
    }

    /// The files, and the number of files that follow the last one.
    fn up_to(self, end: usize) -> (Vec<FileToRead>, u64) {
        (self.found, end.saturating_sub(self.next) as u64)
    }
}
