//! Entries of a git index, without the file times that git refreshes.

use std::collections::BTreeMap;

use super::objects::ObjectId;

/// More than an index of a hundred thousand files has.
pub(crate) const MAX_BYTES: u64 = 16 << 20;

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

#[cfg(test)]
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test runs git")]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn git(directory: &Path, words: &[&str]) -> Vec<u8> {
        let output = Command::new("git").args(words).current_dir(directory).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        output.stdout
    }

    /// As `git ls-files --stage -z` prints them.
    fn printed(entries: &BTreeMap<Vec<u8>, Vec<Staged>>) -> Vec<u8> {
        let lines = entries.iter().flat_map(|(path, all)| {
            all.iter().map(move |(mode, stage, object)| {
                [format!("{mode:06o} {object} {stage}\t").as_bytes(), path, b"\0"].concat()
            })
        });
        lines.flatten().collect()
    }

    #[test]
    fn entries_match_git() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        git(here, &["init", "-q"]);
        for number in 0..40 {
            let file = here.join(format!("{}/file {number}", "d".repeat(number % 9 + 1)));
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, number.to_string()).unwrap();
        }
        std::fs::write(here.join("later"), "").unwrap();
        git(here, &["add", "-A"]);
        // An entry with extended flags.
        git(here, &["rm", "-q", "--cached", "later"]);
        git(here, &["add", "-N", "later"]);
        for version in ["2", "3", "4"] {
            git(here, &["update-index", "--index-version", version]);
            let index = std::fs::read(here.join(".git/index")).unwrap();
            let listed = git(here, &["ls-files", "--stage", "-z"]);
            assert_eq!(printed(&entries(&index).unwrap()), listed, "version {version}");
            // A truncated or changed index is not read beyond its end.
            for length in 0..index.len() {
                let _ = entries(&index[..length]);
                let mut changed = index.clone();
                changed[length] ^= 0xff;
                let _ = entries(&changed);
            }
        }
        assert!(entries(b"DIRC\0\0\0\x09\0\0\0\0").is_none());
    }
}
