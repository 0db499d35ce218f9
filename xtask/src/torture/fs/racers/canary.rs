//! What lies outside and must be neither told nor touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::Result;

/// Only ever written into files outside.
pub(super) const CONTENT: &str = "canary-content-5d1e";
/// Only ever the name of a file outside.
pub(super) const NAME: &str = "canary-name-5d1e";

/// All that can be seen of some files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Canaries(BTreeMap<String, Looks>);

#[derive(Debug, PartialEq, Eq)]
struct Looks {
    content: Vec<u8>,
    mode: u32,
    modified: (i64, i64),
    links: u64,
    inode: u64,
}

/// The word in a reply that only a look outside can have brought there.
pub(super) fn told_by(reply: &str) -> Option<&'static str> {
    [CONTENT, NAME].into_iter().find(|word| reply.contains(word))
}

impl Canaries {
    /// The files in a directory as they are now.
    pub(super) fn look(directory: &Path) -> Result<Canaries> {
        let mut all = BTreeMap::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let stat = fs::symlink_metadata(&path)?;
            let content = if stat.is_file() { fs::read(&path)? } else { Vec::new() };
            let looks = Looks {
                content,
                mode: stat.mode(),
                modified: (stat.mtime(), stat.mtime_nsec()),
                links: stat.nlink(),
                inode: stat.ino(),
            };
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            all.insert(name, looks);
        }
        Ok(Canaries(all))
    }

    /// What is another now, was added or is gone.
    pub(super) fn differences(&self, now: &Canaries) -> Vec<String> {
        let names: BTreeSet<&String> = self.0.keys().chain(now.0.keys()).collect();
        names
            .into_iter()
            .filter(|&name| self.0.get(name) != now.0.get(name))
            .map(|name| {
                let how = match (self.0.contains_key(name), now.0.contains_key(name)) {
                    (false, _) => "was created",
                    (_, false) => "is gone",
                    _ => "was changed",
                };
                format!("ESCAPE: {name} outside {how}")
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        ["same", "gone", "edited"].iter().for_each(|name| fs::write(at(name), "a").unwrap());
        let before = Canaries::look(directory.path()).unwrap();
        assert_eq!(before.differences(&before), [] as [&str; 0]);
        fs::remove_file(at("gone")).unwrap();
        fs::write(at("edited"), "b").unwrap();
        fs::write(at("new"), "c").unwrap();
        assert_eq!(
            before.differences(&Canaries::look(directory.path()).unwrap()),
            [
                "ESCAPE: edited outside was changed",
                "ESCAPE: gone outside is gone",
                "ESCAPE: new outside was created"
            ]
        );
    }

    #[test]
    fn words_from_outside_are_heard() {
        assert_eq!(told_by(&format!("1\\t{CONTENT}")), Some(CONTENT));
        assert_eq!(told_by("1\\tstate A"), None);
    }
}
