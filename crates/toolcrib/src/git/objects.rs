//! Reads objects of git repositories without running git: the reader must not trust files that a command may
//! have written. Each object is hashed, so that its id proves its content.
//!
//! Only commits, tags and trees are read, not blobs.

mod pack;

use std::ffi::OsStr;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use sha1::{Digest as _, Sha1};
use toolcrib_fs::{BulkReader, WholeRead};

use self::pack::Pack;

/// Larger than the tree of a directory with a million files.
const MAX_OBJECT_BYTES: u64 = 64 << 20;

/// Limit of packs per object directory.
const MAX_PACKS: usize = 2_000;

/// Object id: the SHA-1 of its content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectId([u8; 20]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

/// An object, without its stored header.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) kind: ObjectKind,
    pub(crate) content: Vec<u8>,
}

/// The object directories of a repository.
#[derive(Debug)]
pub(crate) struct ObjectStore {
    directories: Vec<ObjectDirectory>,
}

#[derive(Debug)]
struct ObjectDirectory {
    tree: BulkReader,
    /// Relative to the root of the tree.
    path: PathBuf,
    packs: Vec<Pack>,
}

impl ObjectId {
    /// The id of a blob with this content.
    pub(crate) fn of_file(content: &[u8]) -> ObjectId {
        ObjectId::of(ObjectKind::Blob, content)
    }

    fn of(kind: ObjectKind, content: &[u8]) -> ObjectId {
        let mut hash = Sha1::new();
        hash.update(format!("{} {}\0", kind.name(), content.len()));
        hash.update(content);
        ObjectId(hash.finalize().into())
    }

    /// Parses 40 hexadecimal digits.
    pub(crate) fn parse(text: &[u8]) -> Option<ObjectId> {
        let mut bytes = [0; 20];
        if text.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |at: usize| char::from(digits[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
        }
        Some(ObjectId(bytes))
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<ObjectId> {
        bytes.try_into().ok().map(ObjectId)
    }

    /// Abbreviated id.
    pub(crate) fn short(&self) -> String {
        self.to_string().chars().take(9).collect()
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ObjectKind {
    fn name(self) -> &'static str {
        match self {
            ObjectKind::Commit => "commit",
            ObjectKind::Tree => "tree",
            ObjectKind::Blob => "blob",
            ObjectKind::Tag => "tag",
        }
    }

    fn named(name: &[u8]) -> Option<ObjectKind> {
        [ObjectKind::Commit, ObjectKind::Tree, ObjectKind::Blob, ObjectKind::Tag]
            .into_iter()
            .find(|kind| kind.name().as_bytes() == name)
    }
}

impl ObjectStore {
    /// Paths are relative to the root of their tree.
    pub(crate) fn new(directories: Vec<(BulkReader, PathBuf)>) -> ObjectStore {
        let open = |(tree, path): (BulkReader, PathBuf)| {
            let packs = packs(&tree, &path.join("pack"));
            ObjectDirectory { tree, path, packs }
        };
        ObjectStore { directories: directories.into_iter().map(open).collect() }
    }

    /// Whether an object is stored under this id. Its content is not checked.
    pub(crate) fn has(&self, id: ObjectId) -> bool {
        self.directories.iter().any(|directory| {
            let (parent, name) = directory.loose(id);
            directory.packs.iter().any(|pack| pack.offset(id).is_some())
                || directory.tree.stamp(&parent.join(name)).is_some()
        })
    }

    /// The object with this id, if its content matches the id.
    pub(crate) fn read(&self, id: ObjectId) -> Option<Object> {
        let in_directory = |directory: &ObjectDirectory| {
            let packed = |pack: &Pack| pack.read(pack.offset(id)?, self, 0);
            let object = directory.packs.iter().find_map(packed);
            object.or_else(|| directory.read_loose(id)).filter(|object| object.id() == id)
        };
        self.directories.iter().find_map(in_directory)
    }

    /// Reads the base of a delta without checking it: the resulting object is hashed as a whole.
    fn read_base(&self, id: ObjectId, depth: usize) -> Option<Object> {
        let in_directory = |directory: &ObjectDirectory| {
            let packed = |pack: &Pack| pack.read(pack.offset(id)?, self, depth);
            directory.packs.iter().find_map(packed).or_else(|| directory.read_loose(id))
        };
        self.directories.iter().find_map(in_directory)
    }
}

impl Object {
    fn id(&self) -> ObjectId {
        ObjectId::of(self.kind, &self.content)
    }
}

impl ObjectDirectory {
    fn loose(&self, id: ObjectId) -> (PathBuf, String) {
        let mut digits = id.to_string();
        let rest = digits.split_off(2);
        (self.path.join(digits), rest)
    }

    fn read_loose(&self, id: ObjectId) -> Option<Object> {
        let (parent, name) = self.loose(id);
        let mut compressed = Vec::new();
        let directory = self.tree.directory(&parent).ok()?;
        let taken = directory.take(OsStr::new(&name), MAX_OBJECT_BYTES, &mut compressed).ok()?;
        if !matches!(taken, WholeRead::Whole(_)) {
            return None;
        }
        let mut bytes = Vec::new();
        let inflated = ZlibDecoder::new(compressed.as_slice());
        inflated.take(MAX_OBJECT_BYTES).read_to_end(&mut bytes).ok()?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let kind = ObjectKind::named(bytes.get(..space)?)?;
        Some(Object { kind, content: bytes.split_off(end + 1) })
    }
}

fn packs(tree: &BulkReader, path: &Path) -> Vec<Pack> {
    let Ok(directory) = tree.directory(path) else { return Vec::new() };
    let mut names = Vec::new();
    // An incomplete listing yields fewer packs.
    let _ = directory.each(|name, _| {
        if Path::new(name).extension().is_some_and(|last| last == "idx") {
            names.push(PathBuf::from(name));
        }
        names.len() < MAX_PACKS
    });
    names.iter().filter_map(|name| Pack::open(&directory, name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_ids_match_git() {
        let empty = ObjectId::of_file(b"");
        assert_eq!(empty.to_string(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(ObjectId::parse(empty.to_string().as_bytes()), Some(empty));
        assert_eq!(ObjectId::parse(b"e69d"), None);
        assert_eq!(ObjectId::parse(&[b'x'; 40]), None);
        assert_eq!(ObjectId::parse("ä".repeat(20).as_bytes()), None);
    }
}
