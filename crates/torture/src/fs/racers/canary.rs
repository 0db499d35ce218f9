//! Files outside the workspace that must be neither read nor changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use toolcrib_devtools::error::Result;

/// A word that is only in files outside.
pub(super) const CONTENT: &str = "canary-content-5d1e";
/// A word that is only in the name of a file outside.
pub(super) const NAME: &str = "canary-name-5d1e";

/// The observable state of files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Canaries(BTreeMap<String, FileState>);

#[derive(Debug, PartialEq, Eq)]
struct FileState {
    content: Vec<u8>,
    mode: u32,
    modified: (i64, i64),
    links: u64,
    inode: u64,
}

/// The word from outside in a reply, if there is one.
pub(super) fn leaked_word(reply: &str) -> Option<&'static str> {
    [CONTENT, NAME].into_iter().find(|word| reply.contains(word))
}

impl Canaries {
    /// The current state of the files in a directory.
    pub(super) fn observe(directory: &Path) -> Result<Canaries> {
        let mut all = BTreeMap::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let stat = fs::symlink_metadata(&path)?;
            let content = if stat.is_file() { fs::read(&path)? } else { Vec::new() };
            let looks = FileState {
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

    /// Describes the files that changed, were added or were removed.
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
    fn detects_every_difference() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        ["same", "gone", "edited"].iter().for_each(|name| fs::write(at(name), "a").unwrap());
        let before = Canaries::observe(directory.path()).unwrap();
        assert_eq!(before.differences(&before), [] as [&str; 0]);
        fs::remove_file(at("gone")).unwrap();
        fs::write(at("edited"), "b").unwrap();
        fs::write(at("new"), "c").unwrap();
        assert_eq!(
            before.differences(&Canaries::observe(directory.path()).unwrap()),
            [
                "ESCAPE: edited outside was changed",
                "ESCAPE: gone outside is gone",
                "ESCAPE: new outside was created"
            ]
        );
    }

    #[test]
    fn detects_leaked_words() {
        assert_eq!(leaked_word(&format!("1\\t{CONTENT}")), Some(CONTENT));
        assert_eq!(leaked_word("1\\tstate A"), None);
    }
}
