//! Modification times of files. In a watched directory an mtime is cached until an event concerns the file.

use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_fs::{Directory, TreeReader};

use crate::index_slot::Version;
use crate::listing::{FileId, Listed, Listing};
use crate::parallel_ordered::in_order;

/// The mtimes of a directory's files, as far as they were requested.
#[derive(Debug, Default)]
pub(crate) struct Times(Mutex<Vec<Option<Noted>>>);

/// An mtime and the slot version from before it was read. It is invalid if the version has changed.
#[derive(Debug, Clone, Copy)]
struct Noted {
    version: Version,
    modified: Time,
}

/// Seconds and nanoseconds since the epoch.
type Time = (i64, i64);

/// The mtime of each file. `None` for files that no longer exist.
pub(crate) fn modified(
    tree: &TreeReader,
    listing: &Listing,
    files: &[FileId],
) -> Vec<Option<Time>> {
    let mut modified = Vec::with_capacity(files.len());
    for files in files.chunk_by(|one, next| one.directory == next.directory) {
        let listed = &listing.directories[files[0].directory as usize];
        let noted = listed.times.lock();
        modified.extend(files.iter().map(|file| listed.noted(&noted, file.entry as usize)));
    }
    let unknown: Vec<usize> = (0..files.len()).filter(|at| modified[*at].is_none()).collect();
    in_order(
        &unknown,
        || None::<(u32, Option<Directory>)>,
        |open, at| {
            let file = files[*at];
            if open.as_ref().is_none_or(|(directory, _)| *directory != file.directory) {
                *open = Some((file.directory, tree.directory(listing.directory_of(file)).ok()));
            }
            let directory = open.as_ref()?.1.as_ref()?;
            listing.directories[file.directory as usize].ask_time(directory, file.entry as usize)
        },
        |at, asked| {
            modified[*at] = asked;
            true
        },
    );
    modified
}

impl Listed {
    fn noted(&self, noted: &[Option<Noted>], entry: usize) -> Option<Time> {
        let noted = (*noted.get(entry)?)?;
        (self.slots[entry].version() == noted.version).then_some(noted.modified)
    }

    fn ask_time(&self, directory: &Directory, entry: usize) -> Option<Time> {
        let (stamp, version) = self.ask(directory, entry)?;
        if let Some(version) = version {
            let mut times = self.times.lock();
            times.resize(self.entries.len(), None);
            times[entry] = Some(Noted { version, modified: stamp.modified });
        }
        Some(stamp.modified)
    }
}

impl Times {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Noted>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
