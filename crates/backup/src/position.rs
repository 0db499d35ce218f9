//! What this machine remembers of a backup, in its state directory.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toolcrib_fs::{ChangeOutbox, KeptPath, Stamp};

use crate::blobs::decompress;
use crate::error::BackupError;
use crate::scan::{Found, FoundTree};
use crate::tree::Node;

const POSITION: &str = "position";
const FILES: &str = "files";

/// Larger than any position.
const MAX_POSITION_BYTES: u64 = 64 << 10;

/// Limits of the list of files, compressed and not.
const MAX_FILES_BYTES: u64 = 256 << 20;
const MAX_LIST_BYTES: usize = 1 << 30;

/// After so many segments the next is a checkpoint.
const CHECKPOINT_SEGMENTS: u64 = 200;

/// Segments may have this many bytes more than the checkpoint before the next checkpoint.
const CHECKPOINT_EXTRA_BYTES: u64 = 1 << 20;

/// How far the backup is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The number and the hash of the last segment. 0 if there is none.
    pub(crate) number: u64,
    pub(crate) hash: String,
    /// The hash of the next segment, which may have been stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<String>,
    pub(crate) checkpoint: u64,
    /// The size of the checkpoint, and of the segments since.
    pub(crate) checkpoint_bytes: u64,
    pub(crate) bytes_since: u64,
    /// The number of the last change of the journal that was looked at.
    pub(crate) journal: u64,
}

impl Position {
    /// Whether the next segment is a checkpoint, so that a restore does not read too many.
    pub(crate) fn needs_checkpoint(&self) -> bool {
        self.number - self.checkpoint >= CHECKPOINT_SEGMENTS
            || self.bytes_since > self.checkpoint_bytes + CHECKPOINT_EXTRA_BYTES
    }

    pub(crate) fn read(outbox: &ChangeOutbox) -> Result<Option<Position>, BackupError> {
        let content = outbox.state(POSITION, MAX_POSITION_BYTES).map_err(BackupError::local)?;
        let Some(content) = content else { return Ok(None) };
        let parsed = serde_json::from_slice(&content);
        parsed.map(Some).map_err(|error| {
            BackupError::local(format!("the position of the backup is damaged: {error}"))
        })
    }

    pub(crate) fn keep(&self, outbox: &ChangeOutbox) -> Result<(), BackupError> {
        let text = serde_json::to_vec(self).map_err(BackupError::local)?;
        outbox.keep_state(POSITION, &text).map_err(BackupError::local)
    }
}

/// A file of the list, with its fingerprint.
#[derive(Serialize, Deserialize)]
struct Line {
    at: KeptPath,
    node: Node,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamp: Option<StampNumbers>,
}

type StampNumbers = (u64, u64, u64, (i64, i64), (i64, i64), bool);

/// Reads the list of files, and the number of the segment that it belongs to. Empty if it is missing or damaged: then files are read
/// again.
pub(crate) fn read_files(outbox: &ChangeOutbox) -> (u64, FoundTree) {
    let content = outbox.state(FILES, MAX_FILES_BYTES).ok().flatten();
    content.and_then(|content| parse_files(&content)).unwrap_or_default()
}

fn parse_files(content: &[u8]) -> Option<(u64, FoundTree)> {
    let text = decompress(content, MAX_LIST_BYTES)?;
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let number = serde_json::from_slice(lines.next()?).ok()?;
    let parse =
        |line: &[u8]| {
            let line: Line = serde_json::from_slice(line).ok()?;
            let stamp = line.stamp.map(|(device, inode, size, modified, changed, is_shared)| {
                Stamp { identity: (device, inode), size, modified, changed, is_shared }
            });
            Some((line.at.path(), Found { node: line.node, stamp }))
        };
    let tree: Option<FoundTree> = lines.map(parse).collect();
    Some((number, tree?))
}

/// Keeps the list of files.
pub(crate) fn keep_files(
    outbox: &ChangeOutbox,
    number: u64,
    tree: &FoundTree,
) -> Result<(), BackupError> {
    let mut text = format!("{number}\n").into_bytes();
    for (path, found) in tree {
        let numbers = |stamp: &Stamp| {
            let (device, inode) = stamp.identity;
            (device, inode, stamp.size, stamp.modified, stamp.changed, stamp.is_shared)
        };
        let stamp = found.stamp.as_ref().map(numbers);
        let line = Line { at: KeptPath::new(path), node: found.node.clone(), stamp };
        text.extend(serde_json::to_vec(&line).map_err(BackupError::local)?);
        text.push(b'\n');
    }
    let compressed = zstd::bulk::compress(&text, 1).map_err(BackupError::local)?;
    outbox.keep_state(FILES, &compressed).map_err(BackupError::local)
}

/// How a backup of this machine is going, for `status` and `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalStatus {
    /// Where the backup is.
    pub address: String,
    /// The workspace.
    pub root: PathBuf,
    /// The number of the last segment.
    pub segment: u64,
    /// The backup has all changes up to this time: milliseconds since 1970.
    pub copied_ms: u64,
    /// Why it does not go on. `None` if it does.
    pub problem: Option<String>,
}

const STATUS: &str = "status";

impl LocalStatus {
    pub(crate) fn keep(&self, outbox: &ChangeOutbox) {
        // Without it, only `status` and `doctor` know less.
        if let Ok(text) = serde_json::to_vec(self) {
            let _ = outbox.keep_state(STATUS, &text);
        }
    }

    /// The backups of a state directory.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be used.
    pub fn all(state: &std::path::Path) -> Result<Vec<LocalStatus>, BackupError> {
        let all = ChangeOutbox::all_states(state, STATUS, MAX_POSITION_BYTES)
            .map_err(BackupError::local)?;
        Ok(all.iter().filter_map(|text| serde_json::from_slice(text).ok()).collect())
    }
}
