//! The entries of the log. The format is stable: later versions may add fields, but never remove one.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::Content;
use crate::hash::ContentHash;
use crate::unix_time::now_ms;

/// The origin of a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct About {
    /// The tool.
    pub tool: String,
    /// Its arguments, with long ones truncated.
    pub arguments: Value,
    /// The rule that allowed it.
    pub rule: String,
    /// The numbers of the changes that this one reverts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<u64>,
    /// The number of the change of which it reverts one hunk. The change stays in effect otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunk_of: Option<u64>,
    /// The number of that hunk in its file, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunk: Option<usize>,
    /// It reverts them only at this path and beneath it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<KeptPath>,
    /// It takes back only what they did in these directories: the rest was not visible to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<KeptPath>,
    /// The number of the session that made it, in its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// The first line of the command that made it, truncated and without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The id of that command in its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// Parts of git repositories that it changed and that its undo does not restore, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repository_parts: Vec<String>,
}

/// One change of files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, from 1, in the order of completion.
    pub id: u64,
    /// The time, in milliseconds since 1970.
    pub time_ms: u64,
    /// A unique id, before it has a number.
    #[serde(default)]
    pub token: String,
    /// The process that made it.
    #[serde(default)]
    pub process: u32,
    /// The origin.
    #[serde(flatten)]
    pub about: About,
    /// The changed files.
    pub files: Vec<FileChange>,
    /// The directories that it created, parents first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<KeptPath>,
    /// The directories that it removed, parents first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<KeptDirectory>,
    /// Paths that it changed and whose previous state is not stored, so that it cannot be undone there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_kept: Vec<KeptPath>,
    /// Directories whose mode it changed, which is not undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<DirectoryMode>,
    /// The number of ignored files that it changed and whose previous state is not stored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ignored_not_kept: u64,
    /// A command made it, and ignore files exclude all changed files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_ignored: bool,
    /// When it was added to this journal, if another one recorded it. Its age counts from then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_ms: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The effects of a change on files and directories.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Effects {
    pub(crate) files: Vec<FileChange>,
    /// The directories that it creates, parents first.
    pub(crate) made: Vec<KeptPath>,
    /// The directories that it removes, parents first.
    pub(crate) removed: Vec<KeptDirectory>,
    /// Paths that it changes and whose previous state is not stored.
    pub(crate) not_kept: Vec<KeptPath>,
    /// Directories whose mode it changes.
    pub(crate) modes: Vec<DirectoryMode>,
    /// The number of ignored files that it changes and whose previous state is not stored.
    pub(crate) ignored_not_kept: u64,
    /// Ignore files exclude all of it.
    pub(crate) only_ignored: bool,
}

impl Effects {
    /// Effects on files only.
    pub(crate) fn on_files(files: Vec<FileChange>) -> Effects {
        Effects { files, ..Effects::default() }
    }

    /// Whether nothing of it can be undone.
    pub(crate) fn has_nothing_to_undo(&self) -> bool {
        self.files.is_empty() && self.made.is_empty() && self.removed.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.has_nothing_to_undo() && self.not_kept.is_empty() && self.modes.is_empty()
    }
}

/// An absolute path of any bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPath {
    path: String,
    /// The path in hex, if it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
}

/// A directory, with its mode bits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptDirectory {
    #[serde(flatten)]
    path: KeptPath,
    /// Its mode bits.
    pub mode: u32,
}

/// A directory whose mode was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryMode {
    #[serde(flatten)]
    path: KeptPath,
    /// Its mode bits before.
    pub before: u32,
    /// Its mode bits after.
    pub after: u32,
}

/// One changed file or symlink.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileChange {
    #[serde(flatten)]
    path: KeptPath,
    /// The version before. `None` if it was created.
    pub before: Option<Version>,
    /// The version after. `None` if it was deleted.
    pub after: Option<Version>,
    /// Whether it was written in place instead of replaced atomically.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_place: bool,
}

/// A version of a file or symlink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The hash of its content.
    #[serde(with = "hash_as_text")]
    pub hash: ContentHash,
    /// Its size in bytes.
    pub size: u64,
    /// Its mode bits.
    pub mode: u32,
    /// Whether it is a symlink, whose content is the target.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub link: bool,
}

impl Entry {
    /// A change that is made now. It gets its number when it is complete.
    pub(super) fn new(token: String, about: About, effects: Effects) -> Entry {
        let process = std::process::id();
        let Effects {
            files,
            made: directories,
            removed,
            not_kept,
            modes,
            ignored_not_kept,
            only_ignored,
        } = effects;
        let id = 0;
        Entry {
            id,
            time_ms: now_ms(),
            token,
            process,
            about,
            files,
            directories,
            removed,
            not_kept,
            modes,
            ignored_not_kept,
            only_ignored,
            imported_ms: None,
        }
    }

    /// Returns the change with each path replaced.
    #[must_use]
    pub fn at_paths(mut self, path: impl Fn(&Path) -> PathBuf) -> Entry {
        let replace = |stored: &mut KeptPath| *stored = KeptPath::new(&path(&stored.path()));
        self.files.iter_mut().for_each(|file| replace(&mut file.path));
        self.directories.iter_mut().for_each(&replace);
        self.removed.iter_mut().for_each(|directory| replace(&mut directory.path));
        self.not_kept.iter_mut().for_each(&replace);
        self.modes.iter_mut().for_each(|mode| replace(&mut mode.path));
        self.about.only.iter_mut().for_each(&replace);
        self.about.within.iter_mut().for_each(replace);
        self
    }

    /// Removes the paths that are not wanted. Returns whether some were removed.
    pub fn retain_paths(&mut self, wanted: impl Fn(&Path) -> bool) -> bool {
        let count = |entry: &Entry| {
            let directories = entry.directories.len() + entry.removed.len() + entry.modes.len();
            entry.files.len() + directories + entry.not_kept.len()
        };
        let before = count(self);
        self.files.retain(|file| wanted(&file.path()));
        self.directories.retain(|directory| wanted(&directory.path()));
        self.removed.retain(|directory| wanted(&directory.path()));
        self.not_kept.retain(|path| wanted(&path.path()));
        self.modes.retain(|mode| wanted(&mode.path()));
        count(self) < before
    }

    /// All changed paths: files, directories, and paths that were not kept.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let made = self.directories.iter().chain(&self.not_kept).map(KeptPath::path);
        let removed = self.removed.iter().map(KeptDirectory::path);
        let modes = self.modes.iter().map(DirectoryMode::path);
        self.files.iter().map(FileChange::path).chain(made).chain(removed).chain(modes)
    }

    /// The versions before and after it, of all its files.
    pub fn versions(&self) -> impl Iterator<Item = Version> {
        self.files.iter().flat_map(|file| [file.before, file.after]).flatten()
    }

    /// The hashes of all its contents.
    pub(super) fn contents(&self) -> impl Iterator<Item = ContentHash> {
        self.versions().map(|version| version.hash)
    }
}

impl KeptPath {
    /// Encodes a path.
    pub fn new(path: &Path) -> KeptPath {
        let bytes = path.as_os_str().as_bytes();
        let hex = || bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        KeptPath {
            path: path.to_string_lossy().into_owned(),
            path_bytes: std::str::from_utf8(bytes).is_err().then(hex),
        }
    }

    /// Decodes the path.
    pub fn path(&self) -> PathBuf {
        let bytes = self.path_bytes.as_ref().and_then(|hex| {
            let digits = hex.as_bytes().chunks(2);
            digits
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
                .collect()
        });
        match bytes {
            Some(bytes) => OsString::from_vec(bytes).into(),
            None => self.path.clone().into(),
        }
    }
}

impl KeptDirectory {
    /// A directory with this mode.
    pub fn new(path: &Path, mode: u32) -> KeptDirectory {
        KeptDirectory { path: KeptPath::new(path), mode }
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.path.path()
    }
}

impl DirectoryMode {
    /// A directory with its mode before and after a change.
    pub fn new(path: &Path, before: u32, after: u32) -> DirectoryMode {
        DirectoryMode { path: KeptPath::new(path), before, after }
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.path.path()
    }
}

impl FileChange {
    /// A change of the file at an absolute path.
    pub fn new(path: &Path, before: Option<Version>, after: Option<Version>) -> FileChange {
        FileChange { path: KeptPath::new(path), before, after, in_place: false }
    }

    /// The path of the file.
    pub fn path(&self) -> PathBuf {
        self.path.path()
    }
}

impl Version {
    /// The version of a file or symlink with this content and mode.
    pub fn of(content: &Content, mode: u32) -> Version {
        let (size, link) = (content.len() as u64, content.is_link());
        Version { hash: content.hash(), size, mode, link }
    }

    /// Whether a version is the current content. `None` means that the path does not exist.
    pub fn is(version: Option<Version>, content: Option<&Content>) -> bool {
        match (version, content) {
            (None, None) => true,
            (Some(version), Some(content)) => {
                version.link == content.is_link() && version.hash == content.hash()
            }
            _ => false,
        }
    }

    /// The content of this version with these bytes.
    pub fn content(self, bytes: Vec<u8>) -> Content {
        if self.link { Content::link(bytes) } else { bytes.into() }
    }
}

mod hash_as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::hash::ContentHash;

    pub(super) fn serialize<S: Serializer>(hash: &ContentHash, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(hash)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ContentHash, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_any_bytes_is_preserved() {
        for bytes in [b"/a/b".as_slice(), b"/a/\xff\xfe", b"/a/\n\\x"] {
            let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
            let change = FileChange::new(&path, None, None);
            let text = serde_json::to_string(&change).unwrap();
            let read: FileChange = serde_json::from_str(&text).unwrap();
            assert_eq!(read.path(), path);
        }
    }
}
