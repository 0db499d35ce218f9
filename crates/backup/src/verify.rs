//! Reads everything that a restore would read, and checks it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use toolcrib_fs::{ContentHash, Entry, in_parallel};

use crate::blobs;
use crate::contents::{self, Summary};
use crate::error::{BackupError, BackupErrorKind};
use crate::objects::{Objects, THREADS};

/// Problems that are named.
const MAX_NAMED: usize = 20;

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The backup.
    pub summary: Summary,
    /// The number of checked contents.
    pub contents: u64,
    /// The changes in its history.
    pub changes: u64,
    /// Contents of files that are missing or damaged: a restore would fail. The first ones are named.
    pub problems: Vec<String>,
    /// Contents that only an undo needs, and that the journal had dropped, or that are damaged.
    pub missing_for_undo: u64,
}

/// Checks a backup.
///
/// # Errors
///
/// Fails if the backup cannot be read, or if its list of files is damaged. Damaged contents are in the result.
pub fn verify(objects: &Objects) -> Result<Verified, BackupError> {
    let contents = contents::read(objects, None)?;
    // Each content, and whether a file needs it.
    let mut wanted: BTreeMap<ContentHash, bool> = BTreeMap::new();
    let versions = contents.changes.iter().flat_map(Entry::versions);
    wanted.extend(versions.map(|version| (version.hash, false)));
    for node in contents.tree.values() {
        wanted.extend(node.blobs()?.into_iter().map(|hash| (hash, true)));
    }
    let wanted: Vec<(ContentHash, bool)> = wanted.into_iter().collect();
    let (problems, missing_for_undo) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    in_parallel(THREADS, &wanted, |(hash, is_file)| {
        match blobs::get(objects, hash, blobs::MAX_BYTES) {
            Ok(_) => {}
            Err(error) if error.kind() != BackupErrorKind::Damaged => return Err(error),
            Err(error) if *is_file => problems.lock().push(error.to_string()),
            Err(_) => {
                missing_for_undo.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    })?;
    let mut problems = problems.into_inner();
    problems.sort();
    let more = problems.len().saturating_sub(MAX_NAMED);
    problems.truncate(MAX_NAMED);
    if more > 0 {
        problems.push(format!("and {more} more"));
    }
    Ok(Verified {
        summary: Summary::of(&contents.header),
        contents: wanted.len() as u64,
        changes: contents.changes.len() as u64,
        problems,
        missing_for_undo: missing_for_undo.into_inner(),
    })
}
