//! Modification times of files. In a watched directory an mtime is cached until an event concerns the file.

use toolcrib_fs::{BulkReader, Directory};

use crate::cached_mtimes::{CachedMtime, Mtime};
use crate::file_id::FileId;
use crate::listing::{ListedDirectory, Listing};
use crate::parallel_ordered::map_in_order;

/// The mtime of each file. `None` for files that no longer exist.
pub fn mtimes(tree: &BulkReader, listing: &Listing, files: &[FileId]) -> Vec<Option<Mtime>> {
    let mut modified = Vec::with_capacity(files.len());
    for files in files.chunk_by(|one, next| one.directory == next.directory) {
        let listed = &listing.directories[files[0].directory as usize];
        let cached = listed.cache.mtimes.lock();
        modified.extend(files.iter().map(|file| listed.cached_mtime(&cached, file.entry as usize)));
    }
    let uncached: Vec<usize> = (0..files.len()).filter(|at| modified[*at].is_none()).collect();
    map_in_order(
        &uncached,
        || None::<(u32, Option<Directory>)>,
        |open, at| {
            let file = files[*at];
            if open.as_ref().is_none_or(|(directory, _)| *directory != file.directory) {
                *open = Some((file.directory, tree.directory(listing.directory_of(file)).ok()));
            }
            let directory = open.as_ref()?.1.as_ref()?;
            listing.directories[file.directory as usize].stat_mtime(directory, file.entry as usize)
        },
        |at, mtime| {
            modified[*at] = mtime;
            true
        },
    );
    modified
}

impl ListedDirectory {
    fn cached_mtime(&self, cached: &[Option<CachedMtime>], entry: usize) -> Option<Mtime> {
        let cached = (*cached.get(entry)?)?;
        (self.cache.doc_ids[entry].version() == cached.version).then_some(cached.modified)
    }

    fn stat_mtime(&self, directory: &Directory, entry: usize) -> Option<Mtime> {
        let (stamp, version) = self.stat_entry(directory, entry)?;
        if let Some(version) = version {
            let mut mtimes = self.cache.mtimes.lock();
            mtimes.resize(self.entries.len(), None);
            mtimes[entry] = Some(CachedMtime { version, modified: stamp.modified });
        }
        Some(stamp.modified)
    }
}
