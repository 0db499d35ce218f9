//! The files of a workspace as data: the entry at each path, and the difference between two states.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolcrib_fs::{ContentHash, ContentHasher, KeptPath};

use crate::error::BackupError;

/// More entries are not copied.
pub(crate) const MAX_ENTRIES: usize = 500_000;

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Node {
    Directory {
        mode: u32,
    },
    File {
        mode: u32,
        size: u64,
        /// The time of the last change of its content: seconds and nanoseconds since 1970.
        modified: (i64, i64),
        #[serde(with = "hash_as_text")]
        hash: ContentHash,
        /// The hashes of its parts, if it is larger than a part. Otherwise the file is one blob.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<String>,
    },
    Link {
        target: KeptPath,
    },
}

impl Node {
    /// A symlink to a target of any bytes.
    pub(crate) fn link(target: &OsStr) -> Node {
        Node::Link { target: KeptPath::new(Path::new(target)) }
    }

    /// The hashes of its blobs, in order.
    pub(crate) fn blobs(&self) -> Result<Vec<ContentHash>, BackupError> {
        match self {
            Node::File { hash, parts, .. } if parts.is_empty() => Ok(vec![*hash]),
            Node::File { parts, .. } => {
                let parse = |part: &String| part.parse().map_err(BackupError::damaged);
                parts.iter().map(parse).collect()
            }
            Node::Directory { .. } | Node::Link { .. } => Ok(Vec::new()),
        }
    }
}

/// The files of a workspace, by their paths from its root.
pub(crate) type Tree = BTreeMap<PathBuf, Node>;

/// A path with its entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TreeEntry {
    pub(crate) at: KeptPath,
    pub(crate) node: Node,
}

/// The entries that are new or different, and the paths that are gone.
pub(crate) fn difference(before: &Tree, after: &Tree) -> (Vec<TreeEntry>, Vec<KeptPath>) {
    let is_new = |(path, node): &(&PathBuf, &Node)| before.get(*path) != Some(*node);
    let entry =
        |(path, node): (&PathBuf, &Node)| TreeEntry { at: KeptPath::new(path), node: node.clone() };
    let put = after.iter().filter(is_new).map(entry).collect();
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    (put, gone.map(|path| KeptPath::new(path)).collect())
}

/// Applies a difference.
pub(crate) fn apply(tree: &mut Tree, put: Vec<TreeEntry>, gone: &[KeptPath]) {
    gone.iter().for_each(|path| drop(tree.remove(&path.path())));
    tree.extend(put.into_iter().map(|entry| (entry.at.path(), entry.node)));
}

/// A hash of all of it.
pub(crate) fn hash(tree: &Tree) -> Result<ContentHash, BackupError> {
    let mut hasher = ContentHasher::default();
    for (path, node) in tree {
        let entry = serde_json::to_vec(node).map_err(BackupError::local)?;
        let bytes = path.as_os_str().as_bytes();
        hasher.feed(&(bytes.len() as u64).to_le_bytes());
        hasher.feed(bytes);
        hasher.feed(&(entry.len() as u64).to_le_bytes());
        hasher.feed(&entry);
    }
    Ok(hasher.finish())
}

/// Fails unless each path stays inside the workspace and has a directory above it.
pub(crate) fn check_paths(tree: &Tree) -> Result<(), BackupError> {
    let is_directory = |path: &Path| {
        path.as_os_str().is_empty() || matches!(tree.get(path), Some(Node::Directory { .. }))
    };
    for path in tree.keys() {
        let is_inside = path.components().all(|name| matches!(name, Component::Normal(_)));
        // A spelling with `//` or `/./` would be a second name of another entry.
        let is_plain = path.components().collect::<PathBuf>().as_os_str() == path.as_os_str();
        let parent = path.parent().filter(|_| is_inside && is_plain);
        if !parent.is_some_and(is_directory) || path.as_os_str().as_bytes().contains(&0) {
            return Err(BackupError::damaged(format!(
                "the backup has the path {:?}, which is not inside a directory of the workspace",
                path.display().to_string()
            )));
        }
    }
    Ok(())
}

mod hash_as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use toolcrib_fs::ContentHash;

    pub(super) fn serialize<S: Serializer>(hash: &ContentHash, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(hash)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ContentHash, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use proptest::prelude::*;

    use super::*;

    fn file(content: &[u8]) -> Node {
        let (hash, size) = (ContentHash::of(content), content.len() as u64);
        Node::File { mode: 0o644, size, modified: (-1, 5), hash, parts: Vec::new() }
    }

    fn tree(entries: &[(Vec<u8>, u8)]) -> Tree {
        let node = |kind: u8| match kind % 3 {
            0 => Node::Directory { mode: 0o755 },
            1 => Node::link(OsStr::from_bytes(&[kind, 0xff])),
            _ => file(&[kind]),
        };
        let path = |bytes: &[u8]| PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()));
        entries.iter().map(|(name, kind)| (path(name), node(*kind))).collect()
    }

    proptest! {
        #[test]
        fn a_difference_leads_from_one_tree_to_the_other(
            before in proptest::collection::vec((proptest::collection::vec(b'0'.., 1..4), 0_u8..9), 0..20),
            after in proptest::collection::vec((proptest::collection::vec(b'0'.., 1..4), 0_u8..9), 0..20),
        ) {
            let (before, after) = (tree(&before), tree(&after));
            let (put, gone) = difference(&before, &after);
            let text = serde_json::to_string(&(put, gone)).unwrap();
            let (put, gone): (Vec<TreeEntry>, Vec<KeptPath>) = serde_json::from_str(&text).unwrap();
            let mut made = before.clone();
            apply(&mut made, put, &gone);
            prop_assert_eq!(&made, &after);
            prop_assert_eq!(hash(&made).unwrap(), hash(&after).unwrap());
            prop_assert_eq!(hash(&before).unwrap() == hash(&after).unwrap(), before == after);
        }
    }

    #[test]
    fn paths_outside_the_workspace_are_refused() {
        let with = |path: &str| {
            let mut tree = tree(&[(b"d".to_vec(), 0), (b"l".to_vec(), 1), (b"f".to_vec(), 2)]);
            tree.insert(path.into(), file(b""));
            check_paths(&tree)
        };
        assert!(with("d/x").is_ok() && with("x").is_ok());
        for path in [
            "",
            ".",
            "..",
            "../x",
            "/x",
            "d/../x",
            "d//x",
            "d/./x",
            "./x",
            "l/x",
            "f/x",
            "missing/x",
            "d/x/",
        ] {
            assert!(with(path).is_err(), "{path}");
        }
    }
}
