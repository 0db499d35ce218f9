//! Contents of files, compressed, as objects that are named by their hash.

use std::collections::HashSet;
use std::io::Read as _;

use parking_lot::Mutex;
use toolcrib_fs::ContentHash;

use crate::error::BackupError;
use crate::objects::Objects;

pub(crate) const FOLDER: &str = "blobs";

/// The largest content of one object. The contents of a journal are smaller, and larger files are copied in parts.
pub(crate) const MAX_BYTES: usize = 256 << 20;

/// Fast rather than small: the network is slower than either.
const COMPRESSION_LEVEL: i32 = 3;

/// Hashes of contents that are known to be in the backup. Nothing is removed from a backup, so they stay there.
#[derive(Default)]
pub(crate) struct Known(Mutex<HashSet<ContentHash>>);

impl Known {
    pub(crate) fn has(&self, hash: &ContentHash) -> bool {
        self.0.lock().contains(hash)
    }

    pub(crate) fn add(&self, hashes: impl IntoIterator<Item = ContentHash>) {
        self.0.lock().extend(hashes);
    }

    /// Adds all contents that the backup has. Takes a request for each thousand.
    pub(crate) fn ask(&self, objects: &Objects) -> Result<(), BackupError> {
        let names = objects.list(FOLDER)?;
        self.add(names.iter().filter_map(|name| name.parse().ok()));
        Ok(())
    }
}

/// Stores a content, unless the backup has it. Returns its hash.
pub(crate) fn put(
    objects: &Objects,
    known: &Known,
    content: &[u8],
) -> Result<ContentHash, BackupError> {
    let hash = ContentHash::of(content);
    if known.has(&hash) {
        return Ok(hash);
    }
    let compressed =
        zstd::bulk::compress(content, COMPRESSION_LEVEL).map_err(BackupError::local)?;
    // One that is there has the same content, or it is damaged, which `verify` finds.
    objects.put_new(&format!("{FOLDER}/{hash}"), &compressed)?;
    known.add([hash]);
    Ok(hash)
}

/// Reads a content of at most `max` bytes and checks it.
pub(crate) fn get(
    objects: &Objects,
    hash: &ContentHash,
    max: usize,
) -> Result<Vec<u8>, BackupError> {
    let name = format!("{FOLDER}/{hash}");
    let bound = zstd::zstd_safe::compress_bound(max);
    let found = objects.get(&name, bound)?;
    let compressed = found.ok_or_else(|| BackupError::damaged(format!("{name} is missing")))?;
    let content = decompress(&compressed, max)
        .ok_or_else(|| BackupError::damaged(format!("{name} is damaged")))?;
    if ContentHash::of(&content) == *hash {
        Ok(content)
    } else {
        Err(BackupError::damaged(format!("{name} has another content than its name says")))
    }
}

/// At most `max` bytes. `None` if there are more, or if the compressed form is damaged.
pub(crate) fn decompress(compressed: &[u8], max: usize) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let decoder = zstd::stream::Decoder::new(compressed).ok()?;
    // It may claim any length.
    decoder.take(max as u64 + 1).read_to_end(&mut content).ok()?;
    Some(content).filter(|content| content.len() <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_or_huge_content_is_not_decompressed() {
        let compressed = zstd::bulk::compress(&vec![7; 100_000], 3).unwrap();
        assert_eq!(decompress(&compressed, 100_000).map(|content| content.len()), Some(100_000));
        assert_eq!(decompress(&compressed, 99_999), None);
        assert_eq!(decompress(&compressed[..compressed.len() - 1], 100_000), None);
        assert_eq!(decompress(b"nonsense", 10), None);
    }
}
