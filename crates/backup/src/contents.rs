//! Reads a backup: its last segments, and what they amount to.

use std::path::PathBuf;

use toolcrib_fs::{ContentHash, Entry};

use crate::error::BackupError;
use crate::objects::Objects;
use crate::segment::{self, Header, LeftOut, Segment};
use crate::tree::{self, Tree};

/// The state of a backup after its last segment.
pub(crate) struct Contents {
    pub(crate) header: Header,
    /// The hash of the last segment.
    pub(crate) hash: String,
    pub(crate) tree: Tree,
    pub(crate) changes: Vec<Entry>,
}

/// What a backup has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The number of the last segment.
    pub segment: u64,
    /// The files are not older than this: milliseconds since 1970.
    pub time_ms: u64,
    /// The machine that wrote it.
    pub machine: String,
    /// The workspace there.
    pub root: PathBuf,
    /// The number of files, directories and symlinks.
    pub entries: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// What was not copied.
    pub left_out: LeftOut,
}

impl Summary {
    pub(crate) fn of(header: &Header) -> Summary {
        Summary {
            segment: header.number,
            time_ms: header.time_ms,
            machine: header.machine.clone(),
            root: header.root.path(),
            entries: header.files,
            bytes: header.bytes,
            left_out: header.left_out,
        }
    }
}

/// Reads what a backup has, without the contents. `None` if there is no backup.
///
/// # Errors
///
/// Fails if it cannot be read, or is damaged.
pub fn summarize(objects: &Objects) -> Result<Option<Summary>, BackupError> {
    let Some(last) = segment::last(objects)? else { return Ok(None) };
    let (segment, _) = required(objects, last)?;
    Ok(Some(Summary::of(&segment.header)))
}

/// Reads a backup from its last checkpoint on, and checks that nothing is missing.
pub(crate) fn read(objects: &Objects) -> Result<Contents, BackupError> {
    let missing = || BackupError::damaged(format!("there is no backup at {}", objects.address()));
    let last = segment::last(objects)?.ok_or_else(missing)?;
    let (newest, hash) = required(objects, last)?;
    let first = newest.header.checkpoint;
    let (mut tree, mut changes) = (Tree::new(), Vec::new());
    let mut before: Option<String> = None;
    let mut newest = Some(newest);
    for number in first..=last {
        let (segment, own_hash) = match newest.take_if(|_| number == last) {
            Some(newest) => (newest, hash.clone()),
            None => required(objects, number)?,
        };
        if before.is_some_and(|before| before != segment.header.previous) {
            let name = segment::name(number);
            return Err(BackupError::damaged(format!(
                "{name} does not follow the segment before it"
            )));
        }
        if segment.header.is_checkpoint() {
            (tree, changes) = (Tree::new(), Vec::new());
        } else if number == first {
            return Err(BackupError::damaged(format!(
                "{} is no checkpoint",
                segment::name(number)
            )));
        }
        tree::apply(&mut tree, segment.put, &segment.gone);
        changes.extend(segment.changes);
        if tree::hash(&tree)?.to_string() != segment.header.tree {
            let name = segment::name(number);
            return Err(BackupError::damaged(format!(
                "the files of {name} are not those that it says"
            )));
        }
        before = Some(own_hash.clone());
        if number == last {
            tree::check_paths(&tree)?;
            return Ok(Contents { header: segment.header, hash: own_hash, tree, changes });
        }
    }
    Err(missing())
}

/// A segment and its hash.
fn required(objects: &Objects, number: u64) -> Result<(Segment, String), BackupError> {
    let bytes = segment::get(objects, number)?;
    let bytes = bytes
        .ok_or_else(|| BackupError::damaged(format!("{} is missing", segment::name(number))))?;
    Ok((Segment::decode(&bytes, number)?, ContentHash::of(&bytes).to_string()))
}
