//! One step of a backup: an object with a number, which says how the files and the history go on.
//!
//! Each segment has the hash of the one before, so that none can be missing or replaced. A checkpoint has all files and all of the
//! history, so that older segments are not needed. The object has a line with the hash of the rest, which is compressed lines
//! of JSON: the header, and then a line for each entry.

use serde::{Deserialize, Serialize};
use toolcrib_fs::{ContentHash, Entry, KeptPath};

use crate::blobs::decompress;
use crate::error::{BackupError, BackupErrorKind};
use crate::objects::{Objects, Put};
use crate::tree::TreeEntry;

pub(crate) const FOLDER: &str = "segments";

/// The format that this program writes and reads.
const FORMAT: u32 = 1;

const MAGIC: &str = "toolcrib-backup-segment ";

/// Limits of a segment, compressed and not.
pub(crate) const MAX_OBJECT_BYTES: usize = 256 << 20;
const MAX_BYTES: usize = 1 << 30;

const COMPRESSION_LEVEL: i32 = 3;

/// Numbers of the files left out of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LeftOut {
    /// Paths that are hidden from tools.
    pub hidden: u64,
    /// Directories that ignore files exclude.
    pub ignored_directories: u64,
    /// Sockets, FIFOs and devices.
    pub special: u64,
    /// Files and directories that could not be read.
    pub unreadable: u64,
    /// Files that are larger than the limit.
    pub too_large: u64,
}

/// The beginning of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) format: u32,
    pub(crate) number: u64,
    /// The hash of the object before. Empty for the first.
    pub(crate) previous: String,
    /// The number of the last checkpoint, which may be this one.
    pub(crate) checkpoint: u64,
    /// The files are not older than this: milliseconds since 1970.
    pub(crate) time_ms: u64,
    /// The machine that wrote it.
    pub(crate) machine: String,
    /// The workspace there.
    pub(crate) root: KeptPath,
    /// The hash of the whole tree after this segment.
    pub(crate) tree: String,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) left_out: LeftOut,
}

/// A segment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment {
    pub(crate) header: Header,
    pub(crate) put: Vec<TreeEntry>,
    pub(crate) gone: Vec<KeptPath>,
    /// Changes of the journal.
    pub(crate) changes: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Put(TreeEntry),
    Gone(KeptPath),
    Change(Box<Entry>),
}

/// The bytes of an object, and their hash.
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    pub(crate) hash: String,
}

impl Header {
    pub(crate) const FORMAT: u32 = FORMAT;

    pub(crate) fn is_checkpoint(&self) -> bool {
        self.checkpoint == self.number
    }
}

impl Segment {
    pub(crate) fn encode(self) -> Result<Encoded, BackupError> {
        let mut text = Vec::new();
        let mut add = |line: serde_json::Result<Vec<u8>>| -> Result<(), BackupError> {
            text.extend(line.map_err(BackupError::local)?);
            text.push(b'\n');
            Ok(())
        };
        add(serde_json::to_vec(&self.header))?;
        self.put.into_iter().try_for_each(|one| add(serde_json::to_vec(&Line::Put(one))))?;
        self.gone.into_iter().try_for_each(|one| add(serde_json::to_vec(&Line::Gone(one))))?;
        let changes = self.changes.into_iter().map(|one| Line::Change(Box::new(one)));
        changes.into_iter().try_for_each(|one| add(serde_json::to_vec(&one)))?;
        let body = zstd::bulk::compress(&text, COMPRESSION_LEVEL).map_err(BackupError::local)?;
        let mut bytes = format!("{MAGIC}{}\n", ContentHash::of(&body)).into_bytes();
        bytes.extend(body);
        if text.len() > MAX_BYTES || bytes.len() > MAX_OBJECT_BYTES {
            return Err(BackupError::local(
                "the list of files and changes is too large for a backup",
            ));
        }
        let hash = ContentHash::of(&bytes).to_string();
        Ok(Encoded { bytes, hash })
    }

    pub(crate) fn decode(bytes: &[u8], number: u64) -> Result<Segment, BackupError> {
        let damaged = |what: &str| BackupError::damaged(format!("{} {what}", name(number)));
        let text = text_of(bytes).ok_or_else(|| damaged("is damaged"))?;
        let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let header: Header = lines
            .next()
            .and_then(|line| serde_json::from_slice(line).ok())
            .ok_or_else(|| damaged("has no header that this program can read"))?;
        if header.format > FORMAT {
            return Err(BackupError::new(
                BackupErrorKind::Settings,
                format!("a newer program has written this backup, in format {}", header.format),
            ));
        }
        if header.number != number || header.checkpoint > number || header.checkpoint == 0 {
            return Err(damaged("is another segment"));
        }
        let (mut put, mut gone, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        for line in lines {
            match serde_json::from_slice(line).map_err(|_| damaged("has an unknown line"))? {
                Line::Put(one) => put.push(one),
                Line::Gone(one) => gone.push(one),
                Line::Change(one) => changes.push(*one),
            }
        }
        Ok(Segment { header, put, gone, changes })
    }
}

/// The lines of a segment. `None` if it is damaged.
fn text_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&bytes[..end]).ok()?;
    let hash: ContentHash = line.strip_prefix(MAGIC)?.parse().ok()?;
    let body = &bytes[end + 1..];
    if ContentHash::of(body) == hash { decompress(body, MAX_BYTES) } else { None }
}

/// The name of the object. Names are in the order of numbers.
pub(crate) fn name(number: u64) -> String {
    format!("{FOLDER}/{number:016}")
}

/// The object with a number. `None` if there is none.
pub(crate) fn get(objects: &Objects, number: u64) -> Result<Option<Vec<u8>>, BackupError> {
    objects.get(&name(number), MAX_OBJECT_BYTES)
}

/// Stores a segment, if there is none with its number.
pub(crate) fn put(objects: &Objects, number: u64, segment: &Encoded) -> Result<Put, BackupError> {
    objects.put_new(&name(number), &segment.bytes)
}

/// The number of the last segment. `None` if there is none.
pub(crate) fn last(objects: &Objects) -> Result<Option<u64>, BackupError> {
    let names = objects.list(FOLDER)?;
    Ok(names.iter().filter_map(|name| name.parse().ok()).max())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::tree::Node;

    fn segment() -> Segment {
        let header = Header {
            format: FORMAT,
            number: 7,
            previous: "p".to_owned(),
            checkpoint: 3,
            time_ms: 1,
            machine: "m".to_owned(),
            root: KeptPath::new(Path::new("/w")),
            tree: "t".to_owned(),
            files: 1,
            bytes: 2,
            left_out: LeftOut { hidden: 1, ..LeftOut::default() },
        };
        let at = KeptPath::new(Path::new("a\nb"));
        let put = vec![TreeEntry { at: at.clone(), node: Node::Directory { mode: 0o700 } }];
        Segment { header, put, gone: vec![at], changes: Vec::new() }
    }

    #[test]
    fn a_segment_is_read_back_and_any_damage_is_found() {
        let encoded = segment().encode().unwrap();
        assert_eq!(Segment::decode(&encoded.bytes, 7).unwrap(), segment());
        assert!(Segment::decode(&encoded.bytes, 8).is_err());
        for at in 0..encoded.bytes.len() {
            let mut damaged = encoded.bytes.clone();
            damaged[at] ^= 1;
            assert!(Segment::decode(&damaged, 7).is_err(), "byte {at}");
            assert!(Segment::decode(&encoded.bytes[..at], 7).is_err(), "cut off at {at}");
        }
        let newer = Segment { header: Header { format: 2, ..segment().header }, ..segment() };
        let refused = Segment::decode(&newer.encode().unwrap().bytes, 7).unwrap_err();
        assert!(refused.to_string().contains("a newer program"), "{refused}");
    }
}
