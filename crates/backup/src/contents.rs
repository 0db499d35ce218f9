//! Reads a backup: its last segments, and the files and changes that they describe.

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

/// Describes a backup.
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
    /// The files left out.
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

/// Reads the state of a backup after a segment, or after the last, without the contents. `None` if there is no backup.
///
/// # Errors
///
/// Fails if it cannot be read, or is damaged.
pub fn summarize(objects: &Objects, at: Option<u64>) -> Result<Option<Summary>, BackupError> {
    let last = at.map_or_else(|| segment::last(objects), |at| Ok(Some(at)))?;
    let Some(last) = last else { return Ok(None) };
    let (segment, _) = required(objects, last)?;
    Ok(Some(Summary::of(&segment.header)))
}

/// Reads a backup up to a segment, or to the last, from the checkpoint before it on, and checks that nothing is missing.
pub(crate) fn read(objects: &Objects, at: Option<u64>) -> Result<Contents, BackupError> {
    let missing = || BackupError::damaged(format!("there is no backup at {}", objects.address()));
    let last = at.map_or_else(|| segment::last(objects), |at| Ok(Some(at)))?.ok_or_else(missing)?;
    let (newest, hash) = required(objects, last)?;
    let (mut tree, mut changes) = (Tree::new(), Vec::new());
    let mut before: Option<String> = None;
    for number in newest.header.checkpoint..last {
        let (segment, hash) = required(objects, number)?;
        add(&mut tree, &mut changes, before.as_deref(), segment)?;
        before = Some(hash);
    }
    let header = newest.header.clone();
    add(&mut tree, &mut changes, before.as_deref(), newest)?;
    if tree::hash(&tree)?.to_string() != header.tree {
        let name = segment::name(last);
        return Err(BackupError::damaged(format!(
            "the files of {name} are not those that it says"
        )));
    }
    tree::check_paths(&tree)?;
    Ok(Contents { header, hash, tree, changes })
}

/// Applies a segment, which must follow the one with the hash `before`, or be a checkpoint.
fn add(
    tree: &mut Tree,
    changes: &mut Vec<Entry>,
    before: Option<&str>,
    segment: Segment,
) -> Result<(), BackupError> {
    let header = &segment.header;
    let follows = before.map_or(header.is_checkpoint(), |before| before == header.previous);
    if !follows {
        let name = segment::name(header.number);
        return Err(BackupError::damaged(format!("{name} does not follow the segment before it")));
    }
    if header.is_checkpoint() {
        tree.clear();
        changes.clear();
    }
    tree::apply(tree, segment.put, &segment.gone);
    changes.extend(segment.changes);
    Ok(())
}

/// A segment and its hash.
fn required(objects: &Objects, number: u64) -> Result<(Segment, String), BackupError> {
    let bytes = segment::get(objects, number)?;
    let bytes = bytes
        .ok_or_else(|| BackupError::damaged(format!("{} is missing", segment::name(number))))?;
    Ok((Segment::decode(&bytes, number)?, ContentHash::of(&bytes).to_string()))
}
