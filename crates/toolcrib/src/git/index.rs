//! Entries of a git index, without the file times that git refreshes.

use std::collections::BTreeMap;
use std::path::Path;

use toolcrib_fs::{TreeReader, WholeRead};

use super::objects::ObjectId;

/// More than an index of a hundred thousand files has.
const MAX_BYTES: u64 = 16 << 20;

/// Beginning of the file: `DIRC`, the version, the number of entries.
const HEADER_BYTES: usize = 12;

/// Bytes of an entry before its path, and the positions of its fields.
const FIXED_BYTES: usize = 62;
const MODE: usize = 24;
const OBJECT: usize = 40;
const FLAGS: usize = 60;

/// Flag of an entry with two more bytes of flags.
const EXTENDED: u16 = 0x4000;

/// A staged version: its mode, its merge stage and its content.
pub(crate) type Staged = (u32, u16, ObjectId);

/// Reads an index. `None` if it does not exist or is too large.
pub(crate) fn read(tree: &TreeReader, path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let taken = tree.directory(path.parent()?).ok()?.take(path.file_name()?, MAX_BYTES, &mut bytes);
    matches!(taken, Ok(WholeRead::Whole(_))).then_some(bytes)
}

/// The staged versions by path. `None` for an unknown format.
pub(crate) fn entries(index: &[u8]) -> Option<BTreeMap<Vec<u8>, Vec<Staged>>> {
    let version = number(index.strip_prefix(b"DIRC")?)?;
    let total = number(index.get(8..)?)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut entries: BTreeMap<Vec<u8>, Vec<Staged>> = BTreeMap::new();
    let (mut start, mut path) = (HEADER_BYTES, Vec::new());
    for _ in 0..total {
        let entry = index.get(start..)?;
        let flags = u16::from_be_bytes(entry.get(FLAGS..FIXED_BYTES)?.try_into().ok()?);
        let more = if version >= 3 && flags & EXTENDED != 0 { 2 } else { 0 };
        let mut name = entry.get(FIXED_BYTES + more..)?;
        if version == 4 {
            let (removed, length) = varint(name)?;
            path.truncate(path.len().checked_sub(removed)?);
            name = name.get(length..)?;
        } else {
            path.clear();
        }
        let end = name.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(name.get(..end)?);
        let used = entry.len() - name.len() + end;
        // Before version 4, entries are padded with NULs to a multiple of eight bytes.
        start += if version == 4 { used + 1 } else { (used / 8 + 1) * 8 };
        let object = ObjectId::from_bytes(entry.get(OBJECT..FLAGS)?)?;
        let staged = (number(entry.get(MODE..)?)?, flags >> 12 & 3, object);
        entries.entry(path.clone()).or_default().push(staged);
    }
    Some(entries)
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?))
}

/// A number in git's variable-length form, and its length.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}
